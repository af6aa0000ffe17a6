"""Why a start cannot succeed: in one line, with the exit status that tells whether another attempt may."""

import importlib.metadata
import re
from types import ModuleType
from typing import Final, NamedTuple

from muniment.config import ConfigError
from muniment.masking import masked
from muniment.server.process.exit_status import FAILED, REFUSED
from muniment.store.database.faults import disk_fault

_LONGEST: Final = 400


class StartFailure(NamedTuple):
    """
    Why a process does not serve.

    Args:
        reason: the reason for the operator, on one line.
        status: the exit status of the process.
    """

    reason: str
    status: int = REFUSED


def failure_of(error: Exception) -> StartFailure:
    """Return why a start failed with *error*, which will not pass by itself."""
    if isinstance(error, ConfigError):
        return StartFailure(str(error))
    return StartFailure(_words_for(error), FAILED)


def _words_for(error: Exception) -> str:
    package = _package_at_fault(error)
    if package is not None:
        return library_fault(package, error)
    fault = disk_fault(error)
    if fault:
        return f"Cannot start: {fault}: {_line(error)}"
    if isinstance(error, OSError) and error.filename:
        return f"Cannot start: {error.strerror}: {error.filename}"
    from django.core.exceptions import ImproperlyConfigured
    from django.db import DatabaseError

    if isinstance(error, DatabaseError):
        return f"The database refuses this process: {_line(error)}"
    if isinstance(error, ImproperlyConfigured):
        return f"Cannot start: {_line(error)}"
    told = f"{type(error).__name__}: {_line(error)}"
    return f"Cannot start: {told}. With MUNIMENT_LOG_LEVEL=debug, the log has the trace."


def _package_at_fault(error: BaseException) -> str | None:
    """Return the package that lacks a module or a name, empty if the error does not say which; None for others."""
    if isinstance(error, ImportError):
        # Django hides the cause when it imports what a setting names.
        package = _package_at_fault(error.__cause__) if error.__cause__ else None
        return package or (error.name or "").partition(".")[0]
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return error.obj.__name__.partition(".")[0]
    return None


def library_fault(package: str, error: BaseException) -> str:
    """Return which library is missing or of another version, and what to do."""
    while error.__cause__ is not None:
        error = error.__cause__
    distributions = importlib.metadata.packages_distributions().get(package, [])
    installed, needed = "", ""
    for name in distributions:
        installed += f" Installed is {name} {importlib.metadata.version(name)}."
        for requirement in _requirements_of(name):
            needed += f" This version needs {requirement}."
    words = f"A library is missing or of another version: {_line(error)}.{installed}{needed}"
    return f"{words} Install Muniment again, in an environment of its own."


def _requirements_of(distribution: str) -> list[str]:
    try:
        lines = importlib.metadata.requires("muniment") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    of_distribution = re.compile(rf"{re.escape(distribution)}(?![\w.-])", re.IGNORECASE)
    requirements = []
    for line in lines:
        if of_distribution.match(line):
            requirements.append(line.partition(";")[0].strip())
    return requirements


def _line(error: BaseException) -> str:
    """Return the first line of what an error says, without secrets."""
    said = masked(str(error)).strip()
    return said.partition("\n")[0][:_LONGEST].rstrip(".") or type(error).__name__
