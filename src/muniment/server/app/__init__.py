"""TODO-INIT app."""
