"""Turn nested JSON into rows: the longest list of objects is the table, and members of members are columns. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Counted, Phrase

MAX_DEPTH: Final = 12
MAX_LIST_COLUMNS: Final = 5
_PERSON_NAMES: Final = ("name", "fullName", "full_name", "label")
_TITLES: Final = ("title", "role", "position", "function")
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})
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
    members: list[tuple[str, Any]] = []
    if depth < MAX_DEPTH:
        if isinstance(value, dict):
            members = [(_path(path, name), member) for name, member in value.items()]
        elif isinstance(value, list) and any(item is rows for item in value):
            members = [(f"{path} {number}".strip(), item) for number, item in enumerate(value, 1)]
    for path_of_member, member in members:
        yield from _beside(member, rows, path_of_member, depth + 1)
    if not members and value not in _NOTHING:
        yield path


def _path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _of_people(value: JSONObject, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of what lists of named objects hold beside names and positions."""
    for name, member in value.items():
        here = _path(path, name)
        if isinstance(member, dict) and depth < MAX_DEPTH and not _is_binding(member):
            yield from _of_people(member, here, depth + 1)
        elif isinstance(member, list) and all(isinstance(item, dict) and _name_in(item) for item in member):
            for person in member:
                read = {_first_text(person, keys) for keys in (_PERSON_NAMES, _TITLES)}
                yield from (f"{here}.{key}" for key in person if key not in read and person[key] not in _NOTHING)


def _first_text(value: JSONObject, keys: Sequence[str]) -> str:
    """Return the first of *keys* under which an object has a text; "" if it has none."""
    return next((key for key in keys if isinstance(value.get(key), str)), "")


def _is_answer(document: Any) -> bool:
    """Return whether a document is an answer to a SPARQL query, whose other part lists the names of its columns."""
    return isinstance(document, dict) and document.keys() == {"head", "results"}


def _is_binding(value: JSONObject) -> bool:
    """Return whether an object is a value in an answer to a SPARQL query."""
    return "value" in value and "type" in value


def _longest(value: Any) -> list[Any]:
    """Return the longest list of objects at any depth, the outermost of equal ones; else the object itself."""
    longest: list[Any] = []
    most = 0
    queue = [value]
    for part in queue:  # which grows: outer lists are before those in them
        if isinstance(part, dict):
            queue += part.values()
        elif isinstance(part, list):
            count = sum(isinstance(row, dict) for row in part)
            if count > most:
                longest, most = part, count
            if part is value or not count:
                queue += [item for item in part if isinstance(item, list)]
    is_one_object = isinstance(value, dict) and not longest
    return [value] if is_one_object else longest


def _flatten(value: JSONObject, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, each in value.items():
        here = _path(path, name)
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
    return _text_in(value, _PERSON_NAMES)


def _text_in(value: JSONObject, keys: Sequence[str]) -> str:
    key = _first_text(value, keys)
    return str(value[key]) if key else ""


def _named(value: JSONObject) -> str:
    name, title = _name_in(value), _text_in(value, _TITLES)
    return f"{name} ({title})" if title else name


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
