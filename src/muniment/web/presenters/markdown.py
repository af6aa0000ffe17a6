"""
Render user-written Markdown as safe HTML.

pyromark parses it, which takes a tenth of the time that a parser in Python takes on the first visit of a page, and nh3
sanitizes the result. Raw HTML stays text, pictures become links (pages load nothing from other hosts), and headings
continue the page's outline without a gap.
"""

import re
from functools import lru_cache
from html import escape, unescape
from typing import Final

import nh3
import pyromark
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

MAX_CHARACTERS = 200_000
"""The part of a text that a page renders; the API returns the whole text."""
MAX_DEPTH = 100
"""Elements within each other: deeper ones are no text, and nh3 takes a time that grows with their square."""

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_BLOCKS = ("p", "h2", "h3", "h4", "h5", "h6", "li", "td", "th", "blockquote")
_OPTIONS: Final = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
_RAW: Final = ("Html", "InlineHtml")
# Forms of the parser's own HTML. What is written like them in a text is escaped there, or sanitized behind them.
_NESTED = re.compile(r"<(/?)(?:blockquote|[uo]l|em|strong|del)\b")
_HEADING = re.compile(r"<(/?)h([1-6])>")
_PICTURE = re.compile(r'<img src="([^"]*)" alt="([^"]*)"[^>]*>')
_OF_NUMBERS = ' style="text-align: right"'
_WITHIN_LINE = re.compile(r"</?(?:a|em|strong|del|code|img)\b[^>]*>")
_OF_CODE = re.compile(r"<pre>.*?</pre>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")

_AFTER_PROSE = re.compile(r"\r?\n\s*\n(?=[-*+] |[#|>]|\d+[.)] )")
_ABSOLUTE = re.compile(r"https?://|mailto:", re.IGNORECASE)
_RECORD = re.compile(r"/(?:companies|people|frameworks)/[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
"""The page of a public record."""


def render(text: str, top: int = 2) -> SafeString:
    """
    Render *text* for a page whose section heading has the level *top*.

    Source: decisions, section 5; a page's policy allows no script, style or frame either.
    """
    return _rendered(text[:MAX_CHARACTERS], top, gettext("Table"))


@lru_cache(maxsize=256)
def _rendered(text: str, top: int, table: str) -> SafeString:
    html = _parsed(text)
    if _is_too_deep(html):
        return _as_typed(text)
    html = _outlined(html, top).replace(_OF_NUMBERS, ' class="number"')  # a page's policy allows no style
    clean = _cleaner.clean(_PICTURE.sub(_link_to_picture, html))
    scroll = f'<div class="scroll" role="group" aria-label="{escape(table)}" tabindex="0"><table>'
    clean = clean.replace("<table>", scroll)
    clean = clean.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    return mark_safe(clean)  # noqa: S308 - nh3 let only the tags above through


def _parsed(text: str) -> str:
    """Return the HTML of *text*, in which raw HTML is text; it is not safe yet."""
    if "<" in text:
        text = _without_html(text)
    return pyromark.html(text, options=_OPTIONS)


def _without_html(text: str) -> str:
    """Return *text* in which raw HTML begins with a character reference, so that it is shown as it was typed."""
    source = text.encode()
    pieces, end = [], 0
    for event, place in pyromark.events_with_range(text, options=_OPTIONS):
        if isinstance(event, dict) and any(kind in event for kind in _RAW):
            pieces += [source[end : place["start"]], source[place["start"] : place["end"]].replace(b"<", b"&lt;")]
            end = place["end"]
    return b"".join([*pieces, source[end:]]).decode()


def _is_too_deep(html: str) -> bool:
    depth = 0
    for tag in _NESTED.finditer(html):
        depth += -1 if tag[1] else 1
        if depth > MAX_DEPTH:
            return True
    return False


def _outlined(html: str, top: int) -> str:
    """Return *html* with its headings below *top*, none more than one step under the one before it."""
    stack: list[int] = []

    def heading(tag: re.Match[str]) -> str:
        level = int(tag[2])
        if not tag[1]:
            while stack and stack[-1] >= level:
                stack.pop()
            stack.append(level)
        return f"<{tag[1]}h{min(top + len(stack), 6)}>"

    return _HEADING.sub(heading, html)


def _link_to_picture(tag: re.Match[str]) -> str:
    return f'<a href="{tag[1]}">{tag[2] or "picture"}</a>'


def _as_typed(text: str) -> SafeString:
    """Return *text* in its paragraphs and lines, with its markup as signs."""
    paragraphs = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        if block.strip():
            lines = escape(block.strip("\n")).replace("\n", "<br>\n")
            paragraphs.append(f"<p>{lines}</p>")
    return mark_safe(_cleaner.clean("\n".join(paragraphs)))  # noqa: S308 - nh3 let only the tags above through


def _public_only(tag: str, name: str, value: str) -> str | None:
    """Drop links into this instance that lead to something else than a public record."""
    if tag == "a" and name == "href" and not _ABSOLUTE.match(value) and not _RECORD.fullmatch(value):
        return None
    return value


_cleaner = nh3.Cleaner(
    tags=_TAGS,
    attributes={"a": {"href"}, "ol": {"start"}},
    allowed_classes={"td": {"number"}, "th": {"number"}},
    url_schemes={"http", "https", "mailto"},
    link_rel="nofollow ugc noopener noreferrer",
    attribute_filter=_public_only,
    set_tag_attribute_values={tag: {"dir": "auto"} for tag in _BLOCKS},
)


def plain(text: str, limit: int = 200) -> str:
    """Return the first words of a Markdown *text* without its markup, for descriptions and lists."""
    return _plain(text[: 8 * limit], limit)


@lru_cache(maxsize=2048)
def _plain(start: str, limit: int) -> str:
    """
    Return the words of the *start* of a text, up to a list, table or heading after its first paragraphs.

    Lists show the same texts again, in other orders and editions.
    """
    prose = _AFTER_PROSE.split(start, maxsplit=1)[0]
    if prose.strip() and not prose.lstrip().startswith("#"):
        start = prose
    html = _WITHIN_LINE.sub("", _OF_CODE.sub(" ", _parsed(start)))
    text = unescape(_TAG.sub(" ", html))
    # Raw HTML of the text is escaped in the parser's HTML, so its tags appear only now.
    words = " ".join(_TAG.sub(" ", text).split())
    if len(words) <= limit:
        return words
    return words[: limit - 1].rsplit(" ", 1)[0].rstrip(",;:.") + "…"
