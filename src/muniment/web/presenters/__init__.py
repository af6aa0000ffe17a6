"""TODO-INIT presenters."""
