"""PostgreSQL backend for several nodes and a connection pooler."""
