"""Faults in declarations."""

from collections.abc import Sequence
from typing import NamedTuple

from muniment.kernel.phrases.phrase import Joined, Phrase


class DeclarationFault(NamedTuple):
    """
    A fault in a declaration.

    Args:
        number: the number of the declaration, from 1.
        member: the member that is wrong; "" for the whole declaration.
        says: what is wrong with it.
        label: the name of the declaration for people.
    """

    number: int
    member: str
    says: str
    label: str = ""

    def __str__(self) -> str:
        return str(self.sentence)

    @property
    def sentence(self) -> str:
        if not self.number or self.says.startswith(f"{self.label}: "):
            return self.says
        where = Phrase("field {number}", number=self.number)
        if self.label:
            where = Phrase("field {number} ({key})", number=self.number, key=self.label)
        return Joined(": ", (where, self.says))


class FieldsError(ValueError):
    """The declarations have faults; has a sentence for each, and in *parts* the same by declaration and member."""

    def __init__(self, parts: Sequence[DeclarationFault]) -> None:
        self.parts = tuple(parts)
        self.faults = tuple(each.sentence for each in parts)
        super().__init__("\n".join(self.faults))
