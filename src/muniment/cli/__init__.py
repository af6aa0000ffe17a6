"""The command: each subcommand a few lines over an operation."""

from muniment.cli import (  # noqa: F401 - each adds its commands
    accounts,
    backup,
    instance,
    registry,
    serving,
)
from muniment.cli.command import main, use_django

__all__ = ["main", "use_django"]
