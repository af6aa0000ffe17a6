"""Listings and frameworks by their names: owners and agents say what something is called, not its slug."""

import difflib
import unicodedata
from typing import Final

from django.db.models import QuerySet

from muniment.kernel.actor import Actor
from muniment.kernel.ids import MAX_SLUG_CHARACTERS, slug_from_name
from muniment.registry.models import Company, Framework
from muniment.store.search import keys

MAX_COMPARED: Final = 1_000
"""Listings of an account, or frameworks, whose names are compared."""
_NEAR: Final = 3
_BEGINNING: Final = 3
"""Characters that a slug and what was asked have in common."""


def company_slug(actor: Actor, text: str) -> str:
    """Return the slug of the actor's own listing that *text* names, by its slug or its exact name; or *text* itself."""
    return _slug(_own(actor), text)


def framework_slug(text: str) -> str:
    """Return the slug of the public framework that *text* names, by its slug or its exact name; or *text* itself."""
    return _slug(Framework.objects.filter(published=True), text)


def near_companies(actor: Actor, text: str) -> list[str]:
    """Return the actor's own listings whose slug or name is like *text*, each with both."""
    rows = list(_own(actor).order_by("pk").values_list("slug", "name")[:MAX_COMPARED])
    asked = keys.squeeze(text)
    near: list[tuple[float, str]] = []
    for slug, name in rows:
        likeness = max(difflib.SequenceMatcher(None, asked, keys.squeeze(text)).ratio() for text in (slug, name))
        if likeness >= 0.6:
            near.append((likeness, f"{slug} ({name})"))
    near.sort(key=lambda listing: -listing[0])
    return [words for _, words in near[:_NEAR]]


def near_listings(text: str) -> list[str]:
    """Return the listings of anyone whose slug is like *text* and begins like it, each with its slug and name."""
    asked = slug_from_name(text[:MAX_SLUG_CHARACTERS])
    begun = Company.objects.filter(slug__startswith=asked[:_BEGINNING]).order_by("slug")
    names = dict(begun.values_list("slug", "name")[:MAX_COMPARED])
    return [f"{slug} ({names[slug]})" for slug in difflib.get_close_matches(asked, names, _NEAR)]


def _own(actor: Actor) -> QuerySet[Company]:
    if actor.account_id is None:
        return Company.objects.none()
    return Company.objects.filter(ownerships__account_id=actor.account_id)


def _slug(rows: QuerySet[Company] | QuerySet[Framework], text: str) -> str:
    """Return the slug of the only one of *rows* with a name; a *text* in the form of a slug is one."""
    text = unicodedata.normalize("NFC", text)  # as slugs are stored; some systems take characters apart
    asked = keys.squeeze(text)
    if not asked or slug_from_name(text) == text:
        return text
    held = list(rows.order_by("pk").values_list("slug", "name")[:MAX_COMPARED])
    if any(slug == text for slug, _ in held):
        return text
    meant = {slug for slug, name in held if asked in {keys.squeeze(slug), keys.squeeze(name)}}
    return meant.pop() if len(meant) == 1 else text
