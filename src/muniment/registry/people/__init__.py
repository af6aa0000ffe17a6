"""People and their profiles."""
