"""Django's PostgreSQL backend, as several nodes and a pooler need it."""
