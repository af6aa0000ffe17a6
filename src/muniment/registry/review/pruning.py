"""
Unlist what the files of an import no longer hold.

Only rows that an import brought are pruned; those that owners and reviewers created, and claimed profiles, stay.

Source: decisions, section 6.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

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
_MEMBERS: Final = {"companies": "company", "people": "", "frameworks": "framework"}
_KEYS: Final = ("slug", "id", "frameworkId")


class Missing(NamedTuple):
    """A public row that the files no longer hold. ``has_owner``: an account owns the listing."""

    kind: str
    slug: str
    has_owner: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.slug}" + (" (has an owner)" if self.has_owner else "")


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

    def unlist(self, actor: Actor) -> int:
        """Unlist the rows, each in its own transaction, and tell owners; return how many were still public."""
        return sum(_UNLIST[row.kind](actor, row.slug) for row in self.rows)


def plan_pruning(path: Path, *, limit: int | None = None) -> Pruning:
    """
    Find the public rows that the files at *path* no longer hold, of each kind that has a file.

    Args:
        limit: the greatest number of rows to unlist; None: a tenth of each kind.

    Raises:
        BadRequest: there are no files, or a row of them cannot be read.
        OSError: a file cannot be read.
    """
    rows: list[Missing] = []
    refusals = []
    for kind, slugs in _slugs(path).items():
        public = _PUBLIC[kind]()
        missing = [row for row in _brought(kind, public) if row.slug not in slugs]
        total = public.count()
        rows += missing
        if limit is None and len(missing) * SHARE > total:
            refusals.append(
                Phrase("{missing:,} of {total:,} {kind}", missing=len(missing), total=total, kind=Phrase(kind))
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
    """Return the slugs in the files by kind; raise BadRequest if a row has none, since it may be any row."""
    found: dict[str, set[str]] = {}
    for source in sources_of(path):
        if source.kind not in _MEMBERS:
            continue  # the lists of companies
        slugs = found.setdefault(source.kind, set())
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
    return found


_PUBLIC: Final[dict[str, Callable[[], QuerySet[Any]]]] = {
    "companies": lambda: Company.objects.filter(state=State.PUBLISHED),
    "people": lambda: Person.objects.filter(published=True),
    "frameworks": lambda: Framework.objects.filter(published=True),
}


def _brought(kind: str, public: QuerySet[Any]) -> Iterator[Missing]:
    """Yield the public rows of a kind that an import brought, oldest first."""
    subject = {"companies": "company", "people": "person", "frameworks": "framework"}[kind]
    outer: JSONObject = {subject: OuterRef("pk")}
    rows = public.filter(Exists(HistoryEntry.objects.filter(action=IMPORTED, **outer))).order_by("publication_number")
    if kind == "people":
        rows = rows.filter(account=None, listed=True)
    owned = set(rows.filter(ownerships__isnull=False).values_list("slug", flat=True)) if kind == "companies" else set()
    for slug in rows.values_list("slug", flat=True):
        yield Missing(subject, slug, slug in owned)


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
