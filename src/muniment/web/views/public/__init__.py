"""Pages for every visitor."""
