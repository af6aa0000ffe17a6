"""
Render user-written Markdown as safe HTML.

Raw HTML stays text, pictures become links (pages load nothing from other hosts), and nh3 sanitizes the result.
Headings continue the page's outline without a gap. What parsing may cost is bounded by its steps: a text with more
markup than any that people write is shown as it was typed.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_CHARACTERS = 200_000
"""The part of a text that a page renders; the API returns the whole text."""
MAX_STEPS = 40_000
"""Places at which the parser tries its rules: a text of full length that is a list or table throughout takes 25,000."""
MAX_BLOCKS = 40_000
"""Tokens of blocks; the parser fills up short rows of a wide table with cells that take no step."""

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_BLOCKS = ("p", "h2", "h3", "h4", "h5", "h6", "li", "td", "th", "blockquote")


class _Renderer(RendererHTML):
    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Return a link instead of the picture."""
        token = tokens[idx]
        label = self.renderInlineAsText(token.children or (), options, env) or "picture"
        href = nh3.clean_text(str(token.attrs.get("src", "")))
        return f'<a href="{href}">{nh3.clean_text(label)}</a>'


_UNMARKED = re.compile(r"[^\W\d_][^\n\r\t\0\\`*_\[\]<&~|]*")
"""A paragraph of one line in which nothing is markup, like most summaries: parsing it would only cost time."""
_LINK = re.compile(
    r"(?<!!)\[([^\n\r\t\0\\`*_\[\]<&~|]*[^\s\\`*_\[\]<&~|])\]\(https?://[\w.-]+(?:/[\w/.-]*)?\)", re.ASCII
)
"""A link of plain words to a plain address, of which only the words are shown."""
_AFTER_PROSE = re.compile(r"\r?\n\s*\n(?=[-*+] |[#|>]|\d+[.)] )")
_ABSOLUTE = re.compile(r"https?://|mailto:", re.IGNORECASE)
_RECORD = re.compile(r"/(?:companies|people|frameworks)/[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
"""The page of a public record."""
_PLAIN_LINK = re.compile(r"https?://(?!.*xn--)[a-z0-9.-]+(?:/[A-Za-z0-9/_.-]*)?")
"""A link in which nothing is encoded, so that its normal form and its text are the link itself."""


class _TooMuchMarkup(Exception):  # noqa: N818 - a verdict
    """Parsing takes more than `MAX_STEPS` or `MAX_BLOCKS`."""


def _count(env: Any) -> None:
    env["steps"] = env.get("steps", 0) + 1
    if env["steps"] > MAX_STEPS:
        raise _TooMuchMarkup


def _count_inline(state: StateInline, _silent: bool) -> bool:  # noqa: FBT001 - the signature of a rule
    _count(state.env)
    return False


def _count_block(state: StateBlock, _line: int, _end: int, _silent: bool) -> bool:  # noqa: FBT001 - the signature of a rule
    _count(state.env)
    if len(state.tokens) > MAX_BLOCKS:
        raise _TooMuchMarkup
    return False


class _Parser(MarkdownIt):
    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the parser's name
        return url if _PLAIN_LINK.fullmatch(url) else super().normalizeLink(url)

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the parser's name
        return link if _PLAIN_LINK.fullmatch(link) else super().normalizeLinkText(link)


_parser = _Parser("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])
# A rule that never applies is tried first at every place, also where the parser looks ahead.
_parser.inline.ruler.before("text", "count", _count_inline)
_parser.block.ruler.before("table", "count", _count_block, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def _outline(tokens: Sequence[Token], top: int) -> None:
    """Move headings below *top*, none more than one step under the one before it, and mark cells of numbers."""
    stack: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            asked = int(token.tag[1])
            while stack and stack[-1] >= asked:
                stack.pop()
            stack.append(asked)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(top + len(stack), 6)}"
        if token.attrs.pop("style", "") == "text-align:right":  # of a cell; a page's policy allows no style
            token.attrs["class"] = "number"


def render(text: str, top: int = 2) -> SafeString:
    """
    Render *text* for a page whose section heading has the level *top*.

    Source: decisions, section 5; a page's policy allows no script, style or frame either.
    """
    return _rendered(text[:MAX_CHARACTERS], top, gettext("Table"))


@lru_cache(maxsize=256)
def _rendered(text: str, top: int, table: str) -> SafeString:
    try:
        tokens = _parser.parse(text)
    except _TooMuchMarkup:
        return _as_typed(text)
    _outline(tokens, top)
    html = _parser.renderer.render(tokens, _parser.options, {})
    clean = _cleaner.clean(html)
    scroll = f'<div class="scroll" role="group" aria-label="{escape(table)}" tabindex="0"><table>'
    clean = clean.replace("<table>", scroll)
    clean = clean.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    return mark_safe(clean)  # noqa: S308 - nh3 let only the tags above through


def _as_typed(text: str) -> SafeString:
    """Return *text* in its paragraphs and lines, with its markup as signs."""
    paragraphs = (paragraph.strip("\n") for paragraph in text.replace("\r\n", "\n").split("\n\n"))
    html = "\n".join(f"<p>{escape(each)}</p>".replace("\n", "<br>\n") for each in paragraphs if each.strip())
    return mark_safe(_cleaner.clean(html))  # noqa: S308 - nh3 let only the tags above through


def _public_only(tag: str, name: str, value: str) -> str | None:
    """Drop links into this instance that lead to something else than a public record."""
    is_link = name == "href" and tag == "a"
    return None if is_link and not _ABSOLUTE.match(value) and not _RECORD.fullmatch(value) else value


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
    before = _AFTER_PROSE.split(start, maxsplit=1)[0]
    start = before if before.strip() and not before.lstrip().startswith("#") else start
    first = start.partition("\n\n")[0]
    shown = _LINK.sub(r"\1", first)
    words = _one_line(shown) if _UNMARKED.fullmatch(shown) else ""
    if not words or (len(words) <= limit and first != start):  # the paragraphs behind it are shown too
        words = _one_line(re.sub(r"<[^>]*>", " ", _text(start)))
    return words if len(words) <= limit else words[: limit - 1].rsplit(" ", 1)[0].rstrip(",;:.") + "…"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _text(text: str) -> str:
    pieces = []
    try:
        tokens = _parser.parse(text)
    except _TooMuchMarkup:
        return text
    for token in tokens:
        for child in token.children or ():
            if child.type in {"text", "code_inline"}:
                pieces.append(child.content)
            elif child.type in {"softbreak", "hardbreak"}:
                pieces.append(" ")
        if token.type.endswith("_close"):
            pieces.append(" ")
    return "".join(pieces)
