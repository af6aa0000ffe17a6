"""Published documents: the published file, its reader, its replication, and the database backends."""
