"""TODO-INIT people."""
