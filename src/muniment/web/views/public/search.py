"""The search page over all kinds, and its description for browsers."""

import json
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape, quoteattr

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
        kinds = (kind,) if kind else KINDS
        limit = SHOWN_ALONE if kind else SHOWN
        found = everything.search(reader(), text, limit=limit, kinds=kinds)
        closest = []
        for of, document in found.closest:
            why = guidance(document.why).rstrip(".") if document.is_former else ""
            closest.append((document.name, _path(of, document.id), why))
        query = {"q": text}
        if kind:
            query["kind"] = kind
        context |= {
            "groups": _groups(text, found),
            "counts": ", ".join(_count(kind, total) for kind, total in found.totals.items() if total),
            "closest": closest,
            "not_understood": ", ".join(found.not_understood),
            "value_chips": chips_of_everything(text),
            "named": None if found.results else named_in_everything(text),
            "as_json": f"/api/v1/search?{urlencode(query)}",
        }
    return TemplateResponse(request, "registry/search.html", context)


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
    found = everything.search(reader(), text, limit=SUGGESTIONS)
    former = {(kind, document.id): guidance(document.why) for kind, document in found.closest if document.is_former}
    kinds = {"company": gettext("Company"), "person": gettext("Person"), "framework": gettext("Framework")}
    options = []
    for result in found.results[:SUGGESTIONS]:
        symbol, type_ = result.item.get("symbol") or "", labelled("type", result.item.get("type") or "")
        said = former.get((result.kind, result.key)) or result.summary or type_
        options.append(BoxResult(_path(result.kind, result.key), kinds[result.kind], result.name, symbol, said))
    if not found.results:
        for kind, document in found.closest:
            said = former.get((kind, document.id), "")
            options.append(BoxResult(_path(kind, document.id), kinds[kind], document.name, "", said))
    context = {
        "q": text,
        "chips": chips_of_everything(text),
        "options": options,
        "is_close": bool(options) and not found.results,
        "total": sum(found.totals.values()),
    }
    return HttpResponse(get_template("part/found.html").render(context))


@published("q", speaks=False)
def suggestions(request: HttpRequest) -> HttpResponse:
    """Return names for the search field of a browser, with their addresses: matches, then similar documents."""
    text = everything.trimmed(request.GET.get("q", ""))
    rows: list[tuple[str, str, str]] = []
    if text:
        base, found = address(request), everything.search(reader(), text, limit=SUGGESTIONS)
        rows = [(each.name, each.about, f"{base}{_path(each.kind, each.key)}") for each in found.results]
        known = {path for _, _, path in rows}
        near = [(each.name, guidance(each.why), f"{base}{_path(kind, each.id)}") for kind, each in found.closest]
        rows += [row for row in near if row[2] not in known]
    told = zip(*rows[:SUGGESTIONS], strict=True) if rows else ((), (), ())
    body = json.dumps([text, *map(list, told)], ensure_ascii=False)
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
        f"<ShortName>{escape(name[:MAX_SHORT_NAME])}</ShortName>",
        f"<Description>{escape(about[:MAX_DESCRIPTION])}</Description>",
        "<InputEncoding>UTF-8</InputEncoding>",
        f'<Image type="image/svg+xml" width="16" height="16">{escape(icon)}</Image>',
        *(f"<Url type={quoteattr(kind)}{rel} template={quoteattr(where)}/>" for kind, where, rel in addresses),
    ]
    body = "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">',
            *lines,
            "</OpenSearchDescription>\n",
        )
    )
    return HttpResponse(body, content_type="application/opensearchdescription+xml; charset=utf-8")


def _groups(text: str, found: Everything) -> list[Group]:
    """Return the kinds with results, that of the best result first."""
    results: dict[str, list[tuple[Result, str]]] = {}
    for result, reason in zip(found.results, everything.reasons(reader(), text, found), strict=True):
        results.setdefault(result.kind, []).append((result, _said(reason)))
    return [_group(kind, text, found.totals[kind], shown) for kind, shown in results.items()]


def _said(reason: Reason) -> str:
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
    more = f"/{COLLECTIONS[kind]}?" if kind in LISTS else f"/search?kind={kind}&"
    return Group(kind, titles[kind], total, results, f"{more}{urlencode({'q': text})}" if total > len(results) else "")


def _count(kind: str, total: int) -> str:
    words = {
        "company": ngettext("%(total)s company", "%(total)s companies", total),
        "person": ngettext("%(total)s person", "%(total)s people", total),
        "framework": ngettext("%(total)s framework", "%(total)s frameworks", total),
    }
    return words[kind] % {"total": number(total)}


def _path(kind: str, key: str) -> str:
    return f"/{COLLECTIONS[kind]}/{quote(key, safe='')}"
