"""Identifiers with check digits or a fixed form."""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.schema.kinds import Text
from muniment.schema.validation import Path, Validation, shown

_LEI: Final = re.compile(r"[0-9A-Z]{18}[0-9]{2}")
_ISIN: Final = re.compile(r"[A-Z]{2}[0-9A-Z]{9}[0-9]")
_EVM: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_CONTRACT: Final = re.compile(r"0x(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{60,64})|(?!0[xX])[0-9A-Za-z][0-9A-Za-z._:-]{4,99}")
"""Contract addresses: of EVM chains; of 32 bytes, as on Starknet; in letters and digits of any other chain."""
_CODE: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z ./:_-]*")


class Check(NamedTuple):
    """
    A check of identifiers.

    Args:
        rule: completes the sentence "it must be …".
        is_upper: letters are stored in upper case.
    """

    rule: str
    is_valid: Callable[[str], bool]
    example: str
    is_upper: bool = False


def _digits(text: str) -> str:
    """Return *text* with letters as numbers from 10."""
    return "".join(str(int(sign, 36)) for sign in text)


def _is_lei(text: str) -> bool:
    """Judge the check digits of ISO 17442: modulo 97, as those of an IBAN."""
    return bool(_LEI.fullmatch(text)) and int(_digits(text)) % 97 == 1


def _is_isin(text: str) -> bool:
    """Judge the check digit of ISO 6166, by Luhn's method."""
    if not _ISIN.fullmatch(text):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(_digits(text))))
    return sum(map(int, "".join(map(str, doubled)))) % 10 == 0


CHECKS: Final = {
    "lei": Check(
        marked("an LEI: 20 letters and digits, the last two are check digits"),
        _is_lei,
        "5299000EXAMPLE000096",
        is_upper=True,
    ),
    "isin": Check(
        marked("an ISIN: two letters of a country, nine letters or digits and a check digit"),
        _is_isin,
        "XX000EXAMPL0",
        is_upper=True,
    ),
    "evm": Check(
        marked("an address of an EVM chain: 0x and 40 hexadecimal digits"),
        lambda text: bool(_EVM.fullmatch(text)),
        "0x0000000000000000000000000000000000000001",
    ),
    "contract": Check(
        "the address of a contract: 0x and 40 hexadecimal digits, or the form of another chain",
        lambda text: bool(_CONTRACT.fullmatch(text)),
        "0x0000000000000000000000000000000000000001",
    ),
    "": Check(
        marked("an identifier of letters, digits and . / : _ - or spaces"),
        lambda text: bool(_CODE.fullmatch(text)),
        "HRB 12345",
    ),
}


class Identifier(Text, frozen=True):
    """A text that identifies something elsewhere, of the form that a check of :data:`CHECKS` judges."""

    check: str = ""

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        text = super().read(value, path, validation)
        return text.strip().upper() if text and CHECKS[self.check].is_upper else text

    def form_fault(self, text: str) -> str:
        check = CHECKS[self.check]
        if check.is_valid(text.upper() if check.is_upper else text):
            return ""
        return Phrase("must be {rule}, not {value}", rule=Phrase(check.rule), value=shown(text))
