"""The command: each subcommand a few lines over an operation."""

from muniment.cli import accounts, instance, keeping, registry, serving  # noqa: F401 - each adds its commands
from muniment.cli.command import main, use_django

__all__ = ["main", "use_django"]
