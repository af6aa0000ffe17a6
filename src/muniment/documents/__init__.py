"""Owners' files: taken in by calls and one-time links, inspected, kept, and given back to owners alone."""
