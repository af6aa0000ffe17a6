"""A question as it was read: filters, each with the words that it came from, and the words that are left."""

from typing import Final

import msgspec

from muniment.kernel.json import JSONObject

COLLECTIONS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
TAKEN: Final = {
    "company": frozenset(
        {
            *("status", "type", "industry", "theme", "country", "city", "hasToken", "raising", "hasCapTable", "sort"),
            *("treasuryMin", "treasuryMax", "teamMin", "teamMax", "listedFrom", "listedTo", "updatedSince"),
        }
    ),
    "person": frozenset({"company", "title", "minCompanies", "updatedSince", "sort"}),
    "framework": frozenset({"kind", "isOpen", "company"}),
}
"""The parameters of the list of each kind that a question may mean."""
SORTS: Final = {
    "company": frozenset({"newest", "name", "treasury", "team", "updated"}),
    "person": frozenset({"newest", "name", "companies", "updated"}),
    "framework": frozenset[str](),
}
SEVERAL: Final = frozenset({"status", "type", "industry", "theme", "country", "city"})


class Chip(msgspec.Struct, frozen=True, gc=False):
    """
    A filter or sort of a list, by its name on the wire.

    Args:
        words: the words of the question that it came from.
    """

    name: str
    value: str
    words: str

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

    def to_wire(self) -> JSONObject:
        chips = [chip.to_wire() for chip in self.chips]
        return {"kind": self.kind, "filters": chips, **({"q": self.q} if self.q else {}), "language": self.language}
