"""
What visitors with an account ask of the reviewers: a listing or a profile to be theirs, an edit of a listing.

Source: decisions, section 5: both go to the reviewers' queue.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.kernel.texts import text_fault
from muniment.registry.company.company_change import BadFields, CompanyChange, read_change
from muniment.registry.company.editing import compare, decides
from muniment.registry.company.operations import add_owner, update_company
from muniment.registry.models import Company, Person, Petition, State
from muniment.registry.people.profiles import join_person
from muniment.schema.validation import Fault

MAX_TEXT = 2_000
MAX_OPEN = 20
"""How many undecided petitions an account may have, so that nobody floods the queue."""
on_petition_decided: list[Callable[[Petition], object]] = []
"""Called after the commit of a decision."""


def claim_company(actor: Actor, slug: str, text: str) -> Petition:
    """
    Ask to own a published listing.

    Raises:
        Forbidden: nobody is signed in.
        NotFound: there is no such public listing.
        Conflict: the actor owns it, or has asked already.
        BadFields: the text does not say who the actor is to it.
    """
    company = _public_company(actor, slug)
    if company.ownerships.filter(account_id=_account(actor)).exists():
        raise Conflict("You own this listing already.", "Edit it at /manage.")
    return _ask(actor, Petition(kind="claim", company=company, text=_said(text)))


def claim_person(actor: Actor, slug: str, text: str) -> Petition:
    """
    Ask to be joined to a public person.

    Raises:
        Forbidden: nobody is signed in.
        NotFound: there is no such public person.
        Conflict: the person or the account is joined already, or the actor has asked.
        BadFields: the text says nothing.
    """
    account_id = _account(actor)
    person = Person.objects.filter(slug=slug, published=True).first()
    if person is None:
        raise NotFound(f"Nobody here has the slug {slug[:200]!r}.", "Search among all people.")
    if person.account_id is not None:
        raise Conflict("This profile belongs to an account already.", "Tell the operator if that is wrong.")
    if Person.objects.filter(account_id=account_id).exists():
        raise Conflict("Your account has a profile already.", "Edit it at /manage/profile.")
    return _ask(actor, Petition(kind="profile", person=person, text=_said(text)))


def suggest_edit(actor: Actor, slug: str, change: CompanyChange, text: str) -> Petition:
    """
    Suggest an edit of a published listing.

    Raises:
        Forbidden: nobody is signed in.
        NotFound: there is no such public listing.
        BadFields: nothing differs, or a value that the form does not take.
        Conflict: the actor has a suggestion for it that waits.
    """
    company = _public_company(actor, slug)
    difference = compare(company, read_change(change, settings.SCHEMA))
    changes = {name: change[name] for name in difference.after if name in change}
    if not changes and not text.strip():
        raise BadFields([Fault("text", "is empty, and no field differs")], "Change a field, or say what is wrong.")
    return _ask(actor, Petition(kind="suggestion", company=company, changes=changes, text=_said(text, needed=False)))


def decide_petition(actor: Actor, petition_id: int, *, approve: bool, note: str = "") -> Petition:
    """
    Grant or refuse what was asked.

    Raises:
        Forbidden: the actor is no reviewer.
        NotFound: there is no such petition.
        Conflict: another reviewer was first.
        BadRequest: a refusal without a note; what was asked can no longer be done.
    """
    if not decides(actor):
        raise Forbidden("Only reviewers decide.", "Ask the operator of this registry for the role.")
    if not approve and not note.strip():
        raise BadRequest("note is empty.", "Say why, so that they can answer.")
    with transaction.atomic():
        petition = Petition.objects.select_for_update(of=("self",)).filter(pk=petition_id).first()
        if petition is None:
            raise NotFound(f"There is no petition with the number {petition_id}.", "/review lists what waits.")
        if petition.decision:
            raise Conflict(f"This is {petition.decision} already.", "/review lists what waits.")
        petition.decision = "approved" if approve else "refused"
        petition.note, petition.decided_at, petition.decided_by_id = note.strip(), now(), actor.account_id
        petition.save()
        if approve:
            _grant(actor, petition)
        transaction.on_commit(lambda: [hook(petition) for hook in on_petition_decided])
        return petition


def _grant(actor: Actor, petition: Petition) -> None:
    if petition.company is not None and petition.kind == Petition.Kind.CLAIM:
        add_owner(actor, petition.company.slug, petition.account_id)
    elif petition.company is not None and petition.changes:
        update_company(actor, petition.company.slug, CompanyChange(petition.changes))
    elif petition.person is not None:
        join_person(actor, petition.person.slug, petition.account_id)


def _account(actor: Actor) -> int:
    if actor.account_id is None:
        raise Forbidden("This needs an account.", "Sign in first.")
    return actor.account_id


def _public_company(actor: Actor, slug: str) -> Company:
    _account(actor)
    company = Company.objects.filter(slug=slug, state=State.PUBLISHED).first()
    if company is None:
        raise NotFound(f"There is no company called {slug[:200]} here.", "Search among all companies.")
    return company


def _said(text: str, *, needed: bool = True) -> str:
    said = text.strip()
    faults = []
    if needed and not said:
        faults.append(Fault("text", "is empty: say how a reviewer can tell that it is yours"))
    if len(said) > MAX_TEXT:
        faults.append(Fault("text", f"has {len(said):,} characters, at most {MAX_TEXT:,} are taken"))
    if fault := text_fault(said):
        faults.append(Fault("text", fault))
    if faults:
        raise BadFields(faults, "A few sentences are enough.")
    return said


def _ask(actor: Actor, petition: Petition) -> Petition:
    petition.account_id = _account(actor)
    try:
        with transaction.atomic():
            if Petition.objects.filter(account_id=petition.account_id, decision="").count() >= MAX_OPEN:
                raise Conflict(f"{MAX_OPEN} of your requests wait already.", "Wait for the reviewers' answers.")
            petition.save()
    except IntegrityError:
        raise Conflict("You have asked this already.", "A reviewer looks at it; you will be mailed.") from None
    return petition


def describe(petition: Petition) -> dict[str, Any]:
    """Give before and after of each field that a suggestion changes, against what stands now."""
    if petition.company is None or not petition.changes:
        return {}
    change = CompanyChange(petition.changes)
    return compare(petition.company, read_change(change, settings.SCHEMA)).to_wire()
