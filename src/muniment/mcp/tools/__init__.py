"""TODO-INIT tools."""
