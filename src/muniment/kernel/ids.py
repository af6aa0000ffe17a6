"""Slugs, time-ordered ids, and the current time."""

import os
import re
import time
import unicodedata
from datetime import UTC, datetime

from muniment.kernel.phrases.phrase import Phrase

MAX_SLUG_CHARACTERS = 200
_PLAIN_SLUG = re.compile(r"[a-z0-9-]+")
"""Nearly every slug is one, and needs no look at each character."""
_FORBIDDEN_IN_SLUG = frozenset("/\\?#%<>\"'`&")
_FORBIDDEN_CATEGORIES = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"})
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def now() -> datetime:
    return datetime.now(UTC)


def slug_fault(slug: str) -> str | None:
    """Return what is wrong with *slug*, or None if it is valid (decisions, section 2, slugs)."""
    if not slug:
        return Phrase("is empty")
    if len(slug) > MAX_SLUG_CHARACTERS:
        return Phrase("has {count} characters, at most {limit} are allowed", count=len(slug), limit=MAX_SLUG_CHARACTERS)
    if _PLAIN_SLUG.fullmatch(slug):
        return None
    if slug in {".", ".."}:
        return Phrase("is a relative path")
    for character in slug:
        if character in _FORBIDDEN_IN_SLUG or unicodedata.category(character) in _FORBIDDEN_CATEGORIES:
            return Phrase("contains the character U+{code:04X}, which is not allowed in a URL", code=ord(character))
    return None if unicodedata.is_normalized("NFC", slug) else Phrase("is not in Unicode normalization form C")


def slug_from_name(name: str) -> str:
    """Derive a lower-case slug from *name*: letters and digits of any script stay, the rest becomes hyphens."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).lower())
    text = folded.replace("'", "")
    separators = {character for character in text if unicodedata.category(character)[0] not in "LMN"}
    hyphenated = text.translate(dict.fromkeys(map(ord, separators), "-"))
    return re.sub(r"-+", "-", hyphenated).strip("-")[:MAX_SLUG_CHARACTERS].rstrip("-")


def new_id() -> str:
    """Return a ULID in lower case: 26 characters of Crockford's base 32 that sort by creation time."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))
