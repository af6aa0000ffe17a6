"""Assessment frameworks and their private specifications."""
