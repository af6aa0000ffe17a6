"""Turn nested JSON into rows: the longest list of objects is the table, and members of members are columns. Pure."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
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
    cells_of_rows = [dict(_flatten(row)) for row in objects]
    headings = list(dict.fromkeys(chain.from_iterable(cells_of_rows)))
    left_out = list(dict.fromkeys(chain.from_iterable(map(_left_out_of_people, objects))))
    if left_out:
        said = "Of lists of people, names and positions are read. Left out: {parts}."
        notes.append(str(Phrase(said, parts=_shown(left_out))))
    rows = [[cells.get(heading, "") for heading in headings] for cells in cells_of_rows]
    return Nested([headings, *rows], notes)


def _objects(text: str, notes: list[str]) -> list[JSONObject]:
    """Return the objects that become rows; add to *notes* what is none, or is outside of their list."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    else:
        values = _longest(document)
        if not _is_answer(document):
            paths = list(dict.fromkeys(_beside(document, values)))
            if paths:
                notes.append(str(Phrase("Outside of the list of rows, and left out: {parts}.", parts=_shown(paths))))
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) < len(values):
        one, more = (
            "{count} value that is no object was left out.",
            "{count:,} values that are no objects were left out.",
        )
        notes.append(str(Counted(one, more, count=len(values) - len(objects))))
    return objects


def _shown(paths: list[str]) -> str:
    """Return the first paths in a sentence."""
    more = ", …" if len(paths) > MAX_NAMED else ""
    return ", ".join(paths[:MAX_NAMED]) + more


def _beside(value: Any, rows: list[Any], path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of values that are in a document and not in its *rows*."""
    is_row = bool(rows) and value is rows[0]  # the only one, of a document that is one object
    if value is rows or is_row:
        return
    members = _members_that_may_have(rows, value, path) if depth < MAX_DEPTH else []
    for path_of_member, member in members:
        yield from _beside(member, rows, path_of_member, depth + 1)
    if not members and value not in _NOTHING:
        yield path


def _members_that_may_have(rows: list[Any], value: Any, path: str) -> list[tuple[str, Any]]:
    """Return the members of an object, or the items of a list that has *rows*, with their paths; none of others."""
    if isinstance(value, dict):
        return [(_path(path, name), member) for name, member in value.items()]
    if isinstance(value, list) and any(item is rows for item in value):
        return [(f"{path} {number}".strip(), item) for number, item in enumerate(value, 1)]
    return []


def _path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _left_out_of_people(value: JSONObject, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of what lists of named objects hold beside names and positions."""
    for name, member in value.items():
        path_of_member = _path(path, name)
        if isinstance(member, dict):
            if depth < MAX_DEPTH and not _is_binding(member):
                yield from _left_out_of_people(member, path_of_member, depth + 1)
        elif isinstance(member, list) and _are_named(member):
            for person in member:
                read = {_first_text(person, _PERSON_NAMES), _first_text(person, _TITLES)}
                for key, part in person.items():
                    if key not in read and part not in _NOTHING:
                        yield f"{path_of_member}.{key}"


def _are_named(values: list[Any]) -> bool:
    """Return whether all values of a list are objects with the name of a person."""
    return all(isinstance(value, dict) and _name_in(value) for value in values)


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
    if isinstance(value, dict) and not longest:
        return [value]
    return longest


def _flatten(value: JSONObject, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the cells of an object, with their headings: members of members are columns."""
    for name, member in value.items():
        heading = _path(path, name)
        if isinstance(member, dict) and depth < MAX_DEPTH:
            if _is_binding(member):
                yield heading, _plain(member["value"])
            else:
                yield from _flatten(member, heading, depth + 1)
        elif isinstance(member, list):
            yield from _of_list(member, heading, depth)
        else:
            yield heading, _plain(member)


def _of_list(values: list[Any], heading: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the cells of a list: one with its texts or people, or columns for each of its first objects."""
    if not all(isinstance(value, dict) for value in values):
        yield heading, "\n".join(map(_plain, values))
    elif values and _are_named(values):
        yield heading, "\n".join(map(_named, values))
    else:
        for number, value in enumerate(values[:MAX_LIST_COLUMNS], 1):
            heading_of_value = heading if number == 1 else f"{heading} {number}"
            yield from _flatten(value, heading_of_value, depth + 1)
        if len(values) > MAX_LIST_COLUMNS:
            yield f"{heading} (more)", json.dumps(values[MAX_LIST_COLUMNS:], ensure_ascii=False)


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
