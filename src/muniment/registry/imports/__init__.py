"""The record of imports, and their undo."""
