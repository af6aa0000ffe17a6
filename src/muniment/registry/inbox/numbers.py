"""Numbers that a reviewer should look at: sums that do not add up, and large jumps. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from django.utils.translation import gettext

from muniment.kernel.json import JSONMapping
from muniment.languages.writing import number

TOLERANCE: Final = 0.5
"""Percentage points by which rounded shares may miss 100."""
JUMP: Final = 10
"""From how many times as much, or as little, on a change is large."""


def odd_sums(bundle: JSONMapping) -> list[str]:
    """Return the sums of a listing, in wire form, that do not add up."""
    found = []
    pools = _sum((bundle.get("distribution") or {}).get("pools") or ())
    if pools is not None and abs(pools - 100) > TOLERANCE:
        found.append(gettext("the pools add up to %(sum)s%%, not 100%%") % {"sum": f"{pools:g}"})
    rows = msgspec.json.decode(msgspec.json.encode(bundle.get("capTable") or ()))  # a bundle has them encoded
    holders = _sum(rows)
    if holders is not None and holders > 100 + TOLERANCE:
        found.append(gettext("the cap table adds up to %(sum)s%%") % {"sum": f"{holders:g}"})
    return found


def _sum(rows: Iterable[Mapping[str, Any]]) -> float | None:
    shares = [row["percentage"] for row in rows if _is_number(row.get("percentage"))]
    return round(sum(shares), 2) if shares else None


def jumps(before: JSONMapping, after: JSONMapping) -> list[tuple[str, str]]:
    """
    Return the fields of *after* that differ from *before* by a large factor.

    Returns:
        The name of each field and what happens to it.
    """
    found = []
    for name, value in after.items():
        old, new = _amount(before.get(name)), _amount(value)
        if isinstance(value, list) and isinstance(before.get(name), list):
            was, will = len(before[name]), len(value)
            if was >= JUMP and will * 2 < was:
                found.append((name, gettext("%(was)d rows become %(will)d") % {"was": was, "will": will}))
        elif old and new and max(old, new) / min(old, new) >= JUMP:
            found.append(
                (name, gettext("%(was)s becomes %(will)s") % {"was": _shown(before[name]), "will": _shown(value)})
            )
    return found


def _shown(value: object) -> str:
    return number(value) if _is_number(value) else str(value)  # type: ignore[arg-type]  # checked


_SUFFIXES: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def _amount(value: object) -> float:
    """Return a number or a formatted amount, such as ``$1.2M``, as a number; 0 if it is none."""
    if _is_number(value):
        return abs(float(value))  # type: ignore[arg-type]  # checked
    if not isinstance(value, str):
        return 0.0
    digits = "".join(each for each in value if each.isdigit() or each == ".")
    try:
        return float(digits) * _SUFFIXES.get(value.strip()[-1:].upper(), 1.0)
    except ValueError:
        return 0.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
