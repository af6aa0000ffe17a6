"""The tools of the owner-scoped server."""
