"""What a credential may permit, in words, and how lists of scopes are read."""

from collections.abc import Iterable
from typing import Final

from muniment.kernel.actor import ALL_SCOPES, SCOPES
from muniment.kernel.problems import BadRequest

WORDS: Final = {
    "companies:read": "See your listings, drafts and pending changes included",
    "companies:write": "Change your listings",
    "profile:read": "See your profile and email address",
    "profile:write": "Change your profile",
    "documents:read": "See the list of your documents",
    "documents:write": "Upload and delete documents",
    "reports:read": "See your credits and assessment reports",
    "reports:run": "Run assessment reports, which spends your credits",
}
READ_SCOPES: Final = frozenset(scope for scope in SCOPES if scope.endswith(":read"))


def in_order(scopes: Iterable[str]) -> tuple[str, ...]:
    """Give the known ones among *scopes*, each once, in the order in which they are always shown."""
    held = frozenset(scopes)
    return tuple(scope for scope in SCOPES if scope in held)


def written(scopes: Iterable[str]) -> str:
    """Give scopes as RFC 6749, section 3.3, writes them."""
    return " ".join(in_order(scopes))


def read(text: str) -> frozenset[str]:
    """Read stored scopes; what is no longer known permits nothing."""
    return ALL_SCOPES.intersection(text.split())


def chosen(scopes: Iterable[str]) -> frozenset[str]:
    """
    Check scopes that a person chose.

    Raises:
        BadRequest: none, or an unknown one.
    """
    found = frozenset(scopes)
    if not found:
        raise BadRequest("The token would permit nothing.", f"Choose at least one of: {', '.join(SCOPES)}.")
    if unknown := sorted(found - ALL_SCOPES):
        raise BadRequest(f"There is no scope {unknown[0][:60]!r}.", f"Choose among: {', '.join(SCOPES)}.")
    return found
