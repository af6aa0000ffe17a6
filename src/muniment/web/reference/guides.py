"""The guides, written in Markdown, with samples that run as printed on the instance that shows them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final, NamedTuple

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_lazy
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

BASE: Final = "https://registry.example"
COMPANY: Final = "example-company"
"""Stand for the instance's address and for one of its companies in the texts."""
LANGUAGES: Final = {"sh": "curl", "python": "Python", "ts": "TypeScript", "mcp": "MCP"}


class Guide(NamedTuple):
    """A guide: its part of the address, and its title and purpose in lists."""

    key: str
    title: Any
    purpose: Any


GUIDES: Final = (
    Guide("read", gettext_lazy("Read the registry"), gettext_lazy("Lists, search, filters and single items.")),
    Guide("query", gettext_lazy("Query in SQL"), gettext_lazy("Joins, sums and tables for spreadsheets.")),
    Guide("follow", gettext_lazy("Follow changes"), gettext_lazy("Exports, the change feed and Atom feeds.")),
    Guide(
        "connect",
        gettext_lazy("Use the tool servers"),
        gettext_lazy("Call tools from an agent or a program."),
    ),
    Guide("manage", gettext_lazy("Manage a listing"), gettext_lazy("Publish a listing, update it and get assessed.")),
)


class Sample(NamedTuple):
    """Code in one of `LANGUAGES`."""

    language: str
    code: str


class _GuideRenderer(RendererHTML):
    """Renders alternatives of a sample as tabs, and tables so that they scroll by themselves."""

    def alternatives(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        samples: list[Sample] = tokens[idx].meta["samples"]
        env["tabs"] = env.get("tabs", 0) + 1
        return tabs_html(f"sample-{env['tabs']}", samples)

    def table_open(self, _tokens: Sequence[Token], _idx: int, _options: Any, _env: Any) -> str:
        return f'<div class="scroll" role="group" aria-label="{escape(gettext("Table"))}" tabindex="0"><table>'

    def table_close(self, _tokens: Sequence[Token], _idx: int, _options: Any, _env: Any) -> str:
        return "</table></div>"


_TITLE: Final = 3
"""The tokens of the title, which the page shows as its own."""
_parser: Final = MarkdownIt("commonmark", {"html": False}, renderer_cls=_GuideRenderer).enable(["table"])


@cache
def source(key: str) -> str:
    """Return the Markdown of a guide."""
    return files(__package__).joinpath("guides", f"{key}.md").read_text()


def samples(key: str) -> Iterator[Sample]:
    """Yield the samples of a guide."""
    return (Sample(token.info, token.content) for token in _parser.parse(source(key)) if token.type == "fence")


def filled(text: str, base: str, company: str) -> str:
    """Return *text* for the instance at *base*, with the slug of one of its companies."""
    return text.replace(BASE, base).replace(COMPANY, company)


def render(key: str, base: str, company: str) -> SafeString:
    """Render a guide for the instance at *base*, with the slug of one of its companies."""
    tokens = list(_joined(_parser.parse(filled(source(key), base, company))))[_TITLE:]
    html: str = _parser.renderer.render(tokens, _parser.options, {})
    return mark_safe(html)  # noqa: S308 - ours, and the parser escapes HTML


def _joined(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield *tokens* with each row of samples as one token."""
    row: Token | None = None
    for token in tokens:
        if token.type != "fence":
            row = None
            if token.type == "heading_open" and token.tag == "h2":
                token.attrs["id"] = re.sub(r"\W+", "-", tokens[tokens.index(token) + 1].content.lower())
            yield token
        elif row is None:
            row = Token("alternatives", "", 0, meta={"samples": [Sample(token.info, token.content)]})
            yield row
        else:
            row.meta["samples"].append(Sample(token.info, token.content))


def tabs_html(name: str, shown: Sequence[Sample]) -> SafeString:
    """Return samples, of which one is shown at a time; *name* is unique on the page."""
    if len(shown) == 1:
        return _code_html(shown[0])
    tabs = ""
    for number, sample in enumerate(shown):
        checked = " checked" if number == 0 else ""
        tabs += f'<input type="radio" name="{name}" id="{name}-{number}"{checked}>'
        tabs += f'<label for="{name}-{number}">{LANGUAGES[sample.language]}</label>'
    panels = "".join(f'<div class="sample">{_code_html(sample)}</div>' for sample in shown)
    legend = escape(gettext("Language of the sample"))
    return mark_safe(f'<fieldset class="tabs"><legend class="unseen">{legend}</legend>{tabs}{panels}</fieldset>')  # noqa: S308 - escaped


def _code_html(sample: Sample) -> SafeString:
    words: Mapping[str, str] = {"done": gettext("Copied"), "failed": gettext("Select and copy")}
    label = escape(gettext("Sample in %(language)s") % {"language": LANGUAGES[sample.language]})
    data = " ".join(f'data-{name}="{escape(text)}"' for name, text in words.items())
    return mark_safe(  # noqa: S308 - escaped
        f'<div class="copy"><pre tabindex="0" role="group" aria-label="{label}">'
        f"<code>{escape(sample.code)}</code></pre>"
        f'<button class="button slim" type="button" data-copy {data}>{escape(gettext("Copy"))}</button></div>'
    )
