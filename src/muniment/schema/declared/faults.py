"""What is wrong with declarations."""

from collections.abc import Sequence
from typing import NamedTuple


class DeclarationFault(NamedTuple):
    """
    What is wrong with a declaration.

    Args:
        number: of the declaration, from 1.
        member: which member of it; "" for the whole.
        says: what is wrong with it.
        label: what people call the declaration.
    """

    number: int
    member: str
    says: str
    label: str = ""

    def __str__(self) -> str:
        if not self.number or self.says.startswith(f"{self.label}: "):
            return self.says
        return f"field {self.number}{f' ({self.label})' if self.label else ''}: {self.says}"


class FieldsError(ValueError):
    """The declarations have faults; has a sentence for each, and in *parts* the same by declaration and member."""

    def __init__(self, parts: Sequence[DeclarationFault]) -> None:
        self.parts = tuple(parts)
        self.faults = tuple(map(str, parts))
        super().__init__("\n".join(self.faults))
