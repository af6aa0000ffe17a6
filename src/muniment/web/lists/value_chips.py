"""Values of filters that are suggested while words are typed, as links to the list that has them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from django.conf import settings

from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import speaking
from muniment.schema.filters import Chosen
from muniment.store.search.values import has_beginnings
from muniment.store.search_text import pieces
from muniment.web.lists.search import ListFilter, ListName, Search, list_query, registry_list
from muniment.web.requests.page_cache import reader

SHOWN: Final = 4
"""Maximum values suggested: they fill two lines on a phone."""
MAX_CODES: Final = 300
"""Values in use of a filter whose values have labels, such as countries."""
LISTS: Final[tuple[ListName, ...]] = ("companies", "people", "frameworks")


class ValueChip(NamedTuple):
    """
    A value of a filter.

    Args:
        label: the filter.
        total: the number of items in the list at *address*.
    """

    label: str
    value: str
    total: int
    address: str


def chips_of_everything(text: str) -> list[ValueChip]:
    """Return values that *text* begins, of the filters of all lists."""
    chips: list[ValueChip] = []
    for name in LISTS:
        if len(chips) < SHOWN:
            chips += value_chips(Search(registry_list(name)), text)
    return chips[:SHOWN]


def value_chips(search: Search, text: str) -> list[ValueChip]:
    """Return values that *text* begins, of the filters that a search does not have; each takes the place of *text*."""
    if not _is_worth_a_look(text):
        return []
    searched = search.without_words()
    parameters = {parameter.name: parameter for parameter in search.of.parameters}
    suggestions = reader().suggest(search.of.kind, list_query(searched), text, list(_filters(search, text)), SHOWN)
    chips = []
    for name, value, total in suggestions:
        if not searched.chosen and total == reader().count(search.of.kind):  # the whole list has it
            continue
        parameter = parameters[name]
        filtered = replace(searched, chosen={**searched.chosen, name: (value,)}, page=1)
        chips.append(ValueChip(str(parameter.label), parameter.label_of(value), total, filtered.address()))
    return chips


def _is_worth_a_look(text: str) -> bool:
    """Return whether *text* is more than one letter of an alphabet, which begins most values."""
    return len(text) > 1 or text > "\u02ff"


def _filters(search: Search, text: str) -> Iterator[Chosen]:
    """Yield the filters to look among; those with labels only if a label has the words of *text*."""
    words = pieces(text)
    filters = settings.SCHEMA.listings[search.of.kind].filters
    for parameter in search.of.parameters:
        if parameter.name in search.chosen or parameter.name not in filters:
            continue
        _, by = filters[parameter.name]
        if by.key:  # the values are names, which the search itself finds
            continue
        if not parameter.words():
            yield Chosen(parameter.name, (), by.in_text)
        elif values := _labelled(search.of.kind, parameter, words):
            yield Chosen(parameter.name, values, by.in_text)


def _labelled(kind: str, parameter: ListFilter, words: Sequence[str]) -> tuple[str, ...]:
    """Return the values in use whose label has the words, in the language of the page or in English."""
    used = reader().values(kind, parameter.name, MAX_CODES)
    with speaking(SOURCE):
        english = {value: parameter.label_of(value) for value in used}
    found = []
    for value in used:
        labels = (parameter.label_of(value), english[value])
        if any(has_beginnings(label, words) for label in labels):
            found.append(value)
    return tuple(found)
