"""Logos that listings name by URL: fetched once, checked, resized, and served from here."""
