"""Presenters of the pages over many listings."""
