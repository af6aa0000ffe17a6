"""SQLite backend that queues the writers of all processes."""
