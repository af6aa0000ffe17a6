"""TODO-INIT company."""
