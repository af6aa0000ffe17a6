"""
Decide on items by their subject, take a decision back, and unlist or publish several companies or people together.

Each item is handled by the operation of its kind, in a transaction of its own: a failure of one leaves the others.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, Problem
from muniment.registry.company.access import require_note, require_reviewer
from muniment.registry.inbox import items
from muniment.registry.models import Company, Person, Position
from muniment.registry.people import moderation
from muniment.registry.review import claims, workflow

KINDS: Final = ("companies", "people")
_MODERATION: Final = "moderate listings"
_STEPS: Final[dict[tuple[str, str], Callable[[Actor, str, str], object]]] = {
    ("unlist", "companies"): workflow.unlist_company,
    ("relist", "companies"): lambda actor, slug, note: workflow.relist_company(actor, slug, note=note),
    ("confirm", "companies"): lambda actor, slug, _: workflow.confirm_company(actor, slug),
    ("unlist", "people"): moderation.unlist_person,
    ("relist", "people"): moderation.relist_person,
}


Decision = Literal["approve", "decline", "request_changes"]
MAX_TOGETHER: Final = 100
_TASK: Final = "decide on items"


class Chosen(NamedTuple):
    """An item as the reviewer saw it; ``version`` is that of a listing."""

    subject: str
    version: int | None = None


class Result(NamedTuple):
    """The result for an item; ``problem`` says why nothing was done with it."""

    subject: str
    problem: Problem | None = None


def decide(actor: Actor, chosen: Chosen, decision: Decision, note: str = "") -> None:
    """
    Decide on one item, and unassign it.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: there is no such item.
        Conflict: it was decided or changed in the meantime.
        BadRequest: the decision does not exist for this kind.
        NoteMissing: it needs a note.
    """
    require_reviewer(actor, _TASK)
    kind, key = _parts(chosen.subject)
    if kind == "company":
        _decide_company(actor, key, decision, note, chosen.version)
    elif decision == "request_changes":
        raise BadRequest("Changes can be requested of new listings only.", "Decline it with a note instead.")
    elif kind == "change":
        workflow.decide_change(actor, int(key), approve=decision == "approve", note=note)
    else:
        claims.decide_request(actor, int(key), approve=decision == "approve", note=note)
    items.unassign(actor, chosen.subject)


def _decide_company(actor: Actor, slug: str, decision: Decision, note: str, version: int | None) -> None:
    if decision == "approve":
        workflow.approve_company(actor, slug, expected_version=version, note=note)
    elif decision == "decline":
        workflow.reject_company(actor, slug, note, expected_version=version)
    else:
        workflow.request_changes(actor, slug, note, expected_version=version)


def decide_several(actor: Actor, chosen: Sequence[Chosen], decision: Decision, note: str = "") -> list[Result]:
    """
    Decide on several items with one note, in their order.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: none or too many are chosen.
        NoteMissing: a note is needed.
    """
    require_reviewer(actor, _TASK)
    _check_number(chosen)
    if decision != "approve":
        require_note(note, "We email it to the owners and requesters.")
    return [_result(each, lambda item: decide(actor, item, decision, note)) for each in chosen]


def assign_several(actor: Actor, chosen: Sequence[Chosen], to: int | None) -> list[Result]:
    """
    Assign several items.

    Args:
        to: the account of a reviewer; None unassigns them.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: none or too many are chosen, or the account is not of a reviewer.
    """
    require_reviewer(actor, _TASK)
    _check_number(chosen)
    if to is None:
        return [_result(each, lambda item: items.unassign(actor, item.subject)) for each in chosen]
    return [_result(each, lambda item: items.assign(actor, item.subject, to=to)) for each in chosen]


def reopen(actor: Actor, subject: str) -> None:
    """
    Take back that an item was declined, or that changes were requested: it waits in its old place.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: there is no such item.
        Conflict: it was approved, or there is nothing to take back.
    """
    require_reviewer(actor, _TASK)
    kind, key = _parts(subject)
    if kind == "company":
        workflow.reopen_company(actor, key)
    elif kind == "change":
        workflow.reopen_change(actor, int(key))
    else:
        claims.reopen_request(actor, int(key))


def is_subject(subject: str) -> bool:
    """Return whether *subject* has the form of one."""
    kind, _, key = subject.partition(":")
    if kind == "company":
        return bool(key)
    # Databases refuse a number of more than 64 bits.
    is_number = key.isascii() and key.isdigit() and len(key) < 19
    return kind in {"change", "petition"} and is_number


def _parts(subject: str) -> tuple[str, str]:
    if not is_subject(subject):
        raise NotFound("This item doesn't exist.", "Open items are at /review.")
    kind, _, key = subject.partition(":")
    return kind, key


def _check_number(chosen: Sequence[Chosen]) -> None:
    if not chosen:
        raise BadRequest("No item is selected.", "Select the items first.")
    if len(chosen) > MAX_TOGETHER:
        raise BadRequest(
            Phrase("{count} items are selected.", count=len(chosen)),
            Phrase("Select at most {limit} at once.", limit=MAX_TOGETHER),
        )


def _result(chosen: Chosen, act: Callable[[Chosen], None]) -> Result:
    try:
        act(chosen)
    except (BadRequest, Conflict, Forbidden, NotFound) as problem:
        return Result(chosen.subject, problem)
    return Result(chosen.subject)


REVIEWED_AFTER: Final = timedelta(days=365)


def _gaps() -> dict[str, Q]:
    """Return what a public listing can lack, and which listings lack it."""
    a_year_ago = now() - REVIEWED_AFTER
    unlinked = Position.objects.filter(company=OuterRef("pk"), person=None)
    return {
        "description": Q(description=""),
        "website": Q(website=""),
        "type": Q(type=""),
        "review": Q(reviewed_at=None) | Q(reviewed_at__lt=a_year_ago),
        "profiles": Q(Exists(unlinked)),
    }


GAPS: Final = ("description", "website", "type", "review", "profiles")


def count_gaps(actor: Actor) -> dict[str, int]:
    """
    Return how many public listings lack each of :data:`GAPS`.

    Raises:
        Forbidden: the actor is not a reviewer.
    """
    require_reviewer(actor, _MODERATION)
    counts = {name: Count("pk", filter=lacking) for name, lacking in _gaps().items()}
    lacking_by_name: dict[str, int] = Company.objects.filter(published=True).aggregate(**counts)
    return lacking_by_name


class ModeratedRow(NamedTuple):
    """A company or a person as a list of moderation shows it; *state* is that of a listing."""

    kind: str
    slug: str
    name: str
    state: str
    is_public: bool


def list_rows(
    actor: Actor, kind: str, words: str = "", *, state: str = "", gap: str = "", page: int = 1, page_size: int = 25
) -> Page[ModeratedRow]:
    """
    List companies or people, public or not, by name.

    Args:
        words: part of a name or a slug.
        state: public or hidden; both by default.
        gap: one of :data:`GAPS`: only public companies that lack it.

    Raises:
        Forbidden: the actor is not a reviewer.
    """
    require_reviewer(actor, _MODERATION)
    rows: QuerySet[Any] = Company.objects.all() if kind == "companies" else Person.objects.all()
    if words:
        rows = rows.filter(Q(name__icontains=words) | Q(slug__icontains=words))
    if state:
        rows = rows.filter(published=state == "public")
    if gap and kind == "companies":
        rows = rows.filter(_gaps()[gap], published=True)
    rows_of_page = Page.of(rows.order_by("name", "pk"), page, page_size)
    return rows_of_page.with_items([_row(kind, row) for row in rows_of_page.items])


def find_rows(actor: Actor, kind: str, slugs: Sequence[str]) -> list[ModeratedRow]:
    """Return those of *slugs* that exist, by name; raise BadRequest for none or too many."""
    require_reviewer(actor, _MODERATION)
    _check_selection(slugs)
    rows: QuerySet[Any] = Company.objects.all() if kind == "companies" else Person.objects.all()
    return [_row(kind, row) for row in rows.filter(slug__in=slugs).order_by("name", "pk")]


def move_several(actor: Actor, kind: str, step: str, slugs: Sequence[str], note: str) -> list[Result]:
    """
    Unlist several companies or people with one reason, publish them again, or confirm companies, in their order.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: none or too many are chosen.
        NoteMissing: a reason is needed.
    """
    require_reviewer(actor, _MODERATION)
    _check_selection(slugs)
    if (step, kind) not in _STEPS:
        raise BadRequest("Only companies can be marked as reviewed.", "Select companies.")
    if step == "unlist":
        require_note(note, "The owners receive it by email.")
    results = []
    for slug in slugs:
        try:
            _STEPS[step, kind](actor, slug, note)
        except Problem as problem:
            results.append(Result(slug, problem))
        else:
            results.append(Result(slug))
    return results


def _check_selection(slugs: Sequence[str]) -> None:
    if not 1 <= len(slugs) <= MAX_TOGETHER:
        raise BadRequest(
            Phrase("{count} listings are selected.", count=len(slugs)),
            Phrase("Select from 1 to {limit} at a time.", limit=MAX_TOGETHER),
        )


def _row(kind: str, row: Company | Person) -> ModeratedRow:
    state = row.state if isinstance(row, Company) else ""
    return ModeratedRow(kind, row.slug, row.name, state, row.published)
