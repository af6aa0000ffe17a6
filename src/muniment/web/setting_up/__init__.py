"""The first setup: its steps, presets of words and values, and draft texts of legal pages."""
