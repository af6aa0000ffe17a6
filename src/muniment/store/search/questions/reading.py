"""A question as it was read: filters, each with the words that it came from, and the words that are left."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from muniment.kernel.json import JSONObject
from muniment.schema.filters import Listing
from muniment.store.queries import ListQuery

SORT: Final = "sort"
Listings = Mapping[str, Listing]
"""The lists by kind."""


class Chip(msgspec.Struct, frozen=True, gc=False):
    """
    A filter or sort of a list, by its name on the wire.

    Args:
        words: the words of the question that it came from.
        is_guess: its value is only similar to those words.
    """

    name: str
    value: str
    words: str
    is_guess: bool = False

    def to_wire(self) -> JSONObject:
        return {"name": self.name, "value": self.value, "words": self.words}


class Reading(msgspec.Struct, frozen=True, gc=False):
    """
    A question as filters of a list.

    Args:
        kind: ``company``, ``person`` or ``framework``.
        q: the words that no filter came from.
    """

    kind: str
    chips: tuple[Chip, ...]
    q: str
    language: str

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the list, which has the same answer without the question."""
        return [*([("q", self.q)] if self.q else []), *((chip.name, chip.value) for chip in self.chips)]

    @property
    def is_of_a_time(self) -> bool:
        """Return whether the question may mean other days tomorrow."""
        return any(chip.name.startswith(("listed", "updated")) for chip in self.chips)

    def query(self, listing: Listing, *, page_size: int) -> ListQuery:
        """
        Return the query of the first page of the list.

        Raises:
            ValueError: a value is beyond what its filter takes, or a lower bound above the upper one.
        """
        values: dict[str, Any] = {}
        for chip in self.chips:
            if chip.name != SORT:
                criterion = listing.criteria[chip.name]
                value = criterion.parse(chip.value)
                values[chip.name] = (*values.get(chip.name, ()), value) if criterion.several else value
        sort: Any = next((chip.value for chip in self.chips if chip.name == SORT), None)
        return ListQuery(q=self.q, page_size=page_size, sort=sort, **listing.select(values)._asdict())

    @property
    def not_understood(self) -> list[str]:
        """Return the words that became no filter, or only one with a value that is similar to them."""
        guesses = [chip.words for chip in self.chips if chip.is_guess]
        return list(dict.fromkeys([*self.q.split(), *guesses]))

    def to_wire(self) -> JSONObject:
        chips = [chip.to_wire() for chip in self.chips]
        words = {"q": self.q} if self.q else {}
        unclear = {"notUnderstood": self.not_understood} if self.not_understood else {}
        return {"kind": self.kind, "filters": chips, **words, **unclear, "language": self.language}
