"""The command line: each command is a few lines around an operation."""

from muniment.cli import (  # noqa: F401 - each registers its commands
    accounts,
    backup,
    instance,
    registry,
    serving,
)
from muniment.cli.command import main, use_django

__all__ = ["main", "use_django"]
