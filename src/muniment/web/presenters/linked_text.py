"""Plain texts as HTML: with links, code, folded lines and places where a line may break."""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

from muniment.languages.writing import number

SHOWN_LINES: Final = 5
"""Number of lines of a longer text on a page for reviewers; the others are one click away."""
UNFOLDED_LINES: Final = 10
_ROOM: Final = re.compile(r"(?<![\w/:.])(/(?:manage|review|docs|connect|companies|people|frameworks)(?:/[a-z-]+)*)\b")
_URL: Final = re.compile(r"(https?://[^\s<>\"'()]+[^\s<>\"'().,;:!?])")


def breakable(link: str) -> SafeString:
    """Allow line breaks in *link* after its slashes rather than within a word."""
    return mark_safe(escape(link).replace("/", "/<wbr>"))  # noqa: S308 - escaped


def linked_html(text: str) -> SafeString:
    """Return a text whose URLs are links; search engines don't follow them, and they don't learn who came."""
    html = []
    # Split at a pattern with one group, a text has the matches at the odd places.
    for place, piece in enumerate(_URL.split(text)):
        if place % 2:
            html.append(f'<a href="{escape(piece)}" rel="nofollow ugc noopener">{breakable(piece)}</a>')
        else:
            html.append(escape(piece))
    return mark_safe("".join(html))  # noqa: S308 - every piece is escaped


def folded_html(text: str) -> SafeString:
    """Return a text as :func:`linked_html` does, its further lines behind a button that shows them."""
    lines = text.split("\n")
    more = len(lines) - SHOWN_LINES
    if len(lines) <= UNFOLDED_LINES:
        return _rows(lines)
    words = ngettext("Show %(count)s more line", "Show %(count)s more lines", more) % {"count": number(more)}
    return format_html(
        "{}<details><summary>{}</summary>{}</details>",
        _rows(lines[:SHOWN_LINES]),
        words,
        _rows(lines[SHOWN_LINES:]),
    )


def _rows(lines: Sequence[str]) -> SafeString:
    return format_html_join("", "<div>{}</div>", ((linked_html(line),) for line in lines))


def coded_html(text: str) -> SafeString:
    """Return a text with what is between backquotes as code."""
    parts = text.split("`")
    parts[1::2] = [format_html("<code>{}</code>", code) for code in parts[1::2]]
    return format_html_join("", "{}", ((part,) for part in parts))


def pathed_html(text: str) -> SafeString:
    """Return a text in which the addresses of the registry's own rooms are links."""
    parts = _ROOM.split(text)
    parts[1::2] = [format_html('<a href="{0}">{0}</a>', address) for address in parts[1::2]]
    return format_html_join("", "{}", ((part,) for part in parts))
