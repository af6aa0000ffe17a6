"""Connecting clients to the tool servers of an instance: links, commands, and bundles for desktop apps."""
