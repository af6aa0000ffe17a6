"""The parts of pages that plugins add."""
