"""
Moderation of several companies and people together: unlist with a reason, or publish again.

Each is moved by the operation of its kind, in a transaction of its own: what fails for one leaves the others.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from django.db.models import Q, QuerySet

from muniment.kernel.actor import Actor
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Problem
from muniment.registry.company.access import require_reviewer
from muniment.registry.inbox.deciding import MAX_TOGETHER, Result
from muniment.registry.models import Company, Person
from muniment.registry.people import moderation
from muniment.registry.review import decisions

KINDS: Final = ("companies", "people")
_TASK: Final = "moderate listings"
_STEPS: Final[dict[tuple[str, str], Callable[[Actor, str, str], object]]] = {
    ("unlist", "companies"): decisions.unlist_company,
    ("relist", "companies"): lambda actor, slug, note: decisions.relist_company(actor, slug, note=note),
    ("unlist", "people"): moderation.unlist_person,
    ("relist", "people"): moderation.relist_person,
}


class ModeratedRow(NamedTuple):
    """A company or a person as a list of moderation shows it; *state* is that of a listing."""

    kind: str
    slug: str
    name: str
    state: str
    is_public: bool


def list_rows(
    actor: Actor, kind: str, words: str = "", *, state: str = "", page: int = 1, page_size: int = 25
) -> Page[ModeratedRow]:
    """
    List companies or people, public or not, by name.

    Args:
        words: part of a name or a slug.
        state: public or hidden; both by default.

    Raises:
        Forbidden: the actor is not a reviewer.
    """
    require_reviewer(actor, _TASK)
    found: QuerySet[Any] = Company.objects.all() if kind == "companies" else Person.objects.all()
    if words:
        found = found.filter(Q(name__icontains=words) | Q(slug__icontains=words))
    if state:
        found = found.filter(published=state == "public")
    rows = Page.of(found.order_by("name", "pk"), page, page_size)
    return rows.with_items([_row(kind, each) for each in rows.items])


def find_rows(actor: Actor, kind: str, slugs: Sequence[str]) -> list[ModeratedRow]:
    """Return those of *slugs* that exist, by name; raise BadRequest for none or too many."""
    require_reviewer(actor, _TASK)
    _check_number(slugs)
    found: QuerySet[Any] = Company.objects.all() if kind == "companies" else Person.objects.all()
    return [_row(kind, each) for each in found.filter(slug__in=slugs).order_by("name", "pk")]


def move_several(actor: Actor, kind: str, step: str, slugs: Sequence[str], note: str) -> list[Result]:
    """
    Unlist several companies or people with one reason, or publish them again, in their order.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: none or too many are chosen, or a reason is needed.
    """
    require_reviewer(actor, _TASK)
    _check_number(slugs)
    if step == "unlist" and not note.strip():
        raise BadRequest("Write a reason first.", "The owners receive it by email.")
    results = []
    for slug in slugs:
        try:
            _STEPS[step, kind](actor, slug, note)
        except Problem as problem:
            results.append(Result(slug, problem))
        else:
            results.append(Result(slug))
    return results


def _check_number(slugs: Sequence[str]) -> None:
    if not 1 <= len(slugs) <= MAX_TOGETHER:
        raise BadRequest(
            Phrase("{count} listings are selected.", count=len(slugs)),
            Phrase("Select from 1 to {limit} at a time.", limit=MAX_TOGETHER),
        )


def _row(kind: str, row: Company | Person) -> ModeratedRow:
    state = row.state if isinstance(row, Company) else ""
    return ModeratedRow(kind, row.slug, row.name, state, row.published)
