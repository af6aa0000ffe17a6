"""TODO-INIT process."""
