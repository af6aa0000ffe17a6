"""The search page over all kinds, and its description for browsers."""

import json
from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape, quoteattr

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import get_template
from django.template.response import TemplateResponse
from django.templatetags.static import static
from django.utils.translation import gettext, ngettext

from muniment.kernel.json import JSONObject
from muniment.languages.writing import number
from muniment.registry_toml import applied
from muniment.store.published_document import KINDS
from muniment.store.search import everything
from muniment.store.search.everything import COLLECTIONS, Everything, Reason, Result
from muniment.web.context import address
from muniment.web.lists.value_chips import chips_of_everything, named_in_everything
from muniment.web.requests import pagination
from muniment.web.requests.page_cache import published, reader
from muniment.web.wording.guidance import guidance
from muniment.web.wording.labels import labelled, words_of

SHOWN: Final = 8
"""Results of each kind side by side."""
SHOWN_ALONE: Final = 100
SUGGESTIONS: Final = 8
MAX_SHORT_NAME: Final = 16
MAX_DESCRIPTION: Final = 1_024
"""Characters that the description of a search has room for."""
LISTS: Final = frozenset({"company", "person"})
"""Kinds whose list pages through what a search finds."""

_ON_CARD: Final = frozenset({"name", "symbol", "slug", "type", "industry"})
"""Members that the card of a result shows; what only its slug has is no reason for people."""


class Group(NamedTuple):
    """
    The results of one kind.

    Args:
        results: each with why it matches, where its card does not show that.
        more: the address of all of them, if there are more.
    """

    kind: str
    title: str
    total: int
    results: list[tuple[Result, str]]
    more: str


@published("q", "kind")
def search(request: HttpRequest) -> HttpResponse:
    """Show what a search finds among companies, people and frameworks, side by side."""
    text = everything.trimmed(request.GET.get("q", ""))
    kind = pagination.chosen(request.GET, "kind", KINDS)
    context: JSONObject = {"room": "search", "q": text, "searched": text, "kind": kind}
    if text:
        query = {"q": text}
        kinds: Collection[str] = KINDS
        limit = SHOWN
        if kind:
            query["kind"] = kind
            kinds, limit = (kind,), SHOWN_ALONE
        context |= {
            **_results(text, _found(text, limit=limit, kinds=kinds)),
            "value_chips": chips_of_everything(text),
            "as_json": f"/api/v1/search?{urlencode(query)}",
            "printed_address": f"{address(request)}{request.path}?{urlencode(query)}",
        }
    return TemplateResponse(request, "registry/search.html", context)


def _results(text: str, answer: Everything) -> JSONObject:
    """Return what a search finds, or the values of filters that its words name, and similar documents."""
    named = None
    if not answer.results:
        named = named_in_everything(text)
    if named:
        # Pages know values by their labels too, in the language of the visitor.
        answer = everything.with_values_named(text, answer, named.words)
    closest = []
    for kind, document in answer.closest:
        why = guidance(document.why).rstrip(".") if document.is_former else ""
        closest.append((document.name, _path(kind, document.id), why))
    counts = [_count(kind, total) for kind, total in answer.totals.items() if total]
    return {
        "groups": _groups(text, answer),
        "counts": ", ".join(counts),
        "closest": closest,
        "not_understood": ", ".join(answer.not_understood),
        "named": named,
    }


class BoxResult(NamedTuple):
    """A result in the panel below the search box."""

    address: str
    kind: str
    name: str
    symbol: str
    said: str


@published("q")
def box(request: HttpRequest) -> HttpResponse:
    """Return the panel below the search box: values of filters, results or similar documents, a link to all results."""
    text = everything.trimmed(request.GET.get("q", ""))
    if not text:
        return HttpResponse()
    answer = _found(text, limit=SUGGESTIONS)
    chips = chips_of_everything(text)
    if not answer.results and not chips:
        named = named_in_everything(text)
        if named:
            answer = everything.with_values_named(text, answer, named.words)
            chips = named.chips
    options = _options(answer)
    context = {
        "q": text,
        "chips": chips,
        "options": options,
        "is_close": bool(options) and not answer.results,
        "total": sum(answer.totals.values()),
    }
    return HttpResponse(get_template("part/found.html").render(context))


def _options(answer: Everything) -> list[BoxResult]:
    """Return the first results; without any, similar documents."""
    kinds = {"company": gettext("Company"), "person": gettext("Person"), "framework": gettext("Framework")}
    # A document that had the searched name before is among the similar ones, even if it is a result.
    former_names = {}
    for kind, document in answer.closest:
        if document.is_former:
            former_names[kind, document.id] = guidance(document.why)
    options = []
    for result in answer.results[:SUGGESTIONS]:
        symbol, type_ = result.item.get("symbol") or "", labelled("type", result.item.get("type") or "")
        text_below = former_names.get((result.kind, result.key)) or result.summary or type_
        options.append(BoxResult(_path(result.kind, result.key), kinds[result.kind], result.name, symbol, text_below))
    if not answer.results:
        for kind, document in answer.closest:
            text_below = former_names.get((kind, document.id), "")
            options.append(BoxResult(_path(kind, document.id), kinds[kind], document.name, "", text_below))
    return options


@published("q", speaks=False)
def suggestions(request: HttpRequest) -> HttpResponse:
    """Return names for the search field of a browser, with their addresses: matches, then similar documents."""
    text = everything.trimmed(request.GET.get("q", ""))
    names: list[str] = []
    descriptions: list[str] = []
    addresses: list[str] = []
    if text:
        base, answer = address(request), _found(text, limit=SUGGESTIONS)
        for result in answer.results:
            names.append(result.name)
            descriptions.append(result.about)
            addresses.append(f"{base}{_path(result.kind, result.key)}")
        for kind, document in answer.closest:
            document_address = f"{base}{_path(kind, document.id)}"
            if document_address not in addresses:
                names.append(document.name)
                descriptions.append(guidance(document.why))
                addresses.append(document_address)
    # The form of the OpenSearch suggestions extension: the words, then three lists of the same length.
    columns = [names[:SUGGESTIONS], descriptions[:SUGGESTIONS], addresses[:SUGGESTIONS]]
    body = json.dumps([text, *columns], ensure_ascii=False)
    return HttpResponse(body, content_type="application/x-suggestions+json; charset=utf-8")


@published(speaks=False)
def description(request: HttpRequest) -> HttpResponse:
    """Return the OpenSearch description, by which browsers search the registry from their address bar."""
    base, name = address(request), applied.registry_name()
    about = gettext("Companies, people and frameworks of %(name)s") % {"name": name}
    icon = f"{base}{static('web/seal.svg')}"
    addresses = (
        ("text/html", f"{base}/search?q={{searchTerms}}", ""),
        ("application/x-suggestions+json", f"{base}/search/suggestions?q={{searchTerms}}", ""),
        ("application/json", f"{base}/api/v1/search?q={{searchTerms}}", ""),
        ("application/opensearchdescription+xml", f"{base}/opensearch.xml", ' rel="self"'),
    )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">',
        f"<ShortName>{escape(name[:MAX_SHORT_NAME])}</ShortName>",
        f"<Description>{escape(about[:MAX_DESCRIPTION])}</Description>",
        "<InputEncoding>UTF-8</InputEncoding>",
        f'<Image type="image/svg+xml" width="16" height="16">{escape(icon)}</Image>',
    ]
    for kind, template, rel in addresses:
        lines.append(f"<Url type={quoteattr(kind)}{rel} template={quoteattr(template)}/>")
    lines.append("</OpenSearchDescription>\n")
    return HttpResponse("\n".join(lines), content_type="application/opensearchdescription+xml; charset=utf-8")


def _found(text: str, *, limit: int, kinds: Collection[str] = KINDS) -> Everything:
    return everything.search(reader(), text, limit=limit, listings=settings.SCHEMA.listings, kinds=kinds)


def _groups(text: str, answer: Everything) -> list[Group]:
    """Return the kinds with results, that of the best result first."""
    results: dict[str, list[tuple[Result, str]]] = {}
    for result, reason in zip(answer.results, everything.reasons(reader(), text, answer), strict=True):
        results.setdefault(result.kind, []).append((result, _why(reason)))
    return [_group(kind, text, answer.totals[kind], shown) for kind, shown in results.items()]


def _why(reason: Reason) -> str:
    """Return why a result matches; nothing where its card shows it."""
    if not reason.value or reason.of in _ON_CARD:
        return ""
    if reason.of == "text":
        return reason.value
    labels = {
        "theme": gettext("Theme"),
        "orgKind": gettext("Subtype"),
        "place": gettext("Place"),
        "domain": gettext("Website"),
        "former name": gettext("Formerly"),
        "person": gettext("Person"),
        "position": gettext("Position"),
        "proposal": gettext("Proposal"),
        "holder": gettext("Token holder"),
    }
    value = labelled(reason.of, reason.value)
    return f"{labels.get(reason.of) or words_of(reason.of)}: {value}"


def _group(kind: str, text: str, total: int, results: list[tuple[Result, str]]) -> Group:
    titles = {"company": gettext("Companies"), "person": gettext("People"), "framework": gettext("Frameworks")}
    more = ""
    if total > len(results):
        page = f"/{COLLECTIONS[kind]}?" if kind in LISTS else f"/search?kind={kind}&"
        more = f"{page}{urlencode({'q': text})}"
    return Group(kind, titles[kind], total, results, more)


def _count(kind: str, total: int) -> str:
    words = {
        "company": ngettext("%(total)s company", "%(total)s companies", total),
        "person": ngettext("%(total)s person", "%(total)s people", total),
        "framework": ngettext("%(total)s framework", "%(total)s frameworks", total),
    }
    return words[kind] % {"total": number(total)}


def _path(kind: str, key: str) -> str:
    return f"/{COLLECTIONS[kind]}/{quote(key, safe='')}"
