"""The names that companies had."""
