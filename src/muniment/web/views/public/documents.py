"""Published documents for the pages, with the nearest slugs where there is none."""

import re
from typing import Final
from urllib.parse import quote

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound
from muniment.registry_toml.vocabulary import hidden_members
from muniment.store.reader import Found
from muniment.web.requests.page_cache import reader

_KINDS: Final = {"companies": "company", "people": "person", "frameworks": "framework"}
_FORM: Final = re.compile(
    r"/(?P<room>companies|people|frameworks)(?:/(?P<key>[^/]{1,200})(?P<rest>(?:/[^/]+)*))?/*", re.IGNORECASE
)
KEPT: Final = "public, max-age=3600"


def document(kind: str, key: str) -> Found:
    """
    Return a published document.

    Raises:
        NotFound: there is none; with the nearest slugs.
    """
    found = reader().document(kind, key)
    if found is not None:
        return found
    folder, message = {
        "company": ("companies", gettext("There is no company at the address “/companies/%(slug)s”.")),
        "person": ("people", gettext("There is no person at the address “/people/%(slug)s”.")),
        "framework": ("frameworks", gettext("There is no framework at the address “/frameworks/%(slug)s”.")),
    }[kind]
    hint = gettext("It may no longer be listed. Check the address or search.")
    problem = NotFound(message % {"slug": key[:200]}, hint)
    nearest = [(near, f"/{folder}/{quote(near)}") for near in reader().nearest(kind, key)[:3]]
    problem.nearest = nearest  # type: ignore[attr-defined]  # for the page of trouble, which looks for it
    raise problem


def bundle_of(slug: str) -> JSONObject:
    """
    Return a published company with its parts, without the sections that this registry does not have.

    Raises:
        NotFound: there is none.
    """
    data: JSONObject = msgspec.json.decode(document("company", slug).body)["data"]
    for name in hidden_members():
        data.pop(name, None)
        data["company"].pop(name, None)
    return data


class PermanentRedirect(HttpResponseRedirect):
    """A redirect that keeps the method."""

    status_code = 308


def moved_page(request: HttpRequest) -> HttpResponse | None:
    """
    Return a redirect to the page whose address is given with a slash at the end or in other letter case, or None.

    Only the form of a path of this registry is changed, so no redirect leads elsewhere, and only a path that has such
    a form costs a look.
    """
    path = request.path_info
    if path == path.lower() and not path.endswith("/"):
        return None
    match = _FORM.fullmatch(path)
    if match is None:
        return None
    there = f"/{match['room'].lower()}"
    if match["key"]:
        source = reader()
        source.refresh()
        kind, key = _KINDS[match["room"].lower()], match["key"]
        if source.document(kind, key) is None:  # as it was typed first, because a key may have capitals
            key = key.lower()
            if source.document(kind, key) is None:
                return None
        there += f"/{quote(key, safe='')}{quote(match['rest'], safe='/')}"
    if there == quote(path):
        return None
    query = request.META.get("QUERY_STRING", "")
    if query:
        there += f"?{query}"
    response = PermanentRedirect(there)
    response["Cache-Control"] = KEPT
    return response
