"""TODO-INIT http."""
