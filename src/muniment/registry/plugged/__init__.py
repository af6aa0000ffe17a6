"""Plugins in the registry: they check changes before they are made, and hear of publications afterwards."""
