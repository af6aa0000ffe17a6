"""TODO-INIT review."""
