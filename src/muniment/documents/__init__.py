"""Owners' files: upload, inspection, storage and download."""
