"""
Requests to the reviewers: claims of listings and profiles, and suggestions of edits.

Source: decisions, section 5: both go to the reviewers' queue.
"""

from django.conf import settings
from django.db import IntegrityError, transaction

from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, LimitReached, NotFound
from muniment.kernel.texts import text_fault
from muniment.registry import history
from muniment.registry.company.access import require_account, require_note, require_reviewer
from muniment.registry.company.changes import BadFields, CompanyChange, read_change, refuse_broken_rules, refuse_company
from muniment.registry.company.listings import add_owner, compare, update_company
from muniment.registry.models import Company, Person, Petition, State
from muniment.registry.people.profiles import join_person
from muniment.registry.review import notifications
from muniment.registry.review.notifications import announce
from muniment.schema.validation import Fault

MAX_TEXT = 2_000
MAX_OPEN = 20
"""Undecided requests that an account can have, so that it cannot flood the queue."""
_DECIDED = {"approved": "approved", "refused": "declined"}


def claim_company(actor: Actor, slug: str, text: str) -> Petition:
    """
    Request to own a published listing.

    Raises:
        Forbidden: the actor has no account.
        NotFound: there is no such public listing.
        Conflict: the actor owns it, or has already requested it.
        BadFields: the text is empty or invalid.
    """
    account_id = _account(actor)
    company = _public_company(slug)
    if company.ownerships.filter(account_id=account_id).exists():
        raise Conflict("You already own this listing.", "Edit it at /manage.")
    return _save_request(actor, Petition(kind="claim", company=company, text=_check_text(text)))


def claim_person(actor: Actor, slug: str, text: str) -> Petition:
    """
    Request to be linked to a public person.

    Raises:
        Forbidden: the actor has no account.
        NotFound: there is no such public person.
        Conflict: the person or the account is already linked, or the actor has already requested it.
        BadFields: the text is empty or invalid.
    """
    account_id = _account(actor)
    person = Person.objects.filter(slug=slug, published=True).first()
    if person is None:
        raise NotFound(Phrase("No person has the slug {slug!r}.", slug=slug[:200]), "Search at /people.")
    if person.account_id is not None:
        raise Conflict("This profile already belongs to an account.", "Contact the operator if that is wrong.")
    if Person.objects.filter(account_id=account_id).exists():
        raise Conflict("Your account already has a profile.", "Edit it at /manage/profile.")
    return _save_request(actor, Petition(kind="profile", person=person, text=_check_text(text)))


def suggest_edit(actor: Actor, slug: str, change: CompanyChange, text: str) -> Petition:
    """
    Suggest an edit of a published listing.

    Raises:
        Forbidden: the actor has no account.
        NotFound: there is no such public listing.
        BadFields: nothing changes, or a value is invalid.
        Conflict: the actor already has an open suggestion for it.
        TooMany: the account has changed too much text in a short time.
    """
    _account(actor)
    company = _public_company(slug)
    difference = compare(company, read_change(change, settings.SCHEMA), actor=actor)
    refuse_broken_rules(company, difference)
    refuse_company(actor, company, difference.columns, difference.lists)
    changes = {name: change[name] for name in difference.after if name in change}
    if not changes and not text.strip():
        fault = Fault("text", "is empty, and no field has changed")
        raise BadFields([fault], "Change a field, or describe what is wrong.")
    text = _check_text(text, needed=False)
    history.limit_written_bytes(actor, changes)
    return _save_request(actor, Petition(kind="suggestion", company=company, changes=changes, text=text))


def decide_request(actor: Actor, petition_id: int, *, approve: bool, note: str = "") -> Petition:
    """
    Approve or decline a request.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: unknown request.
        Conflict: another reviewer decided first.
        NoteMissing: a request is declined without one.
        BadRequest: the request can no longer be applied.
    """
    require_reviewer(actor, "decide on requests")
    if not approve:
        require_note(note, "Give a reason: we email it to the requester.")
    with transaction.atomic():
        petition = Petition.objects.select_for_update(of=("self",)).filter(pk=petition_id).first()
        if petition is None:
            raise NotFound(Phrase("Request {number} not found.", number=petition_id), "Open requests are at /review.")
        if petition.decision:
            raise Conflict(
                Phrase("This request is already {decision}.", decision=Phrase(_DECIDED[petition.decision])),
                "Open requests are at /review.",
            )
        petition.decision = "approved" if approve else "refused"
        petition.note, petition.decided_at, petition.decided_by_id = note.strip(), now(), actor.account_id
        petition.save()
        detail = {"request": petition_id, "kind": petition.kind, "decision": petition.decision}
        record(Event.REQUEST_DECIDED, actor=actor, subject=_subject_of(petition), detail=detail)
        if approve:
            _apply(actor, petition)
        notifications.notify_requester(petition)
        return petition


def reopen_request(actor: Actor, petition_id: int) -> Petition:
    """
    Return a declined request to the queue.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: unknown request.
        Conflict: it was not declined, or the requester has made another one.
    """
    require_reviewer(actor, "decide on requests")
    try:
        with transaction.atomic():
            petition = Petition.objects.select_for_update(of=("self",)).filter(pk=petition_id).first()
            if petition is None:
                raise NotFound(
                    Phrase("Request {number} not found.", number=petition_id), "Open requests are at /review."
                )
            if petition.decision != "refused":
                raise Conflict("This request was not declined, so it can't be reopened.", "Open items are at /review.")
            petition.decision, petition.note, petition.decided_at, petition.decided_by = "", "", None, None
            petition.save()
            detail = {"request": petition_id, "kind": petition.kind, "decision": "reopened"}
            record(Event.REQUEST_DECIDED, actor=actor, subject=_subject_of(petition), detail=detail)
            notifications.notify_of_reopening(petition)
            announce(f"petition:{petition_id}")
            return petition
    except IntegrityError:
        raise Conflict("The requester has made another request.", "Decide on that one: it is at /review.") from None


def _subject_of(petition: Petition) -> str:
    if petition.company is not None:
        return f"companies/{petition.company.slug}"
    return f"people/{petition.person.slug}" if petition.person is not None else ""


def _apply(actor: Actor, petition: Petition) -> None:
    if petition.company is not None and petition.kind == Petition.RequestKind.CLAIM:
        add_owner(actor, petition.company.slug, petition.account_id)
    elif petition.company is not None and petition.changes:
        update_company(actor, petition.company.slug, CompanyChange(petition.changes))
    elif petition.person is not None:
        join_person(actor, petition.person.slug, petition.account_id)


def _account(actor: Actor) -> int:
    return require_account(actor, "An account is required.")


def _public_company(slug: str) -> Company:
    company = Company.objects.filter(slug=slug, state=State.PUBLISHED).first()
    if company is None:
        raise NotFound(Phrase("No company has the slug {slug!r}.", slug=slug[:200]), "Search at /companies.")
    return company


def _check_text(text: str, *, needed: bool = True) -> str:
    checked = text.strip()
    faults = []
    if needed and not checked:
        faults.append(Fault("text", "is empty: say how a reviewer can verify your request"))
    if len(checked) > MAX_TEXT:
        faults.append(
            Fault(
                "text", Phrase("has {count:,} characters; the limit is {limit:,}", count=len(checked), limit=MAX_TEXT)
            )
        )
    fault = text_fault(checked)
    if fault:
        faults.append(Fault("text", fault))
    if faults:
        raise BadFields(faults, "A few sentences are enough.")
    return checked


def _save_request(actor: Actor, petition: Petition) -> Petition:
    petition.account_id = _account(actor)
    try:
        with transaction.atomic():
            if Petition.objects.filter(account_id=petition.account_id, decision="").count() >= MAX_OPEN:
                raise LimitReached(
                    Phrase("You already have {limit} open requests.", limit=MAX_OPEN),
                    "Wait for the reviewers' decisions.",
                )
            petition.save()
            announce(f"petition:{petition.pk}")
    except IntegrityError:
        raise Conflict("You have already requested this.", "We'll email you when a reviewer decides.") from None
    return petition


def describe(petition: Petition) -> JSONObject:
    """Return before and after of each field that a suggestion changes, compared with the current listing."""
    if petition.company is None or not petition.changes:
        return {}
    change = CompanyChange(petition.changes)
    return compare(petition.company, read_change(change, settings.SCHEMA)).to_wire()
