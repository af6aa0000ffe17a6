"""The site folder: templates and static files of an operator's own."""
