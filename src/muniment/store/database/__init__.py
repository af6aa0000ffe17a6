"""TODO-INIT database."""
