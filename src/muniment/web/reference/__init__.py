"""The documentation at ``/docs``: guides, and the reference of the REST API and of both tool servers."""
