"""TODO-INIT protocol."""
