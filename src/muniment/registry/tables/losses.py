"""Losses: parts of a table that an import leaves out, each with its row, grouped for people. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SHOWN_ROWS: Final = 5


class Loss(NamedTuple):
    """
    A value, a row or a column that is left out or changed.

    Args:
        table: the name of the table.
        row: its number in the file; 0 for a whole column or table.
        column: its heading; "" for a whole row.
        reason: what is wrong, the same for values with the same fault.
        example: the value.
        fix: what to do about it.
    """

    table: str
    row: int
    column: str
    reason: str
    example: str = ""
    fix: str = ""


@dataclass(slots=True)
class LossGroup:
    """Losses with the same reason in the same column."""

    first: Loss
    rows: list[int] = field(default_factory=list)
    count: int = 0

    def __str__(self) -> str:
        loss = self.first
        place = ": ".join(filter(None, (loss.table, loss.column)))
        said = f"{place}: {loss.reason}" if place else loss.reason
        if loss.example:
            said += f', for example "{_short(loss.example)}"'
        if self.rows:
            shown = ", ".join(f"{row:,}" for row in self.rows[:SHOWN_ROWS])
            more = ", …" if len(self.rows) > SHOWN_ROWS else ""
            noun = "row" if len(self.rows) == 1 else "rows"
            said += f" ({len(self.rows):,} {noun}: {shown}{more})"
        return f"{said}. {loss.fix}" if loss.fix else f"{said}."


def _short(text: str) -> str:
    plain = re.sub(r"\s+", " ", text)
    return plain if len(plain) <= 60 else f"{plain[:59]}…"


def grouped(losses: Iterable[Loss]) -> list[LossGroup]:
    """Return *losses* in groups, the largest first."""
    groups: dict[tuple[str, str, str], LossGroup] = {}
    for each in losses:
        group = groups.setdefault((each.table, each.column, each.reason), LossGroup(each))
        group.count += 1
        if each.row and each.row not in group.rows[-1:]:
            group.rows.append(each.row)
    return sorted(groups.values(), key=lambda group: -group.count)


def common_reason(reason: str) -> str:
    """Return the reason of a fault without the value that it quotes, so that faults of one kind are one group."""
    return re.sub(r",? (?:not|but is) ['\"].*$", "", re.sub(r"^'[^']*' ", "", reason), flags=re.DOTALL)


def lines_of(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield a line for each group of losses."""
    yield from map(str, grouped(losses))
