"""TODO-INIT content."""
