"""Published documents for the pages, with the nearest slugs where there is none."""

from urllib.parse import quote

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound
from muniment.store.reader import Found
from muniment.web.requests.page_cache import reader
from muniment.web.translating import gettext


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
        "company": ("companies", gettext("No company has the slug “%(key)s”.")),
        "person": ("people", gettext("No person has the slug “%(key)s”.")),
        "framework": ("frameworks", gettext("No framework has the id “%(key)s”.")),
    }[kind]
    problem = NotFound(message % {"key": key[:200]}, gettext("Check the address or search."))
    nearest = [(near, f"/{folder}/{quote(near)}") for near in reader().nearest(kind, key)[:3]]
    problem.nearest = nearest  # type: ignore[attr-defined]  # for the page of trouble, which looks for it
    raise problem


def bundle_of(slug: str) -> JSONObject:
    """
    Return a published company with its parts.

    Raises:
        NotFound: there is none.
    """
    data: JSONObject = msgspec.json.decode(document("company", slug).body)["data"]
    return data
