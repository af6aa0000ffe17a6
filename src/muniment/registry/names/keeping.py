"""Keep the names that a public company gives up: when it is renamed, by an edit or an import."""

from collections.abc import Iterable

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.registry import history
from muniment.registry.models import Company, HistoryEntry, State
from muniment.registry.names import former
from muniment.registry.names.former import Stored
from muniment.registry.people import suppression

_UNLISTED = ("unlisted", "unlisted by owner")


def after_rename(company: Company, name: str) -> Stored:
    """
    Return the former names of a listing that gets *name*, to be stored with it.

    Of a listing that is unlisted, the name under which it was public becomes a former one, and none that it had since.
    """
    before = company.name if company.state == State.PUBLISHED else _last_public_name(company)
    stored: Stored = company.former_names
    if not before or is_removed(company.slug, before):
        return former.without(stored, name)
    return former.renamed(stored, before, name, on=now().date())


def of_import(company: Company, name: str, given: Iterable[JSONObject] | None) -> Stored:
    """Return the former names of a listing that an import calls *name*, with those that its file gives."""
    stored: Stored = after_rename(company, name) if company.name not in {"", name} else company.former_names
    if given is None:
        return stored
    return former.joined(stored, given, name, lambda each: is_removed(company.slug, each))


def is_removed(slug: str, name: str) -> bool:
    """Return whether a reviewer removed a former name of a company."""
    return suppression.has_former_name(slug, name)


def _last_public_name(company: Company) -> str:
    """Return the name of an unlisted company when it was public; empty if it never was."""
    if company.publication_number is None:
        return ""
    entries = HistoryEntry.objects.filter(company=company)
    last = 0
    for entry in entries.filter(action__in=_UNLISTED).order_by("-pk"):
        if entry.before.get("state") == State.PUBLISHED:
            last = entry.pk
            break
    later = history.touching(entries.filter(pk__gt=last), ["name"]).exclude(action__in=history.NOT_REVERTED)
    for entry in later.order_by("pk"):
        if "name" in entry.before or "name" in entry.after:
            return str(entry.before.get("name") or "")
    return str(company.name)
