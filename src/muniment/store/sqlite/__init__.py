"""Django's SQLite backend, with the writers of all processes in one queue."""
