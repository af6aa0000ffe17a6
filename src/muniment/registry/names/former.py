"""
The names that a public company gives up: the list as it is stored, what a rename adds to it, what a reviewer removes.

An entry has the name, the day until which the company had it, and the side that hides it, if one does. Names that
differ by case, accents or signs alone are one.
"""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, Final

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.registry import history
from muniment.registry.models import Company, HistoryEntry, State
from muniment.registry.people import suppression
from muniment.store.search_text import squeeze

MAX_NAMES: Final = 50
HIDDEN: Final = "hidden"
MEMBERS: Final = ("name", "until")
Stored = list[JSONObject] | None


def key_of(name: str) -> str:
    """Return what the forms of one name have in common; a name of signs alone is itself."""
    return squeeze(name) or name


def find(stored: Stored, name: str) -> JSONObject | None:
    """Return the entry of *name*, hidden or not."""
    for former_name in stored or ():
        if key_of(former_name["name"]) == key_of(name):
            return former_name
    return None


def without(stored: Stored, name: str) -> Stored:
    key = key_of(name)
    return [former_name for former_name in stored or () if key_of(former_name["name"]) != key] or None


def renamed(stored: Stored, before: str, after: str, *, on: date) -> Stored:
    """
    Return the list of a company that was called *before*, and *after* since the day *on*.

    A name that is there already was given up earlier, by a listing that was not public since.
    """
    kept = without(stored, after)
    if key_of(before) == key_of(after):
        return kept
    given_up = find(kept, before) or {}
    return _limited([{"name": before, "until": on.isoformat(), **given_up}, *(kept or ())])


def joined(stored: Stored, given: Iterable[JSONObject], name: str, is_removed: Callable[[str], bool]) -> Stored:
    """
    Return the list with the names *given* from elsewhere, of a company that is called *name*.

    What is hidden stays so.

    Args:
        is_removed: whether a reviewer removed a name.
    """
    names = list(stored or ())
    for former_name in given:
        listed = find(names, former_name["name"])
        if listed is not None:
            if former_name.get("until") and not listed.get("until"):
                names[names.index(listed)] = {**listed, "until": former_name["until"]}
            continue
        is_present_name = key_of(former_name["name"]) == key_of(name)
        if not is_present_name and not is_removed(former_name["name"]):
            names.append({member: former_name[member] for member in MEMBERS if former_name.get(member)})
    return _limited(names)


def marked(stored: Stored, name: str, hidden_by: str) -> Stored:
    """Return the list with *name* hidden by a side, or shown if that is empty."""
    key = key_of(name)
    names = []
    for former_name in stored or ():
        if key_of(former_name["name"]) != key:
            names.append(former_name)
            continue
        changed = {member: value for member, value in former_name.items() if member != HIDDEN}
        if hidden_by:
            changed[HIDDEN] = hidden_by
        names.append(changed)
    return names


def _limited(names: Iterable[JSONObject]) -> Stored:
    """Return the latest names, each once."""
    unique: dict[str, JSONObject] = {}
    for former_name in names:
        unique.setdefault(key_of(former_name["name"]), former_name)
    latest_first = sorted(unique.values(), key=lambda former_name: former_name.get("until") or "", reverse=True)
    return latest_first[:MAX_NAMES] or None


_UNLISTING_ACTIONS: Final = ("unlisted", "unlisted by owner")


def after_rename(company: Company, name: str) -> Stored:
    """
    Return the former names of a listing that gets *name*, to be stored with it.

    Of a listing that is unlisted, the name under which it was public becomes a former one, and none that it had since.
    """
    before = company.name if company.state == State.PUBLISHED else _last_public_name(company)
    stored: Stored = company.former_names
    if not before or is_removed(company.slug, before):
        return without(stored, name)
    return renamed(stored, before, name, on=now().date())


def of_import(company: Company, name: str, given: Iterable[JSONObject] | None) -> Stored:
    """Return the former names of a listing that an import calls *name*, with those that its file gives."""
    stored: Stored = company.former_names
    if company.name not in {"", name}:
        stored = after_rename(company, name)
    if given is None:
        return stored
    return joined(stored, given, name, lambda former_name: is_removed(company.slug, former_name))


def is_removed(slug: str, name: str) -> bool:
    """Return whether a reviewer removed a former name of a company."""
    return suppression.has_former_name(slug, name)


def _last_public_name(company: Company) -> str:
    """Return the name of an unlisted company when it was public; empty if it never was."""
    if company.publication_number is None:
        return ""
    entries = HistoryEntry.objects.filter(company=company)
    last = 0
    for entry in entries.filter(action__in=_UNLISTING_ACTIONS).order_by("-pk"):
        if entry.before.get("state") == State.PUBLISHED:
            last = entry.pk
            break
    later = history.touching(entries.filter(pk__gt=last), ["name"]).exclude(action__in=history.NOT_REVERTED)
    for entry in later.order_by("pk"):
        if "name" in entry.before or "name" in entry.after:
            return str(entry.before.get("name") or "")
    return str(company.name)


def remove_traces(company: Company, name: str) -> None:
    """Remove a name from the history of a listing and from decided requests, in the caller's transaction."""
    for model, columns in history.VALUE_COLUMNS:
        rows = history.rows_naming(model, columns, name).filter(company=company)
        if model is not HistoryEntry:
            rows = rows.exclude(decision="")
        for row in rows:
            values: JSONObject = {column: _without(getattr(row, column), name) for column in columns}
            if isinstance(row, HistoryEntry):
                held = {*values["before"], *values["after"]}
                values["changed"] = [member for member in row.changed if member in held]
            model._default_manager.filter(pk=row.pk).update(**values)  # noqa: SLF001 - Django's public name


def _without(values: JSONObject, name: str) -> JSONObject:
    """Return values of fields without *name*, as the name and among the former ones."""
    others: JSONObject = {}
    for member, value in values.items():
        if member == "name" and isinstance(value, str) and key_of(value) == key_of(name):
            continue
        others[member] = without(value, name) if member == "formerNames" else value
    return others


def remove_suppressed(keys: list[suppression.SuppressionKey]) -> int:
    """
    Remove the former names in a restored database that were removed since, before its documents are published.

    Returns:
        How many names were removed.
    """
    listed, count = suppression.Suppressions(keys), 0
    companies: Any = Company.objects.exclude(former_names=None) if listed else ()
    for company in companies:
        for entry in list(company.former_names):
            if listed.has_former_name(company.slug, entry["name"]):
                remove_traces(company, entry["name"])
                company.former_names = without(company.former_names, entry["name"])
                company.save(update_fields=["former_names"])
                count += 1
    return count
