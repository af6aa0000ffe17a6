"""
What the imports of all kinds share: the run, the comparison with what stands, the writing of many rows.

Each batch is one transaction. A row is compared with what stands, and written only where it differs.

Source: decisions, section 6.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db import models

from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now, slug_from_name
from muniment.registry import history
from muniment.registry.exchange.rows import CompanyRow, FrameworkRow, PersonRow
from muniment.registry.models import GivenSlug, HistoryEntry
from muniment.schema.objects import Schema
from muniment.schema.record import Record
from muniment.schema.validation import Fault

Row = TypeVar("Row", CompanyRow, PersonRow, FrameworkRow)
Tell = Callable[[int, Fault], None]
"""Told the line and what is wrong with it."""


@dataclass(slots=True)
class BatchCounts:
    """What became of the good rows of one kind."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0

    @property
    def total(self) -> int:
        """Give the number of good rows."""
        return self.new + self.changed + self.unchanged


@dataclass(slots=True)
class BatchRun:
    """
    What one import carries from batch to batch.

    Args:
        dry: find out, write nothing; ``names`` then holds what would have been made.
        settled: people whose row brought the moment of their last change: it is not moved by what follows.
    """

    actor: Actor
    schema: Schema
    draft: bool = False
    dry: bool = False
    tell: Tell = lambda _line, _fault: None
    warn: Tell = lambda _line, _fault: None
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    settled: set[str] = field(default_factory=set)

    def settle(self, row: PersonRow) -> None:
        """Note that the row of a person brought the moment of the last change."""
        if row.updated_at:
            self.settled.add(row.slug)

    def leaves(self, line: int, standing: Any) -> bool:
        """Tell whether a row stays as it stands: drafts are not written over what is published."""
        if standing is None or not self.draft or not standing.published:
            return False
        self.warn(line, Fault("", f"{standing.slug!r} is published; --draft leaves it as it stands"))
        return True


def standing_rows(model: type[models.Model], slugs: Iterable[str], *, lock: bool = False) -> dict[str, Any]:
    """Give the rows that stand under *slugs*, by slug; held where they are to be written whole."""
    rows: Any = model._default_manager.filter(slug__in=list(slugs))  # noqa: SLF001 - Django's public name
    if lock:
        rows = rows.order_by("pk").select_for_update()  # one order for all, so that none waits in a circle
    return {row.slug: row for row in rows}


def not_given_before(
    run: BatchRun, kind: str, rows: list[tuple[int, Row]], standing: dict[str, Any]
) -> list[tuple[int, Row]]:
    """Leave out rows whose slug belonged to something that is gone: a slug is never given again."""
    new = [row.slug for _, row in rows if row.slug not in standing]
    gone = set(GivenSlug.objects.filter(kind=kind, slug__in=new).values_list("slug", flat=True))
    if not gone:
        return rows
    key = {"company": "company.id", "person": "slug", "framework": "framework.frameworkId"}[kind]
    kept = []
    for line, row in rows:
        if row.slug in gone:
            run.tell(line, Fault(key, f"{row.slug!r} was given before, and is never given again"))
        else:
            kept.append((line, row))
    return kept


def alter(
    standing: Any, columns: dict[str, Any], updated_at: datetime | None, *, further: bool = False
) -> dict[str, Any] | None:
    """
    Give a standing row the values of *columns*.

    Args:
        standing: the row.
        columns: the values by column.
        updated_at: when it changed, as the file says; a moment before what stands here is not believed.
        further: something beside the columns changed too.

    Returns:
        The former values of what changed, or None when nothing did.
    """
    before = {name: getattr(standing, name) for name, value in columns.items() if getattr(standing, name) != value}
    if not before and not further:
        return None
    for name in before:
        setattr(standing, name, columns[name])
    standing.version += 1
    standing.updated_at = updated_at if updated_at and updated_at > standing.updated_at else now()
    return before


def save(rows: Sequence[models.Model]) -> None:
    """Write whole rows that stand already, many at once."""
    if rows:
        model = type(rows[0])
        names = [each.name for each in model._meta.concrete_fields if not each.primary_key]  # noqa: SLF001 - Django's public name
        model._default_manager.bulk_create(  # noqa: SLF001 - Django's public name
            rows, update_conflicts=True, unique_fields=["id"], update_fields=names
        )


def make(kind: str, rows: Sequence[Any]) -> None:
    """Write new rows, many at once, and note that their slugs are given."""
    if rows:
        type(rows[0]).objects.bulk_create(rows)
        GivenSlug.objects.bulk_create([GivenSlug(kind=kind, slug=row.slug) for row in rows])


def free_slug(kind: str, name: str, taken: Iterable[str] = ()) -> str:
    """Give a slug made from *name* that was never given to anything of *kind* and is none of *taken*."""
    stem = slug_from_name(name)[:190].rstrip("-") or new_id()
    used = {*taken, *GivenSlug.objects.filter(kind=kind, slug__startswith=stem).values_list("slug", flat=True)}
    slug, number = stem, 1
    while slug in used:
        number += 1
        slug = f"{stem}-{number}"
    return slug


def give_slug(kind: str, name: str) -> str:
    """Give a free slug made from *name* away, in the caller's transaction: two that ask at once get two."""
    while True:
        slug = free_slug(kind, name)
        _, is_ours = GivenSlug.objects.get_or_create(kind=kind, slug=slug)
        if is_ours:
            return slug


def imported(
    run: BatchRun, before: dict[str, Any], after: dict[str, Any], record: Record | None = None, **subject: Any
) -> HistoryEntry:
    """Make the history entry of an imported row, not yet saved; values by column."""
    return history.entry(
        run.actor,
        "imported",
        before=history.wire_values(before, record),
        after=history.wire_values(after, record),
        **subject,
    )
