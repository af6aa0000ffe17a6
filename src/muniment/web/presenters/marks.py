"""Monograms and state pills as HTML. They are in every row of a list, where templates of their own would cost most."""

import hashlib
import unicodedata
from html import escape
from typing import Final

from django.utils.safestring import SafeString, mark_safe

from muniment.web.context import own_address
from muniment.web.translating import gettext_lazy

WORDS: Final = {
    "created": gettext_lazy("Not run yet"),
    "rejected": gettext_lazy("Declined"),
    "waiting": gettext_lazy("Change pending"),
}
_GOOD = (
    *("active", "published", "passed", "open", "raising", "approved", "accepted", "succeeded", "ready", "verified"),
    "confirmed",
)
_WAIT = (
    *("uploaded", "upcoming", "pending", "submitted", "changes_requested", "waiting", "created", "queued", "running"),
    "requested",
)
_BAD = ("declined", "expired", "failed", "rejected")
TONES: Final = dict.fromkeys(_GOOD, "good") | dict.fromkeys(_WAIT, "wait") | dict.fromkeys(_BAD, "bad")


def mark_html(name: str, icon: str | None = None, size: str = "", *, is_round: bool = False) -> SafeString:
    """Return a logo that this instance serves, or the first letter of *name* on a tint."""
    address = own_address(icon) if icon else ""
    sized = f" {escape(size)}" if size else ""
    if address:
        pixels = 72 if size == "large" else 40
        image = f'<img class="mark{sized}" src="{address}" alt="" width="{pixels}" height="{pixels}" loading="lazy">'
        return mark_safe(image)  # noqa: S308 - our own address
    composed = name if name.isascii() else unicodedata.normalize("NFC", name)
    first = next((c for c in composed if c.isalnum()), "·")
    tint = hashlib.blake2s(name.encode(), digest_size=1).digest()[0] % 6
    rounded = " round" if is_round else ""
    letter = f'<span class="mark m{tint}{sized}{rounded}" aria-hidden="true">{first.upper()}</span>'
    return mark_safe(letter)  # noqa: S308 - a letter, a digit or a dot


def pill_html(word: str) -> SafeString:
    """Return a state as a word with its tone."""
    shown = escape(str(WORDS.get(word, word.replace("_", " ").capitalize())))
    return mark_safe(f'<span class="pill {TONES.get(word, "")}">{shown}</span>')  # noqa: S308 - escaped
