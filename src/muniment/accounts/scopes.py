"""Scopes: their descriptions, and how lists of scopes are parsed."""

from collections.abc import Iterable
from typing import Final

from django.utils.translation import gettext_lazy

from muniment.kernel.actor import ALL_SCOPES, SCOPES
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest

WORDS: Final = {
    "companies:read": gettext_lazy("View your listings, including drafts and pending changes"),
    "companies:write": gettext_lazy("Edit your listings"),
    "profile:read": gettext_lazy("View your profile and email address"),
    "profile:write": gettext_lazy("Edit your profile"),
    "documents:read": gettext_lazy("View your documents and read their text"),
    "documents:write": gettext_lazy("Upload and delete documents"),
    "reports:read": gettext_lazy("View your credits and assessment reports"),
    "reports:run": gettext_lazy("Run assessments, which costs credits, and share their reports"),
}
READ_SCOPES: Final = frozenset(scope for scope in SCOPES if scope.endswith(":read"))


def in_order(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return the known ones among *scopes*, each once, in display order."""
    held = frozenset(scopes)
    return tuple(scope for scope in SCOPES if scope in held)


def written(scopes: Iterable[str]) -> str:
    return " ".join(in_order(scopes))


def read(text: str) -> frozenset[str]:
    return ALL_SCOPES.intersection(text.split())


def chosen(scopes: Iterable[str]) -> frozenset[str]:
    """Validate scopes that a user chose; raise BadRequest for none, or an unknown one."""
    found = frozenset(scopes)
    if not found:
        raise BadRequest("No scope was chosen.", Phrase("Choose at least one of: {scopes}.", scopes=", ".join(SCOPES)))
    if unknown := sorted(found - ALL_SCOPES):
        raise BadRequest(
            Phrase("Unknown scope: {scope!r}.", scope=unknown[0][:60]),
            Phrase("Use: {scopes}.", scopes=", ".join(SCOPES)),
        )
    return found
