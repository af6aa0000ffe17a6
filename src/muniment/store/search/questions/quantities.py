"""Numbers that are compared in a question: ``treasury over $10 million``, ``more than 50 people``."""

from decimal import Decimal
from typing import Final, NamedTuple

from muniment.store.search.questions.sentence import Sentence

BOUNDS: Final = ("more", "at_least", "less", "at_most")
_NAMES: Final = {
    "treasury": ("treasuryMin", "treasuryMax"),
    "team": ("teamMin", "teamMax"),
    "companies": ("minCompanies", ""),
}

MAX_SHORT: Final = 6
"""Characters before the sign of a shortened amount."""
_SIGNS: Final = ((12, "T"), (9, "B"), (6, "M"), (3, "K"))


class Quantity(NamedTuple):
    """The parameters that numbers mean, what they count, and the parts that say so."""

    parameters: list[tuple[str, str]]
    subject: str
    begin: int
    end: int


class _Number(NamedTuple):
    """A number; *power* is its power of ten if a word of its own says it."""

    amount: Decimal
    is_money: bool
    end: int
    power: int


class _Compared(NamedTuple):
    """Two bounds, both included; None where it is open."""

    low: Decimal | None
    high: Decimal | None
    is_money: bool
    end: int
    bound: str


def subject_at(sentence: Sentence, at: int) -> str:
    """Return what a part says that a number counts; empty if nothing that is known."""
    if sentence.has(at, "treasury"):
        return "treasury"
    noun = sentence.noun(at)
    if sentence.has(at, "team") or noun == "person":
        return "team"
    return "companies" if noun == "company" else ""


def quantity_at(sentence: Sentence, at: int, claimed: set[int]) -> Quantity | None:
    """Return the quantity whose number or comparison begins at a part; its subject is before or after it."""
    found = _compared(sentence, at)
    if found is None:
        return None
    begin, end, subject = at, found.end, ""
    before = sentence.before(at, "skip", "of", "having")
    if before not in claimed and sentence.has(before, "treasury", "team"):
        begin, subject = before, subject_at(sentence, before)
    there = sentence.after(end, "skip", "of", "place", "having")
    ahead = subject_at(sentence, there)
    if ahead and subject in {"", ahead}:
        subject, end = ahead, there + 1
    subject = subject or ("treasury" if found.is_money else "")
    if not subject or (subject == "treasury" and not found.bound) or (found.is_money and subject != "treasury"):
        return None
    # "Three people with most positions" asks for three rows; a team of three has a word before the number.
    if not found.bound and begin == at and not sentence.has(sentence.before(at, "skip"), "having", "of", "one", "noun"):
        return None
    low, high = found.low, found.high
    if subject != "treasury":  # whole numbers, of which the bounds are included
        low = None if low is None else low + (found.bound == "more")
        high = None if high is None else high - (found.bound == "less")
    bounds = [
        (name, max(each, Decimal(0)))
        for name, each in zip(_NAMES[subject], (low, high), strict=True)
        if each is not None
    ]
    if subject != "treasury" and any(each != each.to_integral_value() for _, each in bounds):
        return None
    show = _money if subject == "treasury" else _plain
    parameters = [(name, show(each)) for name, each in bounds if name]
    return Quantity(parameters, subject, begin, end) if parameters else None


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _money(amount: Decimal) -> str:
    """Return an amount as people write it, such as 1.5M, if that is exact."""
    for power, sign in _SIGNS:
        short = _plain(amount.scaleb(-power))
        if amount >= 10**power and len(short) <= MAX_SHORT:
            return short + sign
    return _plain(amount)


def _compared(sentence: Sentence, at: int) -> _Compared | None:
    if sentence.has(at, "between") and (low := _number(sentence, at + 1)) and sentence.has(low.end, "to"):
        high = _number(sentence, low.end + 1)
        if high is not None:
            return _range(low, high)
    bound = next((role for role in BOUNDS if sentence.has(at, role)), "")
    number = _number(sentence, sentence.after(at + 1, "skip") if bound else at)
    if number is None:
        return None
    end = number.end
    if not bound and sentence.has(end, "to") and (high := _number(sentence, end + 1)):
        return _range(number, high)
    if sentence.has(end, "or_more", "or_less"):
        bound, end = ("at_least" if sentence.has(end, "or_more") else "at_most"), end + 1
    elif not bound and sentence.tokens[sentence.parts[end - 1].end - 1].has_plus:
        bound = "at_least"
    low_bound = number.amount if bound in {"", "more", "at_least"} else None
    high_bound = number.amount if bound in {"", "less", "at_most"} else None
    return _Compared(low_bound, high_bound, number.is_money, end, bound)


def _range(low: _Number, high: _Number) -> _Compared:
    power = high.power if low.power == 0 and low.amount < high.amount else 0  # "between 1 and 10 million"
    return _Compared(low.amount.scaleb(power), high.amount, low.is_money or high.is_money, high.end, "between")


def _number(sentence: Sentence, at: int) -> _Number | None:
    """Read a number with its currency and its power of ten."""
    is_money = sentence.has(at, "currency")
    at += is_money
    amount = sentence.parts[at].amount if at < len(sentence.parts) else None
    if amount is None:
        return None
    is_money = is_money or sentence.parts[at].is_money
    at, power = at + 1, 0
    if sentence.has(at, "magnitude"):
        power = int(sentence.entry(at, "magnitude"))
        amount, is_money, at = amount.scaleb(power), True, at + 1
    if sentence.has(at, "currency"):
        is_money, at = True, at + 1
    return _Number(amount, is_money, at, power)
