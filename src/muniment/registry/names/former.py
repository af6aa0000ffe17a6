"""
The list of a company's former names, as it is stored. Pure.

An entry has the name, the day until which the company had it, and the side that hides it, if one does. Names that
differ by case, accents or signs alone are one.
"""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, Final

from muniment.kernel.json import JSONObject
from muniment.store.search.keys import squeeze

MAX_NAMES: Final = 50
HIDDEN: Final = "hidden"
_MEMBERS: Final = ("name", "until")
Stored = list[JSONObject] | None


def key_of(name: str) -> str:
    """Return what the forms of one name have in common; a name of signs alone is itself."""
    return squeeze(name) or name


def shown(stored: Any) -> list[JSONObject] | None:
    """Return the public names as answers show them, the latest first; None if there are none."""
    public = (each for each in stored or () if HIDDEN not in each)
    return [{name: each[name] for name in _MEMBERS if each.get(name)} for each in public] or None


def find(stored: Stored, name: str) -> JSONObject | None:
    """Return the entry of *name*, hidden or not."""
    return next((each for each in stored or () if key_of(each["name"]) == key_of(name)), None)


def without(stored: Stored, name: str) -> Stored:
    return [each for each in stored or () if key_of(each["name"]) != key_of(name)] or None


def renamed(stored: Stored, before: str, after: str, *, on: date) -> Stored:
    """
    Return the list of a company that was called *before*, and *after* since the day *on*.

    A name that is there already was given up earlier, by a listing that was not public since.
    """
    kept = without(stored, after)
    if key_of(before) == key_of(after):
        return kept
    return _limited([{"name": before, "until": on.isoformat(), **(find(kept, before) or {})}, *(kept or ())])


def joined(stored: Stored, given: Iterable[JSONObject], name: str, is_removed: Callable[[str], bool]) -> Stored:
    """
    Return the list with the names *given* from elsewhere, of a company that is called *name*.

    What is hidden stays so.

    Args:
        is_removed: whether a reviewer removed a name.
    """
    found = list(stored or ())
    for each in given:
        known = find(found, each["name"])
        if known is None and key_of(each["name"]) != key_of(name) and not is_removed(each["name"]):
            found.append({member: each[member] for member in _MEMBERS if each.get(member)})
        elif known is not None and each.get("until") and not known.get("until"):
            found[found.index(known)] = {**known, "until": each["until"]}
    return _limited(found)


def marked(stored: Stored, name: str, hidden_by: str) -> Stored:
    """Return the list with *name* hidden by a side, or shown if that is empty."""
    key, mark = key_of(name), {HIDDEN: hidden_by} if hidden_by else {}
    plain = ({member: value for member, value in each.items() if member != HIDDEN} for each in stored or ())
    return [
        {**changed, **mark} if key_of(changed["name"]) == key else each
        for each, changed in zip(stored or (), plain, strict=True)
    ]


def _limited(found: Iterable[JSONObject]) -> Stored:
    """Return the latest names, each once."""
    unique: dict[str, JSONObject] = {}
    for each in found:
        unique.setdefault(key_of(each["name"]), each)
    return sorted(unique.values(), key=lambda each: each.get("until") or "", reverse=True)[:MAX_NAMES] or None
