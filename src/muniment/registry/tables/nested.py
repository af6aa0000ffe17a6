"""Turn nested JSON into rows: the longest list of objects is the table, and members of members are columns. Pure."""

import json
from collections.abc import Iterator
from typing import Any, Final

from muniment.kernel.json import JSONObject

MAX_DEPTH: Final = 12
MAX_LIST_COLUMNS: Final = 5
_PERSON_NAMES: Final = ("name", "fullName", "full_name", "label")
_TITLES: Final = ("title", "role", "position", "function")


def rows_of(text: str) -> list[list[str]]:
    """
    Return the headings and the rows of a JSON document, or of JSON Lines.

    Raises:
        ValueError: it is neither, or holds no objects.
        RecursionError: it is nested too deeply.
    """
    objects = _objects(text)
    if not objects:
        raise ValueError("the JSON holds no list of objects")
    flat = [dict(_flatten(each)) for each in objects]
    headings = list({name: None for row in flat for name in row})
    return [headings, *([row.get(name, "") for name in headings] for row in flat)]


def _objects(text: str) -> list[JSONObject]:
    try:
        return _longest(json.loads(text))
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
    found = [json.loads(line) for line in lines]
    return [each for each in found if isinstance(each, dict)]


def _longest(value: Any) -> list[JSONObject]:
    """Return the longest list of objects at any depth, the outermost of equal ones; else the object itself."""
    best: list[JSONObject] = []
    queue = [value]
    for each in queue:
        if isinstance(each, list):
            rows = [row for row in each if isinstance(row, dict)]
            if len(rows) > len(best):
                best = rows
            if each is value or not rows:
                queue += [item for item in each if isinstance(item, list)]
        elif isinstance(each, dict):
            queue += each.values()
    return best if len(best) > 1 or not isinstance(value, dict) else best or [value]


def _flatten(value: JSONObject, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, each in value.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(each, dict) and depth < MAX_DEPTH:
            if "value" in each and "type" in each:  # a binding of a SPARQL answer
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
