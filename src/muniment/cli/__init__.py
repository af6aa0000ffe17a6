"""The command line: each command is a few lines around an operation."""

from muniment.cli.command import main, use_django

__all__ = ["main", "use_django"]
