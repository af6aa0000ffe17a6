"""Server-rendered pages over the published documents and the operations."""
