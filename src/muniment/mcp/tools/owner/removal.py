"""The rows that a change of a listing removes, by list, as a question about it shows them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from muniment.kernel.json import JSONObject

SHOWN: Final = 10
"""Names of removed rows of a list."""
_CHARACTERS: Final = 80
_NAMES: Final = ("name", "title", "address_1", "address", "id")


def removals(diff: Mapping[str, JSONObject]) -> dict[str, JSONObject]:
    """Return, for each list in *diff* that loses rows, their number before and after, and the names of some."""
    found: dict[str, JSONObject] = {}
    for field, change in diff.items():
        for path, before, after in _lists(field, change["before"], change["after"]):
            if gone := _gone(before, after):
                names = [_name(each) for each in gone[:SHOWN]]
                found[path] = {"before": len(before), "after": len(after), "removed": len(gone), "names": names}
    return found


def sentence(company: str, found: Mapping[str, JSONObject]) -> str:
    """Return what the removals are, in words."""
    parts = [f"{each['removed']} of {each['before']} rows of {path}" for path, each in found.items()]
    return f"This removes {' and '.join(parts)} of {company}."


def _lists(path: str, before: Any, after: Any) -> Iterator[tuple[str, list[Any], list[Any]]]:
    if isinstance(before, list):
        yield path, before, after or []
    elif isinstance(before, dict):
        for name, each in before.items():
            if isinstance(each, list):
                yield f"{path}.{name}", each, (after or {}).get(name) or []


def _gone(before: list[Any], after: list[Any]) -> list[Any]:
    if all(isinstance(each, dict) and each.get("id") for each in before):
        kept = {each.get("id") for each in after}
        return [each for each in before if each["id"] not in kept]
    left = [each for each in before if each not in after]
    return left[: max(0, len(before) - len(after))]


def _name(row: Any) -> str:
    if not isinstance(row, dict):
        return str(row)[:_CHARACTERS]
    person = row.get("person")
    words = [person.get("name")] if isinstance(person, dict) else []
    words += [next((row[name] for name in _NAMES if row.get(name)), "")]
    return ", ".join(str(each) for each in words if each)[:_CHARACTERS]
