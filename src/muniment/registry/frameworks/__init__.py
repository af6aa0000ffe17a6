"""TODO-INIT frameworks."""
