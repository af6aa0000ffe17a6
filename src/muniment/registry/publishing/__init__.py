"""TODO-INIT publishing."""
