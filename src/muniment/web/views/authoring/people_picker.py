"""Suggest people for a position: public profiles whose name begins with what is typed, with where they hold one."""

from typing import Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from muniment.store.queries import ListQuery
from muniment.web.requests.access import signed_in
from muniment.web.requests.page_cache import reader

SUGGESTED: Final = 6
MIN_CHARACTERS: Final = 2
MAX_CHARACTERS: Final = 100
_decode: Any = msgspec.json.decode


@signed_in("GET", "HEAD")
def suggest(request: HttpRequest) -> HttpResponse:
    """Return the options of the people picker, as items of a list box."""
    text = " ".join(request.GET.get("q", "")[:MAX_CHARACTERS].split())
    source = reader()
    source.refresh()
    people = []
    if len(text) >= MIN_CHARACTERS or text > "\u02ff":  # one letter of a script without spaces is a word
        found = source.people(ListQuery(q=text, page_size=SUGGESTED))
        slugs = [_decode(item)["slug"] for item in found.items]
        documents = source.documents([("person", slug) for slug in slugs])
        people = [_decode(each.body)["data"] for slug in slugs if (each := documents.get(("person", slug)))]
    options = [
        {"slug": each["slug"], "name": each["name"], "place": _place(each), "picture": each.get("picture")}
        for each in people
    ]
    return render(request, "manage/people_options.html", {"options": options})


def _place(person: Any) -> str:
    """Return the first position of a person: title and organization."""
    for position in person.get("positions") or ():
        if company := position.get("company"):
            return ", ".join(filter(None, (position.get("title"), company["name"])))
    return ""
