"""The command line: each command is a few lines around an operation."""

from muniment.cli.command import main, published_documents, use_django

__all__ = ["main", "published_documents", "use_django"]
