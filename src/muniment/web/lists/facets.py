"""The filters beside a list: values with their counts as links, and the inputs of values that are typed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple
from urllib.parse import quote_plus

from django.utils.safestring import SafeString, mark_safe

from muniment.languages.writing import number
from muniment.store.lists.facets import Facet as CountedFacet
from muniment.store.search.values import singular
from muniment.web.lists.search import ListFilter, Search

SHOWN: Final = 8
"""Values of a filter; the others fold."""
MIN_FOLDED: Final = 3
"""Fewer save no room."""
COUNTED: Final = 40
NOTHING: Final = CountedFacet((), 0)


class Option(NamedTuple):
    """A value of a filter; its link adds it to the search, or removes it from there."""

    id: str
    label: str
    total: int
    address: str
    is_chosen: bool

    def html(self) -> str:
        chosen = ' aria-current="true"' if self.is_chosen else ""
        return (
            f'<li><a id="{self.id}" href="{escape(self.address)}"{chosen}><bdi>{escape(self.label)}</bdi> '
            f'<span class="n">{number(self.total)}</span></a></li>'
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
    """The pairs that the form repeats: everything that is chosen by links."""
    chosen: int


def panel(search: Search, facets: Mapping[str, CountedFacet]) -> Panel:
    """Return the filters of a search."""
    parameters = search.of.parameters
    typed = [_typed(search, each) for each in parameters if each.control]
    shown = {each.name for each in typed if each.value}
    hidden = [pair for pair in search.pairs() if pair[0] not in {"q", *shown}]
    made = (_facet(search, each, facets.get(each.name, NOTHING)) for each in parameters)
    return Panel([each for each in made if each], typed, hidden, sum(map(len, search.chosen.values())))


def _typed(search: Search, parameter: ListFilter) -> Typed:
    held = search.chosen.get(parameter.name, ())
    value = held[0] if held and not parameter.is_repeated else ""
    return Typed(parameter.name, str(parameter.label), parameter.control, parameter.hint, value)


def _facet(search: Search, parameter: ListFilter, counted: CountedFacet) -> Facet | None:
    if parameter.control:
        return None
    chosen = search.chosen.get(parameter.name, ())
    if len(counted.values) < 2 and not chosen:  # one value chooses nothing
        return None
    options = list(_options(search, parameter, counted, chosen))
    first, rest = options[:SHOWN], options[SHOWN:]
    folded = [each for each in rest if not each.is_chosen]
    if len(folded) < MIN_FOLDED:
        first, folded = options, []
    else:
        first += [each for each in rest if each.is_chosen]
    return Facet(parameter.name, str(parameter.label), first, folded, counted.more > 0)


def _options(search: Search, parameter: ListFilter, counted: CountedFacet, chosen: Sequence[str]) -> Iterator[Option]:
    """Yield the values that are counted, then those that are chosen and that nothing has."""
    left = list(chosen)
    address = _addresses(search, parameter)
    # What is or has something comes before what is not or lacks it, whichever are more.
    values = counted.values if parameter.is_repeated else sorted(counted.values, key=lambda each: each.value != "true")
    for value, total, is_selected in values:
        if not parameter.is_repeated:
            held = list(chosen) if is_selected else []
        else:
            held = [each for each in chosen if singular(each) == singular(value)] if is_selected else []
        left = [each for each in left if each not in held]
        kept = [each for each in chosen if each not in held] if parameter.is_repeated else []
        after = kept if held else [*kept, value]
        yield Option(_id(parameter, value), parameter.label_of(value), total, address(after), bool(held))
    for value in left:
        kept = [each for each in chosen if each != value]
        yield Option(_id(parameter, value), parameter.label_of(value), 0, address(kept), is_chosen=True)


def _id(parameter: ListFilter, value: str) -> str:
    return f"{parameter.name}-{quote_plus(value)}"


def _addresses(search: Search, parameter: ListFilter) -> Callable[[Sequence[str]], str]:
    """Return what gives the canonical address of the search with other values of a filter; only these are encoded."""
    head, tail = _around(search, parameter.name)

    def address(values: Sequence[str]) -> str:
        pairs = _query([(parameter.name, each) for each in sorted(values)])
        query = "&".join(filter(None, (head, pairs, tail)))
        return f"{search.of.path}?{query}" if query else search.of.path

    return address


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
