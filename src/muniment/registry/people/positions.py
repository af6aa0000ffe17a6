"""
The positions of a person: list them, and confirm, decline or end them; and the names that link to no profile.

Source: decisions, section 5: a claimed profile must confirm, may decline or end a position; a name becomes a public
person when a reviewer or that person says so.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.registry import history
from muniment.registry.company.access import owned, require_reviewer
from muniment.registry.company.changes import retire
from muniment.registry.company.parts import PositionRow
from muniment.registry.models import Company, Ownership, Person, Position, PositionRequest, State
from muniment.registry.people import naming
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry.publishing.redaction import retire_exports
from muniment.registry.review import notifications

REQUESTED: Final = "requested"
CONFIRMED: Final = "confirmed"
MAX_ANSWERS: Final = 500
"""Positions that one call can answer."""
_HINT: Final = "get_my_profile and /manage/profile list your positions with their ids."
_REQUEST: Final = "request-"


@dataclass(frozen=True, slots=True)
class HeldPosition:
    """
    A position as the person sees it.

    Args:
        id: the id for :func:`answer_positions`; a changed position has another one, so an answer fits what was seen.
        state: ``requested``, or ``confirmed`` for one that the profile shows.
        since: when it was requested.
    """

    id: str
    title: str
    company: Company
    state: str
    since: datetime | None = None


def list_positions(actor: Actor) -> list[HeldPosition]:
    """Return the positions of the actor's profile in published listings, requested ones first."""
    if actor.account_id is None:
        return []
    mine = {"person__account_id": actor.account_id, "company__state": State.PUBLISHED}
    requests = PositionRequest.objects.filter(decision="", **mine).select_related("company").order_by("-pk")
    shown = Position.objects.filter(**mine).select_related("company").order_by("company__name", "company_id", "rank")
    held = []
    for request in requests:
        request_id = f"{_REQUEST}{request.pk}"
        held.append(HeldPosition(request_id, request.title or "", request.company, REQUESTED, request.asked_at))
    for position in shown:
        position_id = f"{position.company.slug}/{position.item_id}"
        held.append(HeldPosition(position_id, position.title or "", position.company, CONFIRMED))
    return held


@dataclass(slots=True)
class _Answers:
    """Positions of one listing, by the answer of their person."""

    confirmed: list[PositionRequest] = field(default_factory=list)
    declined: list[PositionRequest] = field(default_factory=list)
    ended: list[Position] = field(default_factory=list)


def answer_positions(
    actor: Actor,
    *,
    confirm: Sequence[str] = (),
    decline: Sequence[str] = (),
    end: Sequence[str] = (),
    dry_run: bool = False,
) -> int:
    """
    Confirm, decline or end positions of the actor's own profile, by the ids of :func:`list_positions`.

    A declined or ended position leaves the listing at once, and the listing cannot ask again for 90 days.

    Args:
        dry_run: check the ids without changing anything.

    Returns:
        The number of positions answered.

    Raises:
        BadRequest: the account has no profile; too many ids; an id is in two lists.
        NotFound: an id is not one of the person's positions.
        Conflict: the listing changed or withdrew the position since it was read.
    """
    ids = [*confirm, *decline, *end]
    if len(ids) > MAX_ANSWERS or len(set(ids)) != len(ids):
        raise BadRequest(
            Phrase("Each position can be answered once, at most {limit} in one call.", limit=MAX_ANSWERS), _HINT
        )
    with transaction.atomic():
        person = Person.objects.filter(account_id=actor.account_id or 0).first()
        if person is None:
            raise BadRequest("This account has no profile.", "Claim or create your profile at /manage/profile first.")
        companies = _lock_companies(person, ids)
        answers = _answers_by_company(person, confirm, (*decline, *end))
        if not dry_run:
            for key in companies:
                _apply(actor, companies[key], person, answers[key])
            publish_team(companies, person)
            without_person = [key for key in companies if answers[key].declined or answers[key].ended]
            if _retires_exports(person, without_person):
                retire_exports()
    return len(ids)


def _answers_by_company(person: Person, confirmed: Sequence[str], removed: Sequence[str]) -> dict[int, _Answers]:
    """Return the positions with these ids by their listing: a removed one is declined if it is only requested."""
    answers: dict[int, _Answers] = defaultdict(_Answers)
    for position_id in confirmed:
        request = _find_request(person, position_id)
        answers[request.company_id].confirmed.append(request)
    for position_id in removed:
        if position_id.startswith(_REQUEST):
            request = _find_request(person, position_id)
            answers[request.company_id].declined.append(request)
        else:
            place = _find_place(person, position_id)
            answers[place.company_id].ended.append(place)
    return answers


def _retires_exports(person: Person, companies: Sequence[int]) -> bool:
    """Return whether others published a position that is gone; owners who name themselves retire no export."""
    own = Ownership.objects.filter(company=OuterRef("pk"), account=person.account_id)
    return Company.objects.filter(~Exists(own), pk__in=companies, state=State.PUBLISHED).exists()


def _lock_companies(person: Person, ids: Iterable[str]) -> dict[int, Company]:
    """Lock the listings of positions, in the order of their keys, before their requests are read."""
    numbers = {_request_number(position_id) for position_id in ids}
    slugs = {position_id.partition("/")[0] for position_id in ids if "/" in position_id}
    asking = PositionRequest.objects.filter(pk__in=numbers, person=person).values_list("company_id", flat=True)
    naming = Position.objects.filter(person=person, company__slug__in=slugs).values_list("company_id", flat=True)
    locked = Company.objects.select_for_update().filter(pk__in={*asking, *naming}).order_by("pk")
    return {company.pk: company for company in locked}


def _request_number(position_id: str) -> int:
    """Return the number of the request in the id of a requested position; 0, which no request has, in others."""
    if not position_id.startswith(_REQUEST):
        return 0
    number = position_id.removeprefix(_REQUEST)
    # Databases refuse a number of more than 64 bits.
    is_number = number.isascii() and number.isdigit() and len(number) < 19
    return int(number) if is_number else 0


def _find_request(person: Person, position_id: str) -> PositionRequest:
    request = PositionRequest.objects.filter(pk=_request_number(position_id), person=person).first()
    if request is None:
        raise _not_found(position_id)
    if request.decision:
        raise Conflict(
            Phrase("The position {given!r} was changed, answered or withdrawn since.", given=position_id), _HINT
        )
    return request


def _find_place(person: Person, position_id: str) -> Position:
    slug, _, item = position_id.partition("/")
    place = Position.objects.filter(company__slug=slug, item_id=item, person=person).first()
    if place is None:
        raise _not_found(position_id)
    return place


def _not_found(position_id: str) -> NotFound:
    return NotFound(Phrase("You have no position with the id {id!r}.", id=position_id[:220]), _HINT)


def _apply(actor: Actor, company: Company, person: Person, answers: _Answers) -> None:
    """Write the answers of one person to one listing, each step with its history."""
    decisions = PositionRequest.Decision
    before = team_of(company.slug)
    for request in answers.confirmed:
        asked = Position.objects.filter(company=company, item_id=request.item, person=None)
        asked.update(person=person, name="")
        decide(actor, request, decisions.CONFIRMED)
    _record(actor, company, person, decisions.CONFIRMED, answers.confirmed, before)
    before = team_of(company.slug)
    for request in answers.declined:
        Position.objects.filter(company=company, item_id=request.item, person=None).delete()
        decide(actor, request, decisions.DECLINED)
    _record(actor, company, person, decisions.DECLINED, answers.declined, before)
    before = team_of(company.slug)
    ended = []
    for place in answers.ended:
        # Kept as the answer to a request, so that the listing cannot ask again for 90 days.
        request = PositionRequest(company=company, person=person, item=place.item_id, title=place.title, told_at=now())
        place.delete()
        decide(actor, request, decisions.ENDED)
        ended.append(request)
    _record(actor, company, person, decisions.ENDED, ended, before)
    retire(company, [request.item for request in (*answers.declined, *ended)], ())


def _record(  # noqa: PLR0917 - one call for each answer
    actor: Actor,
    company: Company,
    person: Person,
    decision: PositionRequest.Decision,
    requests: Sequence[PositionRequest],
    before: list[JSONObject],
) -> None:
    """Write the history of both, and tell the owners, whom the person's account does not concern."""
    if not requests:
        return
    write_team(replace(actor, account_id=None, credential=""), company, decision, before)
    values = [{"company": company.slug, "title": each.title} for each in requests]
    history.entry(actor, f"position {decision}", before={}, after={"positions": values}, person=person).save()
    titles = [each.title or "" for each in requests]
    notifications.notify_owners_of_answer(company, person, titles, str(decision))


def decide(actor: Actor, request: PositionRequest, decision: PositionRequest.Decision) -> None:
    """Save the decision on a request."""
    request.decision, request.decided_at, request.decided_by_id = decision, now(), actor.account_id
    request.save()


def team_of(slug: str) -> list[JSONObject]:
    """Return the positions of a listing as published."""
    places = Position.objects.filter(company__slug=slug).select_related("person").order_by("rank")
    documents = []
    for place in places:
        slug, name = (place.person.slug, place.person.name) if place.person else ("", place.name)
        documents.append(PositionRow(slug, name, place.title, place.extra, place.item_id).to_document())
    return documents


def write_team(actor: Actor, company: Company, step: str, before: list[JSONObject]) -> None:
    """
    Write the listing's version and history after an answer, in the caller's transaction.

    Args:
        step: what happened to the position.
        before: the positions before it, of :func:`team_of`.
    """
    company.version += 1
    company.updated_at = now()
    company.save(update_fields=["version", "updated_at"])
    values = {"before": {"positions": before}, "after": {"positions": team_of(company.slug)}}
    history.entry(actor, f"position {step}", company=company, **values).save()


def publish_team(companies: Iterable[int], person: Person) -> None:
    """Publish listings and a person whose positions changed."""
    Person.objects.filter(pk=person.pk).update(updated_at=now())
    publish(AffectedRows().company(*companies).person(person.pk))


@dataclass(frozen=True, slots=True)
class UnlinkedPosition:
    """
    A position of which a listing shows the name alone, for reviewers.

    Args:
        asked: the person who is asked to confirm it, or None for a name without a profile.
        candidates: slugs of public people with the name.
    """

    item: str
    name: str
    title: str
    asked: Person | None
    since: datetime | None
    candidates: list[str]


def list_unlinked(actor: Actor, slug: str) -> list[UnlinkedPosition]:
    """
    Return the positions of a listing that name no profile: to its owners, and to reviewers.

    Raises:
        NotFound: unknown, or not owned.
    """
    company = owned(actor, slug)
    requests = naming.open_requests(company)
    places = list(Position.objects.filter(company=company, person=None).order_by("rank"))
    people = naming.people_named({place.name for place in places if place.item_id not in requests}, actor)
    unlinked = []
    for place in places:
        request = requests.get(place.item_id)
        if request:
            asked, since, candidates = request.person, request.asked_at, []
        else:
            asked, since, candidates = None, None, people.get(naming.name_key(place.name), [])
        unlinked.append(UnlinkedPosition(place.item_id, place.name, place.title or "", asked, since, candidates))
    return unlinked


def link_position(actor: Actor, slug: str, item: str, person_slug: str = "") -> Person:
    """
    Link a position that shows a name alone: to the person who is asked, to *person_slug*, or to a new public person.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: there is no such position or person.
        Conflict: the person declined or ended a position in this listing recently.
    """
    require_reviewer(actor, "add names to people")
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        place = Position.objects.filter(company=company, item_id=item, person=None).first()
        if place is None:
            raise NotFound("This position shows no name without a profile.", "Reload the page: it may have changed.")
        request = naming.open_requests(company).get(item)
        person = _person_for(place, request, person_slug)
        if any(refusal.slug == person.slug for refusal in naming.recent_refusals(company)):
            raise Conflict(
                Phrase("{person} declined a position in this listing.", person=person.name),
                "Only they can take it back.",
            )
        before = team_of(company.slug)
        place.person, place.name = person, ""
        place.save(update_fields=["person", "name"])
        if request:
            decisions, is_same = PositionRequest.Decision, request.person_id == person.pk
            decide(actor, request, decisions.CONFIRMED if is_same else decisions.WITHDRAWN)
        write_team(actor, company, "confirmed", before)
        publish_team([company.pk], person)
        return person


def _person_for(place: Position, request: PositionRequest | None, slug: str) -> Person:
    if slug:
        found = Person.objects.filter(slug=slug).first()
        if found is None or not (found.published or found.account_id is None):  # a person publishes their own profile
            raise NotFound(
                Phrase("No person has the slug {slug!r}.", slug=slug[:200]),
                "GET /api/v1/people lists the slugs of people.",
            )
        return found
    return request.person if request else naming.make_person(place.name)
