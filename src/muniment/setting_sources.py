"""Sources of settings besides the environment: a TOML file; and names that no setting has."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

FILE: Final = "settings.toml"
"""The file of settings in a data folder."""
MIRROR: Final = "mirror.json"
"""The file that makes a data folder a mirror: the address and the currency of the registry that is copied there."""
_OTHERS: Final = frozenset(
    {
        *("MUNIMENT_TOKEN", "MUNIMENT_SITE", "MUNIMENT_NODES"),  # of the bridge, and of the proxies in deploy/
        *("MUNIMENT_SAMPLE_DATA", "MUNIMENT_REFERENCE_BENCH", "MUNIMENT_BENCH_CMD"),  # of the tests and benchmarks
    }
)
_OF_A_SERVICE: Final = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(?:_\w+)?$|_PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?$")
"""Variables that Kubernetes and container links set for each service whose name begins with muniment."""


def find_file(chosen: Path | None, data: Path) -> tuple[dict[str, str], Path | None]:
    """
    Read the file of settings: lower-case names with text, whole numbers, true or false, lists, or lists of tables.

    Args:
        chosen: a file that must exist; otherwise the one in the data folder *data* is read, if there is one.

    Returns:
        The text of each setting, as its environment variable would hold it, and the path of the file.

    Raises:
        ValueError: the file cannot be read or is not TOML, or a value is of another type or must be set elsewhere.
    """
    file = chosen or data / FILE
    try:
        if chosen is None and not file.is_file():
            return {}, None
        found = _read(file)
    except OSError as error:
        raise ValueError(f"The settings file {file} cannot be read: {error.strerror}.") from None
    for name in ("settings_file", "data") if chosen is None else ("settings_file",):
        if name in found:
            raise ValueError(f"{file} cannot set {name}. Set MUNIMENT_{name.upper()} in the environment.")
    return found, file


def find_mirrored(data: Path) -> tuple[str, str]:
    """
    Return the address and the currency of the registry that a data folder is a mirror of; empty if it is none.

    Raises:
        ValueError: its file cannot be read.
    """
    file = data / MIRROR
    try:
        found = json.loads(file.read_bytes())
        return str(found["origin"]), str(found["currency"])
    except FileNotFoundError:
        return "", ""
    except (OSError, ValueError, KeyError, TypeError):
        message = f"{file} cannot be read. Run muniment mirror again, which writes it."
        raise ValueError(message) from None


def _read(file: Path) -> dict[str, str]:
    import tomllib

    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not a TOML file: {error}.") from None
    return {name: _text(value, f"{name} in {file}") for name, value in found.items()}


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, list) and not any(isinstance(each, list | dict | bool | float) for each in value):
        return " ".join(map(str, value))
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return json.dumps(value)
    raise ValueError(f"{where} must be text, a whole number, true or false, or a list of texts or tables.")


def unknown_variables(variables: Iterable[str], prefix: str, known: Collection[str]) -> Iterator[str]:
    """Describe each of the variables that begins with the prefix, and is neither a setting nor known to be another."""
    for name in sorted(variables):
        if name.startswith(prefix) and name not in known and name not in _OTHERS and not _OF_A_SERVICE.search(name):
            yield _unknown(name, name.removeprefix(prefix), {each.removeprefix(prefix) for each in known}, prefix)


def unknown_names(names: Iterable[str], known: Collection[str], file: Path) -> Iterator[str]:
    """Describe each name in a file that is no setting."""
    for name in sorted(set(names) - set(known)):
        yield _unknown(f"{name} in {file}", name, known, "")


def _unknown(shown: str, name: str, known: Collection[str], prefix: str) -> str:
    import difflib

    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {prefix}{nearest[0]}?" if nearest else " muniment doctor lists all settings."
    return f"{shown} is not a setting and has no effect.{hint}"
