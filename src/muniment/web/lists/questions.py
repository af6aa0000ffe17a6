"""Questions in plain words on pages: the list that a question means, as a search of its own."""

from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.http import QueryDict

from muniment.store.search.questions.asking import question, quoted
from muniment.store.search.questions.reading import Reading
from muniment.web.lists.catalog import registry_list
from muniment.web.lists.links import Chip, chips, title
from muniment.web.lists.search import DEFAULT, ListName, Search, joined
from muniment.web.requests.page_cache import reader
from muniment.web.translating import gettext

_LISTS: Final[dict[str, ListName]] = {"company": "companies", "person": "people", "framework": "frameworks"}


class Meant(NamedTuple):
    """
    The list that a question means.

    Args:
        label: the name of the list.
        title: its filters in a line.
        chips: what was read; each leads to the list without it.
        address: the list.
        words_address: the search for the words of the question instead.
        unclear: the words that no filter means exactly, so that the list may not be the answer.
    """

    label: str
    title: str
    chips: list[Chip]
    address: str
    words_address: str
    search: Search
    unclear: str


def meant(text: str, reading: Reading) -> Meant:
    search = search_of(reading)
    removable = chips(search)
    if search.sort:
        order = str(search.of.orders.get(search.sort, search.of.order))
        removable.append(Chip(gettext("Sorted by"), order, search.sorted_by("").address()))
    words = joined("/search", [("q", quoted(text))])
    unclear = ", ".join(reading.not_understood)
    return Meant(str(search.of.label), title(search), removable, search.address(), words, search, unclear)


def meant_by(search: Search) -> Meant | None:
    """
    Return the list that the words of a search mean, if they are a question.

    Of the same list, what is chosen besides stays, unless the question says otherwise. A search that has filters means
    no other list.
    """
    reading = question(reader(), settings.SCHEMA.listings, search.q) if search.q else None
    if reading is None:
        return None
    found = meant(search.q, reading)
    if found.search.of.name != search.of.name:
        return None if search.chosen else found
    read = found.search
    kept = DEFAULT if search.sort == "newest" and not read.q else search.sort
    here = replace(read, chosen={**search.chosen, **read.chosen}, sort=read.sort or kept, page=search.page)
    words = replace(search, q=quoted(search.q), page=1)
    return found._replace(
        title=title(here), chips=chips(here), address=here.address(), words_address=words.address(), search=here
    )


def search_of(reading: Reading) -> Search:
    """Return the search that has the filters of a reading; the words that it leaves are not read again."""
    listings = settings.SCHEMA.listings
    parameters = reading.parameters()
    if reading.q and question(reader(), listings, reading.q) is not None:
        parameters = [(name, quoted(value) if name == "q" else value) for name, value in parameters]
    return Search.read(registry_list(_LISTS[reading.kind]), QueryDict(urlencode(parameters)))
