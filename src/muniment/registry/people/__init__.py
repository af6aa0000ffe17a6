"""People: their profiles."""
