"""Marks and state pills as HTML. They are in every row of a list, where templates of their own would cost most."""

from html import escape
from typing import Final

from django.utils.safestring import SafeString, mark_safe

from muniment.web.context import own_address
from muniment.web.presenters.monograms import colour, initials
from muniment.web.wording.states import state

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


def mark_html(name: str, logo: object = None, size: str = "", *, is_round: bool = False, key: str = "") -> SafeString:
    """
    Return a logo that this instance serves, or a monogram of *name*.

    Args:
        logo: the wire form of a logo, or the address of a picture; those of other sites are not shown.
        key: decides the colour of the monogram, by default the name.
    """
    address = own_address(logo)
    sized = f" {escape(size)}" if size else ""
    if address:
        pixels = 72 if size == "large" else 40
        image = f'<img class="mark{sized}" src="{address}" alt="" width="{pixels}" height="{pixels}" loading="lazy">'
        return mark_safe(image)  # noqa: S308 - our own address
    letters = initials(name.partition("@")[0] or name if is_round else name, is_person=is_round)
    classes = f"{sized}{' round' if is_round else ''}{' two' if len(letters) > 1 else ''}"
    shown = f'<span class="mark m{colour(key or name)}{classes}" aria-hidden="true">{letters}</span>'
    return mark_safe(shown)  # noqa: S308 - letters, digits and their signs, or a dot


def pill_html(word: str, shown: str = "") -> SafeString:
    """Return a state as a word with its tone; *shown* in place of the usual word."""
    shown = escape(shown or state(word))
    return mark_safe(f'<span class="pill {TONES.get(word, "")}">{shown}</span>')  # noqa: S308 - escaped
