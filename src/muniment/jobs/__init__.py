"""Work that outlives a request: a queue in the application's own database, and who works it off."""
