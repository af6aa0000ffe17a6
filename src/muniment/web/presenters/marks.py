"""Monograms and state pills as HTML. They are in every row of a list, where templates of their own would cost most."""

import hashlib
import unicodedata
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from muniment.web.context import own_address

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
    address = own_address(icon)
    sized = f" {size}" if size else ""
    if address:
        pixels = 72 if size == "large" else 40
        image = '<img class="mark{}" src="{}" alt="" width="{}" height="{}" loading="lazy">'
        return format_html(image, sized, address, pixels, pixels)
    letter = next((c for c in unicodedata.normalize("NFC", name) if c.isalnum()), "·").upper()
    tint = hashlib.blake2s(name.encode(), digest_size=1).digest()[0] % 6
    letters = '<span class="mark m{}{}{}" aria-hidden="true">{}</span>'
    return format_html(letters, tint, sized, " round" if is_round else "", letter)


def pill_html(word: str) -> SafeString:
    """Return a state as a word with its tone."""
    shown = str(WORDS.get(word, word.replace("_", " ").capitalize()))
    return format_html('<span class="pill {}">{}</span>', TONES.get(word, ""), shown)
