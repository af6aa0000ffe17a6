"""The filters beside a list: values with their counts as links, and the inputs of values that are typed."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple
from urllib.parse import quote_plus

from django.utils.safestring import SafeString, mark_safe

from muniment.store.search.values import singular
from muniment.web.lists.search import ListFilter, Search

SHOWN: Final = 8
"""Values of a filter; the others fold."""
FOLDED: Final = 32
Counts = Mapping[str, Sequence[tuple[str, int | None]]]


class Option(NamedTuple):
    """A value of a filter; its link adds it to the search, or removes it from there. *total* may be unknown."""

    id: str
    label: str
    total: int | None
    address: str
    is_chosen: bool

    def html(self) -> str:
        chosen = ' aria-current="true"' if self.is_chosen else ""
        return (
            f'<li><a id="{self.id}" href="{escape(self.address)}"{chosen}><bdi>{escape(self.label)}</bdi> '
            f'<span class="n">{"" if self.total is None else f"{self.total:,}"}</span></a></li>'
        )


class Facet(NamedTuple):
    """
    A filter with the values in use.

    Args:
        more: values that fold.
        is_long: further values can be typed.
    """

    name: str
    label: str
    options: list[Option]
    more: list[Option]
    is_long: bool

    @property
    def links(self) -> SafeString:
        return _html(self.options)

    @property
    def more_links(self) -> SafeString:
        return _html(self.more)


class Typed(NamedTuple):
    """An input of the form of further filters."""

    name: str
    label: str
    kind: str
    hint: str
    value: str


class Panel(NamedTuple):
    """All filters of a list."""

    facets: list[Facet]
    typed: list[Typed]
    hidden: list[tuple[str, str]]
    """What the form repeats: everything that is chosen by links."""
    chosen: int


def panel(search: Search, counts: Counts) -> Panel:
    parameters = search.of.parameters
    typed = [_typed(search, each) for each in parameters if each.control]
    shown = {each.name for each in typed if each.value}
    hidden = [pair for pair in search.pairs() if pair[0] not in {"q", *shown}]
    facets = [facet for each in parameters if (facet := _facet(search, each, counts.get(each.name, ())))]
    return Panel(facets, typed, hidden, sum(map(len, search.chosen.values())))


def _typed(search: Search, parameter: ListFilter) -> Typed:
    held = search.chosen.get(parameter.name, ())
    value = held[0] if held and not parameter.is_repeated else ""
    return Typed(parameter.name, str(parameter.label), parameter.control, parameter.hint, value)


def _facet(search: Search, parameter: ListFilter, counted: Sequence[tuple[str, int | None]]) -> Facet | None:
    chosen = search.chosen.get(parameter.name, ())
    if len(counted) < 2 and not chosen:  # one value chooses nothing
        return None
    options = list(_options(search, parameter, counted, chosen))
    first = [each for each in options if each.is_chosen]
    first += [each for each in options if not each.is_chosen][: max(0, SHOWN - len(first))]
    held = set(map(id, first))
    rest = [each for each in options if id(each) not in held]
    if len(rest) < 3:  # folding them would save no room
        first, rest = options, []
    is_long = len(rest) > FOLDED
    return Facet(parameter.name, str(parameter.label), first, rest[:FOLDED], is_long)


def _options(
    search: Search, parameter: ListFilter, counted: Sequence[tuple[str, int | None]], chosen: Sequence[str]
) -> Iterator[Option]:
    """Yield the values in use, most frequent first, then those that are chosen and not in use."""
    name = parameter.name
    forms = {singular(each): each for each in chosen}
    head, tail = _around(search, name)
    kept = chosen if parameter.is_repeated else ()
    for number, (value, count) in enumerate((*counted, *((each, 0) for each in chosen))):
        meaning = singular(value) if forms else ""
        held = forms.get(meaning) if number < len(counted) else (value if meaning in forms else None)
        if number >= len(counted) and held is None:
            continue
        if held is not None:
            forms.pop(meaning, None)
            values = [each for each in chosen if each != held]
        else:
            values = sorted((*kept, value)) if kept else [value]
        pairs = "&".join(f"{name}={quote_plus(each)}" for each in values)
        query = "&".join(filter(None, (head, pairs, tail)))
        address = f"{search.of.path}?{query}" if query else search.of.path
        yield Option(f"{name}-{quote_plus(value)}", parameter.label_of(value), count, address, held is not None)


def _around(search: Search, name: str) -> tuple[str, str]:
    """Return the query in the canonical order, before the values of a filter and behind them."""
    names = [each.name for each in search.of.parameters]
    place = names.index(name)
    before = {"q", *names[:place]}
    head = [pair for pair in search.pairs() if pair[0] in before]
    tail = [pair for pair in search.pairs() if pair[0] not in before and pair[0] != name]
    return _query(head), _query(tail)


def _query(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(f"{name}={quote_plus(value)}" for name, value in pairs)


def _html(options: Sequence[Option]) -> SafeString:
    return mark_safe("".join(each.html() for each in options))  # noqa: S308 - every part is escaped above
