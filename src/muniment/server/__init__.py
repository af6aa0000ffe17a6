"""The composition root: one process that listens first and imports afterwards, and who answers which path."""
