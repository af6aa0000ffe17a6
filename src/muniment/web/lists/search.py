"""The query of a list: its parameters, read from an address and written in the canonical order."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from muniment.kernel.problems import BadRequest
from muniment.languages.translated import translated
from muniment.web.requests.pages import Words
from muniment.web.requests.pagination import asked_page
from muniment.web.wording.labels import labelled

MAX_CHARACTERS: Final = 200
MAX_VALUES: Final = 20
"""Maximum number of values of one parameter on a page."""
DEFAULT: Final = ""
"""The order of a list without one: by relevance with search words, its own without."""
ListName = Literal["companies", "people", "frameworks"]
Control = Literal["", "text", "amount", "number", "date"]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class ListFilter:
    """
    A filter of a list.

    Args:
        parse: returns the value of a text, or raises ValueError.
        rule: completes the sentence "it takes …".
        words: returns the labels of values that are codes.
        is_repeated: several values can be chosen, any of which matches.
        control: the input in which it is typed; none for what is chosen by links.
        hint: an example of what is typed.
    """

    name: str
    label: Words
    parse: Callable[[str], Any] = str
    rule: str = ""
    words: Callable[[], Mapping[str, Words]] = dict
    is_repeated: bool = False
    control: Control = ""
    hint: str = ""

    def label_of(self, value: str) -> str:
        return str(self.words().get(value) or labelled(self.name, value))

    def read(self, query: QueryDict) -> tuple[str, ...]:
        """
        Return the values that *query* has, sorted; of those of a single parameter, the last.

        Raises:
            BadRequest: a value breaks the rule, or there are too many.
        """
        given = [text for text in map(_clean, query.getlist(self.name)) if text]
        if not self.is_repeated:
            return tuple(map(self._canonical, given[-1:]))
        found = sorted(set(map(self._canonical, given)))
        if len(found) > MAX_VALUES:
            raise BadRequest(
                gettext("%(name)s has too many values.") % {"name": self.name},
                gettext("Choose at most %(count)d.") % {"count": MAX_VALUES},
            )
        return tuple(found)

    def _canonical(self, text: str) -> str:
        """Return *text*, or the value in which all texts of the same meaning end up, such as a country's letters."""
        try:
            value = self.parse(text)
        except ValueError:
            shown = {"name": self.name, "value": text[:40], "rule": translated(self.rule)}
            raise BadRequest(
                gettext("%(name)s can't be “%(value)s”.") % shown, gettext("It takes %(rule)s.") % shown
            ) from None
        return value if isinstance(value, str) and self.control != "date" else text


@dataclass(frozen=True)
class RegistryList:
    """
    A list of the registry and its parameters in the canonical order.

    Args:
        name: its path, and its name in the API.
        kind: what it lists.
        prompt: names the box of the search words; empty for a list without one.
        placeholder: what these can be.
        none_match: says that a search has no results.
        order: the name of its own order.
        orders: the others, by their names in the API.
    """

    name: ListName
    kind: Literal["company", "person", "framework"]
    label: Words
    prompt: Words
    placeholder: Words
    none_match: Words
    order: Words
    orders: Mapping[str, Words]
    parameters: tuple[ListFilter, ...]

    @property
    def path(self) -> str:
        return f"/{self.name}"

    @property
    def has_search(self) -> bool:
        return bool(self.prompt)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the query parameters that the page reads."""
        own = tuple(each.name for each in self.parameters)
        return ("q", *own, "sort", "page") if self.has_search else (*own, "page")


@dataclass(frozen=True)
class Search:
    """A list with what is asked of it."""

    of: RegistryList
    q: str = ""
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sort: str = DEFAULT
    page: int = 1

    @classmethod
    def read(cls, of: RegistryList, query: QueryDict) -> "Search":
        """
        Return what *query* asks of a list; empty values ask nothing.

        Raises:
            BadRequest: invalid page, order or value.
        """
        q = _clean(query.get("q", "")) if of.has_search else ""
        read = {parameter.name: parameter.read(query) for parameter in of.parameters}
        chosen = {name: values for name, values in read.items() if values}
        sort = _clean(query.get("sort", "")) if of.orders else DEFAULT
        orders = ("newest", "relevance", *of.orders)
        if sort and sort not in orders:
            shown = {"name": "sort", "value": sort[:40], "allowed": ", ".join(orders)}
            raise BadRequest(
                gettext("%(name)s can't be “%(value)s”.") % shown, gettext("Use one of: %(allowed)s.") % shown
            )
        if sort == "relevance" or (sort == "newest" and not q):
            sort = DEFAULT
        return cls(of, q, chosen, sort, asked_page(query))

    def pairs(self, *, page: int | None = None) -> Pairs:
        """Return names and values in the canonical order, without the page unless *page* is beyond the first."""
        found = [("q", self.q)] if self.q else []
        found += [(parameter.name, value) for parameter, value in self.each()]
        found += [("sort", self.sort)] if self.sort else []
        return [*found, ("page", str(page))] if page and page > 1 else found

    def each(self) -> Iterator[tuple[ListFilter, str]]:
        """Return every chosen value with its filter, in the canonical order."""
        for parameter in self.of.parameters if self.chosen else ():
            for value in self.chosen.get(parameter.name, ()):
                yield parameter, value

    def address(self, *, page: int | None = None) -> str:
        return joined(self.of.path, self.pairs(page=page))

    @property
    def filters(self) -> "Search":
        """Return a search with the same filters in the default order, from the first page."""
        return replace(self, sort=DEFAULT, page=1)

    @property
    def is_newest_first(self) -> bool:
        return self.of.kind != "framework" and (self.sort == "newest" or (self.sort == DEFAULT and not self.q))

    @property
    def is_everything(self) -> bool:
        return not (self.q or self.chosen)

    def without_words(self) -> "Search":
        return replace(self, q="", page=1, sort=DEFAULT if self.sort == "newest" else self.sort)

    def without_value(self, name: str, value: str) -> "Search":
        kept = tuple(each for each in self.chosen.get(name, ()) if each != value)
        rest = {each: values for each, values in self.chosen.items() if each != name}
        return replace(self, chosen={**rest, name: kept} if kept else rest, page=1)

    def sorted_by(self, sort: str) -> "Search":
        return replace(self, sort=sort, page=1)

    def is_canonical(self, query: QueryDict) -> bool:
        """Return whether *query* has what it asks in the canonical order; parameters of others do not count."""
        known = set(self.of.names)
        asked = [(name, value) for name, values in query.lists() if name in known for value in values]
        return asked == self.pairs(page=self.page)


def joined(path: str, pairs: Pairs) -> str:
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _clean(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())[:MAX_CHARACTERS].rstrip()
