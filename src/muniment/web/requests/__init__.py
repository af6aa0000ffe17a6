"""TODO-INIT requests."""
