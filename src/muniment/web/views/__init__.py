"""One module for each room of the pages; thin over readers and operations."""
