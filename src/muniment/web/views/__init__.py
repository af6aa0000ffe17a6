"""Views of the pages, thin over readers and operations."""
