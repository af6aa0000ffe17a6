"""
Unlist what the files of an import no longer hold.

Only rows that an import brought are pruned; those that owners and reviewers created, and claimed profiles, stay.

Source: decisions, section 6.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.batch import merged_slugs
from muniment.registry.exchange.edits import IMPORTED
from muniment.registry.exchange.json_lines import read_lines
from muniment.registry.exchange.reading import sources_of
from muniment.registry.frameworks.authoring import update_framework
from muniment.registry.models import Company, Framework, HistoryEntry, Person, State
from muniment.registry.people.moderation import unlist_person
from muniment.registry.review.workflow import unlist_company

SHARE: Final = 10
"""Without a limit, at most one row in so many of a kind is unlisted."""
_NOTE: Final = "The imported files no longer hold it."
_SUBJECTS: Final = {"companies": "company", "people": "person", "frameworks": "framework"}
_PLURALS: Final = {subject: kind for kind, subject in _SUBJECTS.items()}
_MEMBERS: Final = {"companies": "company", "people": "", "frameworks": "framework"}
_KEYS: Final = ("slug", "id", "frameworkId")


class Missing(NamedTuple):
    """A public row that the files no longer hold. ``has_owner``: an account owns the listing."""

    kind: str
    slug: str
    has_owner: bool = False
    name: str = ""

    def __str__(self) -> str:
        row = f"{self.kind} {self.slug}"
        return f"{row} (has an owner)" if self.has_owner else row


@dataclass(frozen=True, slots=True)
class Pruning:
    """
    The listings that a pruning unlists.

    Args:
        refusal: why it needs a higher limit; empty if it does not.
    """

    rows: list[Missing]
    refusal: str = ""

    def check(self) -> None:
        """Raise BadRequest if this is more than the limit."""
        if self.refusal:
            raise BadRequest(
                self.refusal, "Nothing was changed. See the rows with --dry-run; allow N with --prune-limit N."
            )

    def unlist(self, actor: Actor, import_run: int | None = None, between: Callable[[], object] = lambda: None) -> int:
        """
        Unlist the rows, each in its own transaction, and tell owners; return how many were still public.

        Args:
            import_run: the key of the import that this is a part of, which an undo restores.
            between: is called after each row.
        """
        unlisted = 0
        for row in self.rows:
            with transaction.atomic():
                is_unlisted = _UNLIST[row.kind](actor, row.slug)
                if is_unlisted and import_run is not None:
                    of_row = HistoryEntry.objects.filter(**{f"{row.kind}__slug": row.slug}).order_by("-pk")
                    HistoryEntry.objects.filter(pk=of_row.values_list("pk", flat=True)[0]).update(
                        import_run_id=import_run
                    )
            unlisted += is_unlisted
            between()
        return unlisted


def plan_pruning(path: Path, *, limit: int | None = None) -> Pruning:
    """
    Find the public rows that the files at *path* no longer hold, of each kind that has a file.

    Args:
        limit: the greatest number of rows to unlist; None: a tenth of each kind.

    Raises:
        BadRequest: there are no files, or a row of them cannot be read.
        OSError: a file cannot be read.
    """
    return plan_pruning_of(_slugs(path), limit=limit)


def plan_pruning_of(
    present: Mapping[str, Collection[str]],
    *,
    among: Mapping[str, Collection[int]] | None = None,
    limit: int | None = None,
) -> Pruning:
    """
    Find the public rows that are not *present*, of each kind that is named.

    Args:
        present: slugs by kind.
        among: the primary keys of the rows that can be missing, by kind; None: all that imports brought.
        limit: the greatest number of rows to unlist; None: a tenth of each kind.
    """
    rows: list[Missing] = []
    refusals = []
    for kind, slugs in present.items():
        keys = None if among is None else among.get(kind, ())
        if keys is not None and not keys:
            continue
        public = _PUBLIC[kind]()
        missing = [row for row in _brought(kind, public, keys) if row.slug not in slugs]
        total = public.count()
        rows += missing
        if limit is None and len(missing) * SHARE > total:
            refusals.append(
                Phrase(
                    "{missing:,} of {total:,} {kind}", missing=len(missing), total=total, kind=Phrase(_PLURALS[kind])
                )
            )
    if limit is not None and len(rows) > limit:
        return Pruning(
            rows,
            Phrase("This would unlist {count:,} rows, more than the limit of {limit:,}.", count=len(rows), limit=limit),
        )
    if refusals:
        return Pruning(rows, Phrase("This would unlist {parts}, more than a tenth.", parts=Joined(" and ", refusals)))
    return Pruning(rows)


def _slugs(path: Path) -> dict[str, set[str]]:
    """Return the slugs in the files by kind of row; raise BadRequest if a row has none, since it may be any row."""
    slugs_by_kind: dict[str, set[str]] = {}
    for source in sources_of(path):
        if source.kind not in _MEMBERS:
            continue  # the lists of companies
        slugs = slugs_by_kind.setdefault(_SUBJECTS[source.kind], set())
        for line in read_lines(source.path):
            member = _MEMBERS[source.kind]
            row: Any = (line.value or {}).get(member) if member else line.value
            named: set[str] = set()
            if isinstance(row, dict):
                named = {str(row[key]) for key in _KEYS if row.get(key)}
            if not named:
                message = Phrase(
                    "{file}:{line} names no row, so it is unknown which rows are missing.",
                    file=source.path.name,
                    line=line.number,
                )
                raise BadRequest(message, "Correct it first. Nothing was changed.")
            slugs |= named
        if source.kind == "people":
            slugs |= set(merged_slugs(slugs).values())
    return slugs_by_kind


_PUBLIC: Final[dict[str, Callable[[], QuerySet[Any]]]] = {
    "company": lambda: Company.objects.filter(state=State.PUBLISHED),
    "person": lambda: Person.objects.filter(published=True),
    "framework": lambda: Framework.objects.filter(published=True),
}


def _brought(kind: str, public: QuerySet[Any], among: Collection[int] | None) -> Iterator[Missing]:
    """Yield the public rows of a kind that an import brought, oldest first."""
    outer: JSONObject = {kind: OuterRef("pk")}
    rows = public.filter(Exists(HistoryEntry.objects.filter(action=IMPORTED, **outer))).order_by("publication_number")
    if kind == "person":
        rows = rows.filter(account=None, listed=True)
    owned: set[str] = set()
    if kind == "company":
        owned.update(rows.filter(ownerships__isnull=False).values_list("slug", flat=True))
    for key, slug, name in rows.values_list("pk", "slug", "name"):
        if among is None or key in among:
            yield Missing(kind, slug, slug in owned, name)


def _unlist_company(actor: Actor, slug: str) -> bool:
    if not Company.objects.filter(slug=slug, state=State.PUBLISHED).exists():
        return False
    unlist_company(actor, slug, _NOTE)
    return True


def _unlist_person(actor: Actor, slug: str) -> bool:
    if not Person.objects.filter(slug=slug, published=True).exists():
        return False
    unlist_person(actor, slug, _NOTE)
    return True


def _unlist_framework(actor: Actor, slug: str) -> bool:
    update_framework(actor, slug, listed=False)
    return True


_UNLIST: Final[dict[str, Callable[[Actor, str], bool]]] = {
    "company": _unlist_company,
    "person": _unlist_person,
    "framework": _unlist_framework,
}
