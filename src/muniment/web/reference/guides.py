"""The guides, written in Markdown, with samples that run as printed on the instance that shows them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape, unescape
from importlib.resources import files
from typing import Any, Final, NamedTuple

import pyromark
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_lazy

BASE: Final = "https://registry.example"
COMPANY: Final = "example-company"
"""Stand for the instance's address and for one of its companies in the texts."""
LANGUAGES: Final = {"sh": "curl", "python": "Python", "ts": "TypeScript", "mcp": "MCP", "json": "JSON"}


class Guide(NamedTuple):
    """A guide: its part of the address, and its title and purpose in lists."""

    key: str
    title: Any
    purpose: Any


GUIDES: Final = (
    Guide("read", gettext_lazy("Read the registry"), gettext_lazy("Lists, search, filters and single items.")),
    Guide("query", gettext_lazy("Query in SQL"), gettext_lazy("Joins, sums and tables for spreadsheets.")),
    Guide("follow", gettext_lazy("Follow changes"), gettext_lazy("Exports, the change feed and Atom feeds.")),
    Guide("webhooks", gettext_lazy("Receive events"), gettext_lazy("Signed messages to a URL of yours.")),
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


_SAMPLE: Final = re.compile(r"^```(\w+)\n(.*?)^```\n\n?", re.MULTILINE | re.DOTALL)
_ROW: Final = re.compile(rf"(?:{_SAMPLE.pattern})+", _SAMPLE.flags)
"""Alternatives of a sample, which a page shows as tabs."""
_HEADING: Final = re.compile(r"<h2>(.*?)</h2>")


@cache
def source(key: str) -> str:
    """Return the Markdown of a guide."""
    return files(__package__).joinpath("guides", f"{key}.md").read_text()


def samples(key: str) -> Iterator[Sample]:
    """Yield the samples of a guide."""
    return _samples(source(key))


def _samples(text: str) -> Iterator[Sample]:
    return (Sample(language, code) for language, code in _SAMPLE.findall(text))


def filled(text: str, base: str, company: str) -> str:
    """Return *text* for the instance at *base*, with the slug of one of its companies."""
    return text.replace(BASE, base).replace(COMPANY, company)


def render(key: str, base: str, company: str) -> SafeString:
    """Render a guide for the instance at *base*, with the slug of one of its companies."""
    _, _, text = filled(source(key), base, company).partition("\n")  # the page shows the title as its own
    html, end = "", 0
    for number, row in enumerate(_ROW.finditer(text), start=1):
        html += _prose_html(text[end : row.start()]) + tabs_html(f"sample-{number}", list(_samples(row[0])))
        end = row.end()
    return mark_safe(html + _prose_html(text[end:]))  # noqa: S308 - ours


def _prose_html(text: str) -> str:
    html = pyromark.html(text, options=pyromark.Options.ENABLE_TABLES)
    html = _HEADING.sub(lambda found: f'<h2 id="{_anchor(found[1])}">{found[1]}</h2>', html)
    scroll = f'<div class="scroll" role="group" aria-label="{escape(gettext("Table"))}" tabindex="0"><table>'
    return html.replace("<table>", scroll).replace("</table>", "</table></div>")


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", unescape(re.sub(r"<[^>]*>", "", title)).lower())


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
