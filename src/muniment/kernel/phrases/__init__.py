"""Texts in English that remember how they were made, so that a page can show them in another language."""
