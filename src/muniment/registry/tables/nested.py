"""Turn nested JSON into rows: the longest list of objects is the table, and members of members are columns. Pure."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Counted, Phrase

MAX_DEPTH: Final = 12
MAX_LIST_COLUMNS: Final = 5
_PERSON_NAMES: Final = ("name", "fullName", "full_name", "label")
_TITLES: Final = ("title", "role", "position", "function")
_READ: Final = (_PERSON_NAMES, _TITLES)
MAX_NAMED: Final = 10


class Nested(NamedTuple):
    """The headings and the rows of a JSON document; ``notes`` name what is in no row."""

    rows: list[list[str]]
    notes: list[str]


def rows_of(text: str) -> Nested:
    """
    Return the headings and the rows of a JSON document, or of JSON Lines.

    Raises:
        ValueError: it is neither, or holds no objects.
        RecursionError: it is nested too deeply.
    """
    notes: list[str] = []
    objects = _objects(text, notes)
    if not objects:
        raise ValueError("the JSON holds no list of objects")
    flat = [dict(_flatten(each)) for each in objects]
    headings = list({name: None for row in flat for name in row})
    if parts := list(dict.fromkeys(part for each in objects for part in _of_people(each))):
        said = "Of lists of people, names and positions are read. Left out: {parts}."
        notes.append(str(Phrase(said, parts=_shown(parts))))
    return Nested([headings, *([row.get(name, "") for name in headings] for row in flat)], notes)


def _objects(text: str, notes: list[str]) -> list[JSONObject]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    else:
        values = _longest(document)
        if parts := [] if _is_answer(document) else list(dict.fromkeys(_beside(document, values))):
            notes.append(str(Phrase("Outside of the list of rows, and left out: {parts}.", parts=_shown(parts))))
    found = [each for each in values if isinstance(each, dict)]
    if len(found) < len(values):
        one, more = (
            "{count} value that is no object was left out.",
            "{count:,} values that are no objects were left out.",
        )
        notes.append(str(Counted(one, more, count=len(values) - len(found))))
    return found


def _shown(parts: list[str]) -> str:
    return ", ".join(parts[:MAX_NAMED]) + (", …" if len(parts) > MAX_NAMED else "")


def _beside(value: Any, rows: list[Any], path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of values that are in a document and not in its *rows*."""
    if value is rows or (rows and value is rows[0]):
        return
    if isinstance(value, dict) and value and depth < MAX_DEPTH:
        for name, each in value.items():
            yield from _beside(each, rows, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list) and depth < MAX_DEPTH and any(each is rows for each in value):
        for number, each in enumerate(value, 1):
            yield from _beside(each, rows, f"{path} {number}".strip(), depth + 1)
    elif value not in (None, "", [], {}):
        yield path


def _of_people(value: JSONObject, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of what lists of named objects hold beside names and positions."""
    for name, each in value.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(each, dict) and depth < MAX_DEPTH and not _is_binding(each):
            yield from _of_people(each, here, depth + 1)
        elif isinstance(each, list) and each and all(isinstance(one, dict) and _name_in(one) for one in each):
            for one in each:
                read = {next((key for key in keys if isinstance(one.get(key), str)), "") for keys in _READ}
                yield from (f"{here}.{key}" for key in one if key not in read and one[key] not in (None, "", [], {}))


def _is_answer(document: Any) -> bool:
    """Return whether a document is an answer to a SPARQL query, whose other part lists the names of its columns."""
    return isinstance(document, dict) and document.keys() == {"head", "results"}


def _is_binding(value: JSONObject) -> bool:
    """Return whether an object is a value in an answer to a SPARQL query."""
    return "value" in value and "type" in value


def _longest(value: Any) -> list[Any]:
    """Return the longest list of objects at any depth, the outermost of equal ones; else the object itself."""
    best: list[Any] = []
    most = 0
    queue = [value]
    for each in queue:
        if isinstance(each, list):
            rows = [row for row in each if isinstance(row, dict)]
            if len(rows) > most:
                best, most = each, len(rows)
            if each is value or not rows:
                queue += [item for item in each if isinstance(item, list)]
        elif isinstance(each, dict):
            queue += each.values()
    return best if most > 1 or not isinstance(value, dict) else best or [value]


def _flatten(value: JSONObject, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, each in value.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(each, dict) and depth < MAX_DEPTH:
            if _is_binding(each):
                yield here, _plain(each["value"])
            else:
                yield from _flatten(each, here, depth + 1)
        elif isinstance(each, list):
            yield from _of_list(each, here, depth)
        else:
            yield here, _plain(each)


def _of_list(values: list[Any], here: str, depth: int) -> Iterator[tuple[str, str]]:
    if not all(isinstance(each, dict) for each in values):
        yield here, "\n".join(_plain(each) for each in values)
    elif values and all(_name_in(each) for each in values):
        yield here, "\n".join(_named(each) for each in values)
    else:
        for number, each in enumerate(values[:MAX_LIST_COLUMNS], 1):
            yield from _flatten(each, here if number == 1 else f"{here} {number}", depth + 1)
        if len(values) > MAX_LIST_COLUMNS:
            yield f"{here} (more)", json.dumps(values[MAX_LIST_COLUMNS:], ensure_ascii=False)


def _name_in(value: JSONObject) -> str:
    return next((str(value[name]) for name in _PERSON_NAMES if isinstance(value.get(name), str)), "")


def _named(value: JSONObject) -> str:
    title = next((str(value[name]) for name in _TITLES if isinstance(value.get(name), str)), "")
    return f"{_name_in(value)} ({title})" if title else _name_in(value)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
