"""Background jobs: a queue in the application's database, and its workers."""
