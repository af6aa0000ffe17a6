"""Values of filters that are typed, or that the words of a search without results name, as links to lists."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from django.conf import settings

from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import speaking
from muniment.schema.filters import Chosen
from muniment.store.search.named_values import MAX_WORDS, may_be_value, spans
from muniment.store.search.values import has_beginnings, same_names, singular
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
    return [_chip(search.without_words(), value) for value in _suggested(search, text)]


class NamedValues(NamedTuple):
    """
    The values of filters that words of a search name, which itself finds nothing.

    Args:
        chips: each alone.
        together: the number of items that have all of them, and the address of their list; None of a single value.
        words: of the search, folded, that name them.
    """

    chips: list[ValueChip]
    together: tuple[int, str] | None
    words: frozenset[str]


def named_in_everything(text: str) -> NamedValues | None:
    """Return the values that words of *text* name, of the filters of the first list that has one."""
    for name in LISTS:
        named = named_values(Search(registry_list(name), q=text))
        if named:
            return named
    return None


def named_values(search: Search) -> NamedValues | None:
    """Return the values that words of a search name as a whole: two of "DAOs in Zug"; None if there are none."""
    words = search.q.split()[:MAX_WORDS]
    if len(words) < 2:  # a single word is what `value_chips` looks for
        return None
    values: list[ValueInUse] = []
    used_places: set[int] = set()
    for places, text in spans(words):
        if not used_places.isdisjoint(places):
            continue
        value = _named(search, text)
        if value and all(value.parameter != other.parameter for other in values):
            values.append(value)
            used_places.update(places)
    if not values:
        return None
    words_of_values = frozenset(pieces(" ".join(words[place] for place in sorted(used_places))))
    searched = search.without_words()
    chips = [_chip(searched, value) for value in values]
    if len(values) == 1:
        return NamedValues(chips, None, words_of_values)
    for value in values:
        searched = replace(searched, chosen={**searched.chosen, value.parameter.name: (value.text,)}, page=1)
    total = reader().page(search.of.kind, list_query(searched, page_size=1)).total
    return NamedValues(chips, (total, searched.address()), words_of_values)


class ValueInUse(NamedTuple):
    """A value in use of a filter, and the number of items that have it beside what a search has chosen."""

    parameter: ListFilter
    text: str
    total: int


def _named(search: Search, text: str) -> ValueInUse | None:
    """Return the value that is *text*, in any form that its filter takes for the same: of several the most frequent."""
    if not may_be_value(text):
        return None
    values = []
    for value in _suggested(search, text):
        forms = same_names(value.parameter.name, value.text)
        is_named = singular(text) in (*forms, singular(value.parameter.label_of(value.text)))
        # A filter that looks within texts, such as titles, finds a single word of one too.
        if is_named and reader().is_value(search.of.kind, value.parameter.name, value.text):
            values.append(value)
    return max(values, key=lambda value: value.total, default=None)


def _suggested(search: Search, text: str) -> list[ValueInUse]:
    """Return values in use that *text* begins, of the filters that a search does not have."""
    if not _is_worth_a_look(text):
        return []
    searched = search.without_words()
    parameters = {parameter.name: parameter for parameter in search.of.parameters}
    suggestions = reader().suggest(search.of.kind, list_query(searched), text, list(_filters(search, text)), SHOWN)
    values = []
    for name, value, total in suggestions:
        if not searched.chosen and total == reader().count(search.of.kind):  # the whole list has it
            continue
        values.append(ValueInUse(parameters[name], value, total))
    return values


def _chip(searched: Search, value: ValueInUse) -> ValueChip:
    """Return the link from a search to the same search with the value."""
    name = value.parameter.name
    filtered = replace(searched, chosen={**searched.chosen, name: (value.text,)}, page=1)
    return ValueChip(str(value.parameter.label), value.parameter.label_of(value.text), value.total, filtered.address())


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
            continue
        values = _labelled(search.of.kind, parameter, words)
        if values:  # without values, all of the filter would be looked among
            yield Chosen(parameter.name, values, by.in_text)


def _labelled(kind: str, parameter: ListFilter, words: Sequence[str]) -> tuple[str, ...]:
    """Return the values in use whose label has the words, in the language of the page or in English."""
    used = reader().values(kind, parameter.name, MAX_CODES)
    with speaking(SOURCE):
        english = {value: parameter.label_of(value) for value in used}
    values = []
    for value in used:
        if has_beginnings(parameter.label_of(value), words) or has_beginnings(english[value], words):
            values.append(value)
    return tuple(values)
