"""
Names on listings that link to no profile: what owners and reviewers see, and how a reviewer links them.

Source: decisions, section 5: a name becomes a public person when a reviewer or that person says so.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from muniment.kernel.actor import Actor
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, NotFound
from muniment.registry.company.access import owned, require_reviewer
from muniment.registry.models import Person, Position, PositionRequest
from muniment.registry.people import consent
from muniment.registry.people.positions import decide, publish_team, team_of, write_team


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
    requests = consent.open_requests(company)
    places = list(Position.objects.filter(company=company, person=None).order_by("rank"))
    people = consent.people_named({each.name for each in places if each.item_id not in requests}, actor)
    found = []
    for each in places:
        request = requests.get(each.item_id)
        candidates = [] if request else people.get(consent.name_key(each.name), [])
        asked, since = (request.person, request.asked_at) if request else (None, None)
        found.append(UnlinkedPosition(each.item_id, each.name, each.title or "", asked, since, candidates))
    return found


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
        request = consent.open_requests(company).get(item)
        person = _person_for(place, request, person_slug)
        if any(refusal.slug == person.slug for refusal in consent.recent_refusals(company)):
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
    return request.person if request else consent.make_person(place.name)
