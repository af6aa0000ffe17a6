"""
Facets: how many of the documents that a query finds have each value of a filter.

The documents of a value are a number with a bit for each, by their numbers of publication, so that a count is one AND.
Such numbers are cached until a document gains or loses the value. The counts of a filter leave out the filter itself,
so that they show the alternatives to what is chosen.
"""

import contextlib
import functools
import sqlite3
import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import and_, itemgetter
from typing import Final, NamedTuple, TypeAlias

import msgspec
from cachetools import LRUCache

from muniment.kernel.json import JSONObject
from muniment.schema.filters import Chosen
from muniment.schema.objects import registry_schema
from muniment.store import value_bits
from muniment.store.cache import size_of
from muniment.store.lists.positions import Positions
from muniment.store.queries import Selection
from muniment.store.search.values import KEY, first_name, meant_by, same_names, singular, with_beginnings
from muniment.store.search_text import pieces

MAX_COUNTED: Final = 2_000
"""Values of one filter that are counted, the most frequent in the registry."""
SHOWN: Final = 20
"""Values of one filter in an answer."""
_NUMBERS_OF: Final = f"SELECT json_group_array(position & {value_bits.NUMBER}) FROM published_facet WHERE value_id = ?"
"""In one value, which takes a third of the time that as many rows take."""
_WIDE: Final = 1 << 17
"""Publication numbers from which on rare values are kept as lists."""
_RARE: Final = 512
MAX_CANDIDATES: Final = 20
"""Maximum values of one filter that are compared for suggestions."""
VALUE_BYTES: Final = 200
"""Approximate memory of a counted value."""
_Documents: TypeAlias = "int | array[int]"
"""The documents of a value: a bit for each, or their numbers if they are few among many."""


class Counted(NamedTuple):
    """
    A value, the number *n* of documents with it, and whether the query has chosen it.

    Args:
        by_key: the key, such as the slug of a company, by which the query has chosen it; "" if it has not.
    """

    value: str
    n: int
    selected: bool = False
    by_key: str = ""

    def to_wire(self) -> JSONObject:
        wire: JSONObject = {"value": self.value, "count": self.n}
        if self.selected:
            wire["selected"] = True
        return wire


class Facet(NamedTuple):
    """The most frequent values of a filter, those that are chosen, and the number of further values."""

    values: tuple[Counted, ...]
    more: int

    def to_wire(self) -> JSONObject:
        return {"values": [each.to_wire() for each in self.values], "more": self.more}


class Suggestion(NamedTuple):
    """A value of the filter *name*, and the number *n* of documents that the list would have with it."""

    name: str
    value: str
    n: int


class Facets(NamedTuple):
    """
    The facets of a query.

    Args:
        total: the number of documents that the query finds.
        version: the version of the file it was counted in.
    """

    total: int
    by_name: dict[str, Facet]
    version: int
    modified_at: str

    def to_wire(self) -> JSONObject:
        return {name: facet.to_wire() for name, facet in self.by_name.items()}


class _Form(NamedTuple):
    """A value as documents have it; *changed* is the last change that added it to a document or took it away."""

    number: int
    value: str
    n: int
    folded: str
    changed: int


_Counts: TypeAlias = "tuple[int | None, dict[str, Facet]]"
_Asked: TypeAlias = "tuple[Selection, tuple[str, ...], int]"
"""The key of a count: a selection in any order, the filters, and how many values of each."""


class Documents:
    """Two LRU caches of at most *limit_bytes* together: the documents of each value, and the counts of each query."""

    def __init__(self, limit_bytes: int) -> None:
        self._cache: LRUCache[tuple[int, int, int], tuple[_Documents, int]] = LRUCache(
            limit_bytes - limit_bytes // 4, getsizeof=itemgetter(1)
        )
        self._counts: LRUCache[_Asked, tuple[int, _Counts, int]] = LRUCache(limit_bytes // 4, getsizeof=itemgetter(2))
        self._lock = threading.Lock()

    def counts(self, asked: _Asked, version: int, count: Callable[[], _Counts]) -> _Counts:
        """Return the counts of a query: those that were counted since the last change of the kind, else by *count*."""
        with self._lock:
            cached = self._counts.get(asked)
        if cached is not None and cached[0] == version:
            return cached[1]
        found = count()
        values = sum(len(facet.values) for facet in found[1].values())
        size_bytes = 500 + size_of(asked) + VALUE_BYTES * values
        with self._lock, contextlib.suppress(ValueError):  # larger than the whole cache
            self._counts[asked] = version, found, size_bytes
        return found

    def of(self, connection: sqlite3.Connection, build: int, form: _Form) -> _Documents:
        """Return the documents of a value in a *build* of the file."""
        key = build, form.number, form.changed
        with self._lock:
            cached = self._cache.get(key)
        if cached is not None:
            return cached[0]
        documents = _documents_of(connection, form)
        size_bytes = documents.bit_length() // 8 if isinstance(documents, int) else len(documents) * documents.itemsize
        with self._lock, contextlib.suppress(ValueError):  # larger than the whole cache
            self._cache[key] = documents, 200 + size_bytes
        return documents


def _documents_of(connection: sqlite3.Connection, form: _Form) -> _Documents:
    """Read the documents of a value from its bits, or, of few, from its rows."""
    if form.n >= value_bits.MANY:
        return value_bits.read(connection, form.number)
    (listed,) = connection.execute(_NUMBERS_OF, (form.number,)).fetchone()
    numbers = msgspec.json.decode(listed, type=list[int])
    # Of few documents among very many, the bits would be nearly all zeros.
    if len(numbers) >= _RARE or max(numbers, default=0) < _WIDE:
        return value_bits.of(numbers)
    return array("L", numbers)


def _in_any(documents: Iterable[_Documents]) -> int:
    """Return the documents that have one of several values."""
    bits = 0
    rare = array("L")
    for of_value in documents:
        if isinstance(of_value, int):
            bits |= of_value
        else:
            rare += of_value  # all rare values at once: a number as long as the registry for each would take seconds
    return bits | value_bits.of(rare)


class _Base:
    """The documents that all but one filter find; None: every document."""

    def __init__(self, bits: int | None) -> None:
        self.bits = bits
        self._flags = b""

    def count(self, documents: Sequence[_Documents]) -> int:
        if len(documents) == 1 and not isinstance(documents[0], int):
            return self._among(documents[0])
        bits = _in_any(documents)
        if self.bits is not None:
            bits &= self.bits
        return bits.bit_count()

    def _among(self, numbers: "array[int]") -> int:
        if self.bits is None:
            return len(numbers)
        if not self._flags:
            self._flags = self.bits.to_bytes(self.bits.bit_length() // 8 + 1, "little")
        flags = self._flags
        size = len(flags) << 3
        return sum(flags[number >> 3] >> (number & 7) & 1 for number in numbers if number < size)


_FORMS: Final = "SELECT id, value, n, folded, changed FROM published_value"


@functools.cache
def _wider_filters() -> dict[tuple[str, str], bool]:
    """
    Return the filters, by kind and name, that find documents with other values too, and whether by words in these.

    Titles are found by words in them; the code of a state is found where addresses have its name.
    """
    wider = {}
    for kind, listing in registry_schema("USD").listings.items():
        for name, (_, by) in listing.filters.items():
            if by.in_text or by.member == "state":
                wider[kind, name] = by.in_text
    return wider


class Counting:
    """
    Counts the facets of one query in one snapshot.

    Args:
        version: the last change of the kind in that snapshot.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        chosen: Selection,
        version: int,
        *,
        positions: Positions,
        documents: Documents,
    ) -> None:
        self._connection = connection
        self._kind = chosen.kind
        self._build = version >> 64
        self._documents = documents
        self._found: int | None = None
        if chosen.q or chosen.ranges or chosen.ids is not None:
            unfiltered = positions.get(connection, chosen._replace(filters=()), version).positions
            self._found = value_bits.of([position & value_bits.NUMBER for position in unfiltered])
        self._chosen = {each.name: each.values for each in chosen.filters}
        self._filters = {each.name: self._of_filter(each) for each in chosen.filters}

    @property
    def total(self) -> int | None:
        """Return the number of documents that the query finds; None: every document."""
        bits = self._without("")
        return None if bits is None else bits.bit_count()

    def facet(self, name: str, limit: int) -> Facet:
        """Count the values of a filter; forms that differ in case, accents or number are one, as for the filter."""
        _, selected = self._filters.get(name, (0, frozenset[int]()))
        keyed = self._chosen_by_key(name)
        base = _Base(self._without(name))
        groups = self._forms_in_use(name)
        counts = self._counted(groups, selected, keyed, base)
        found_keys = {each.by_key for each in counts}
        for key in keyed:
            if key not in found_keys:  # its name is that of others too
                counts.append(Counted(key, self._count_of(Chosen(name, (key,), in_text=False)), selected=True))
        counts.sort(key=lambda counted: (-counted.n, counted.value))
        # A chosen value is always shown, so that it can be taken back.
        shown = counts[:limit] + [counted for counted in counts[limit:] if counted.selected]
        more = len(counts) - len(shown)
        in_text = _wider_filters().get((self._kind, name))
        if in_text:
            shown = self._counted_in_text(name, shown, list(chain.from_iterable(groups)), base)
        elif in_text is not None:
            shown = self._counted_with_names(name, shown)
        return Facet(tuple(shown), more)

    def _counted(
        self,
        groups: Iterable[Sequence[_Form]],
        selected: Collection[int],
        keyed: Mapping[str, int],
        base: _Base,
    ) -> list[Counted]:
        """Return the values that a document has, and those that are selected, by a form or by their key."""
        counts = []
        for forms in groups:
            by_key = self._key_of(forms, keyed)
            is_selected = bool(by_key) or any(form.number in selected for form in forms)
            if base.bits is None and len(forms) == 1:
                n = forms[0].n  # it is stored
            else:
                n = base.count([self._documents.of(self._connection, self._build, form) for form in forms])
            if n or is_selected:
                counts.append(Counted(forms[0].value, n, is_selected, by_key))
        return counts

    def _chosen_by_key(self, name: str) -> dict[str, int]:
        """Return the keys that the query has chosen in a filter, with the documents of each."""
        keyed = {}
        for value in self._chosen.get(name, ()):
            row = self._connection.execute(
                f"{_FORMS} WHERE kind = ? AND name = ? AND value = ? AND n > 0", (self._kind, name + KEY, value)
            ).fetchone()
            if row is not None:
                keyed[value] = _in_any([self._documents.of(self._connection, self._build, _Form(*row))])
        return keyed

    def _key_of(self, forms: Sequence[_Form], keyed: Mapping[str, int]) -> str:
        """
        Return the chosen key whose documents are those of a value; "" if there is none.

        Keys and names are values of two filters, and nothing stored says which belong together: the documents do.
        """
        least, most = max(form.n for form in forms), sum(form.n for form in forms)
        for key, documents in keyed.items():
            # The documents of a value are read only where their number can be that of the key.
            if least <= documents.bit_count() <= most:
                of_value = _in_any([self._documents.of(self._connection, self._build, form) for form in forms])
                if of_value == documents:
                    return key
        return ""

    def _counted_in_text(self, name: str, shown: list[Counted], in_use: list[_Form], base: _Base) -> list[Counted]:
        """Count what a filter that looks within texts finds by each value, which is more than that very value."""
        is_complete = len(in_use) < MAX_COUNTED
        counts = []
        for each in shown:
            by = Chosen(name, (each.value,), in_text=True)
            n = self._count_within(by, in_use, base) if is_complete else self._count_of(by)
            counts.append(each._replace(n=n))
        return sorted(counts, key=lambda each: (-each.n, each.value))

    def _counted_with_names(self, name: str, shown: list[Counted]) -> list[Counted]:
        """
        Count what each value finds with its other names.

        A code that stands for names of *shown*, as that of an address that proves no country, is left out: it would
        count their documents twice. A chosen one is shown.
        """
        counts = []
        for each in shown:
            n = self._count_of(Chosen(name, (each.value,), in_text=False))
            stands_for_names = n > each.n
            if each.selected or not stands_for_names:
                counts.append(each._replace(n=n))
        counts.sort(key=lambda each: (-each.n, each.value))
        counted = {singular(each.value) for each in counts}
        counted |= {singular(each.by_key) for each in counts if each.by_key}
        for value in self._chosen.get(name, ()):
            if singular(value) not in counted:
                counts.append(Counted(value, self._count_of(Chosen(name, (value,), in_text=False)), selected=True))
        return counts

    def suggest(self, text: str, filters: Iterable[Chosen], limit: int) -> list[Suggestion]:
        """
        Return values of filters with words that begin with those of *text*, each with its exact number of documents.

        A value that *text* names whole comes first, then values that begin with it, then the most frequent ones.

        Args:
            filters: those that the query does not have. Of one with values, *text* has named these by their labels, and
                no others are looked at. One that looks for words in a text takes *text* itself.
        """
        words, whole = pieces(text), singular(text)
        if not words:
            return []
        candidates: dict[tuple[str, str], tuple[tuple[bool, bool, int], Chosen]] = {}
        for by in filters:
            named = (text,) if by.in_text else by.values
            for value in named:
                candidates[by.name, value] = (False, False, 0), by._replace(values=(value,))
            if named:
                continue
            for value, n, folded in with_beginnings(self._connection, self._kind, by.name, words, MAX_CANDIDATES):
                rank = folded != whole, not folded.startswith(whole), -n
                # Forms that differ in case, accents or number are one value; the most frequent form comes first.
                candidates.setdefault((by.name, first_name(by.name, folded)), (rank, by._replace(values=(value,))))
        suggestions: list[Suggestion] = []
        for _, by in sorted(candidates.values(), key=lambda candidate: (candidate[0], candidate[1].name)):
            if len(suggestions) == limit:
                break
            n = self._count_of(by)
            if n:
                suggestions.append(Suggestion(by.name, by.values[0], n))
        return suggestions

    def _count_within(self, by: Chosen, in_use: Sequence[_Form], base: _Base) -> int:
        """Return what :meth:`_count_of` does, from all values in use: a tenth of the time of a statement for each."""
        names = [f" {folded} " for folded in same_names(by.name, by.values[0])]
        documents = []
        for form in in_use:
            text = f" {form.folded} "
            if any(each in text for each in names):
                documents.append(self._documents.of(self._connection, self._build, form))
        return base.count(documents)

    def _count_of(self, by: Chosen) -> int:
        """Return how many documents the query would find if it had the filter *by* too."""
        base = self._without(by.name)
        values = meant_by(self._connection, self._kind, by)
        if base is None and len(values) == 1:
            return values[0][0]
        bits, _ = self._of_filter(by)
        return (bits if base is None else bits & base).bit_count()

    def _without(self, name: str) -> int | None:
        """Return the documents that everything but the filter *name* finds; None: every document."""
        sets = [bits for other, (bits, _) in self._filters.items() if other != name]
        if self._found is not None:
            sets.append(self._found)
        return reduce(and_, sets) if sets else None

    def _of_filter(self, chosen: Chosen) -> tuple[int, frozenset[int]]:
        """Return the documents that a filter finds, and the ids of its values."""
        ids = frozenset(number for _, number in meant_by(self._connection, self._kind, chosen))
        listed = msgspec.json.encode(sorted(ids)).decode()
        rows = self._connection.execute(f"{_FORMS} WHERE id IN (SELECT value FROM json_each(?))", (listed,)).fetchall()
        found = (self._documents.of(self._connection, self._build, _Form(*row)) for row in rows)
        return _in_any(found), ids

    def _forms_in_use(self, name: str) -> Collection[list[_Form]]:
        rows = self._connection.execute(
            f"{_FORMS} WHERE kind = ? AND name = ? AND n > 0 ORDER BY n DESC, value LIMIT {MAX_COUNTED}",
            (self._kind, name),
        ).fetchall()
        groups: dict[str, list[_Form]] = {}
        for row in rows:
            form = _Form(*row)
            groups.setdefault(first_name(name, form.folded), []).append(form)
        return groups.values()


def total(
    connection: sqlite3.Connection, chosen: Selection, version: int, *, positions: Positions, documents: Documents
) -> int:
    """Return how many documents *chosen*, which has filters, finds."""
    counting = Counting(connection, chosen, version, positions=positions, documents=documents)
    return counting.total or 0


def count(
    connection: sqlite3.Connection,
    chosen: Selection,
    version: int,
    names: Iterable[str],
    limit: int,
    *,
    positions: Positions,
    documents: Documents,
) -> tuple[int | None, dict[str, Facet]]:
    """Return how many documents *chosen* finds, None for all, and its facets."""

    def counted() -> tuple[int | None, dict[str, Facet]]:
        counting = Counting(connection, chosen, version, positions=positions, documents=documents)
        return counting.total, {name: counting.facet(name, limit) for name in names}

    names = tuple(names)
    return documents.counts((chosen._replace(order="newest"), names, limit), version, counted)
