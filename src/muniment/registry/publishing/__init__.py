"""Render published documents and write them in the transaction that changes the source rows."""
