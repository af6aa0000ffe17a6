"""Commands of the start of a new instance."""
