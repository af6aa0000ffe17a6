"""Profile, listings, changes and requests, as part of an account's personal data."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Q, QuerySet

from muniment.accounts.models import Account
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.registry import history
from muniment.registry.company.listings import get_company, publish_owners
from muniment.registry.models import (
    AccountInvitation,
    Company,
    DomainProof,
    HistoryEntry,
    Invitation,
    Ownership,
    PendingChange,
    Person,
    Petition,
    Position,
    PositionRequest,
    ReviewerSettings,
    SavedReply,
    State,
    Taking,
)
from muniment.registry.people.erasing import erase_profile


def abandoned_drafts(account: Account) -> QuerySet[Company]:
    """Return the listings that were never public and have no other owner; they go with the account."""
    unpublished = Company.objects.filter(published=False, publication_number=None).exclude(state=State.PUBLISHED)
    others = Ownership.objects.exclude(account=account).values("company_id")
    return unpublished.filter(ownerships__account=account).exclude(pk__in=others).exclude(frameworks__isnull=False)


class DeletionMeaning(NamedTuple):
    """
    The effect of deleting an account on its listings and profile.

    Args:
        deleted: names of drafts that go with the account.
        ownerless: names of listings that stay without an owner.
        profile: ``public`` if the profile stays, ``private`` if it is erased, empty if there is none.
    """

    deleted: list[str]
    ownerless: list[str]
    profile: str


def describe_deletion(account: Account) -> DeletionMeaning:
    drafts = abandoned_drafts(account)
    others = Ownership.objects.exclude(account=account).values("company_id")
    alone = Company.objects.filter(ownerships__account=account).exclude(pk__in=others).exclude(pk__in=drafts)
    person = Person.objects.filter(account=account).first()
    profile = ""
    if person is not None:
        profile = "public" if person.published else "private"
    return DeletionMeaning(_names(drafts), _names(alone), profile)


def _names(companies: QuerySet[Company]) -> list[str]:
    return list(companies.order_by("name").values_list("name", flat=True))


def _export(account: Account) -> Iterator[ArchiveEntry]:
    actor = account.actor("web")
    person = Person.objects.filter(account=account).first()
    if person is not None:
        yield ArchiveEntry("profile.json", _profile(person))
    for slug in Ownership.objects.filter(account=account).order_by("pk").values_list("company__slug", flat=True):
        mine = get_company(actor, slug)
        yield ArchiveEntry(f"listings/{slug}.json", {"state": mine.state, "version": mine.version, **mine.bundle})
    entries = HistoryEntry.objects.filter(account=account).select_related("company", "person", "framework")
    yield ArchiveEntry("changes.json", [_entry(entry) for entry in entries.order_by("pk").iterator()])
    pending = PendingChange.objects.filter(account=account).select_related("company").order_by("pk")
    yield ArchiveEntry("pending-changes.json", [_request(change) for change in pending])
    petitions = Petition.objects.filter(account=account).select_related("company", "person").order_by("pk")
    yield ArchiveEntry("requests.json", [_petition(petition) for petition in petitions])
    requests = PositionRequest.objects.filter(account=account).select_related("company", "person").order_by("pk")
    yield ArchiveEntry("position-requests.json", [_asked_position(request) for request in requests])
    proofs = DomainProof.objects.filter(account=account).select_related("company").order_by("pk")
    yield ArchiveEntry("domain-proofs.json", [_proof(proof) for proof in proofs])
    yield from _review_settings(account)
    invitations = Invitation.objects.filter(invited_by=account) | Invitation.objects.filter(email=account.email)
    invitations = invitations.select_related("company").order_by("pk")
    yield ArchiveEntry("invitations.json", [_invitation(invitation) for invitation in invitations])
    account_invitations = _account_invitations(account).order_by("pk")
    yield ArchiveEntry("account-invitations.json", [_account_invitation(each) for each in account_invitations])


def _review_settings(account: Account) -> Iterator[ArchiveEntry]:
    """Yield the settings and saved replies of a reviewer; nothing for an account that has neither."""
    own = ReviewerSettings.objects.filter(account=account).first()
    replies = SavedReply.objects.filter(account=account).order_by("pk")
    if own is None and not replies:
        return
    yield ArchiveEntry(
        "review.json",
        {
            "digest": own is None or own.digest,
            "shortcuts": own is None or own.shortcuts,
            "savedReplies": [{"title": reply.title, "text": reply.text} for reply in replies],
        },
    )


def _account_invitations(account: Account) -> QuerySet[AccountInvitation]:
    """Return those that the account sent, accepted, or was sent."""
    return AccountInvitation.objects.filter(
        Q(invited_by=account) | Q(accepted_by=account) | Q(email__iexact=account.email)
    )


def _profile(person: Person) -> JSONObject:
    positions = Position.objects.filter(person=person).select_related("company").order_by("company__name", "rank")
    requests = PositionRequest.objects.filter(person=person).select_related("company").order_by("pk")
    entries = HistoryEntry.objects.filter(person=person).order_by("pk")
    return {
        **settings.SCHEMA.person.published(vars(person), {}),
        "public": person.published,
        "positions": [{"company": position.company.slug, "title": position.title} for position in positions],
        "positionRequests": [_position(request) for request in requests],
        "history": [_entry(entry) for entry in entries],
    }


def _petition(row: Petition) -> JSONObject:
    return {"kind": row.kind, "text": row.text, **_request(row)}


def _asked_position(row: PositionRequest) -> JSONObject:
    return {"person": row.person.slug, **_position(row)}


def _invitation(row: Invitation) -> JSONObject:
    return {"company": row.company.slug, "email": row.email, "invitedAt": timestamp(row.invited_at)}


def _account_invitation(row: AccountInvitation) -> JSONObject:
    return {"email": row.email, "role": row.role, "invitedAt": timestamp(row.invited_at), "state": row.state}


def _proof(row: DomainProof) -> JSONObject:
    return {
        "company": row.company.slug,
        "method": row.method,
        "domain": row.domain,
        "address": row.address,
        "state": row.state,
        "begunAt": timestamp(row.begun_at),
    }


def _entry(row: HistoryEntry) -> JSONObject:
    subject = row.company or row.person or row.framework
    return {
        "at": timestamp(row.at),
        "action": row.action,
        "subject": subject.slug if subject else None,
        "via": row.via,
        "credential": row.credential,
        "before": row.before,
        "after": row.after,
        **({"parts": row.parts} if row.parts else {}),
        "note": row.note,
    }


def _position(row: PositionRequest) -> JSONObject:
    return {
        "company": row.company.slug,
        "title": row.title,
        "askedAt": timestamp(row.asked_at),
        "decision": row.decision,
    }


def _request(row: Any) -> JSONObject:
    subject = row.company or row.person
    return {
        "subject": subject.slug if subject else None,
        "changes": row.changes,
        "askedAt": timestamp(row.asked_at),
        "decision": row.decision,
        "note": row.note,
    }


def _delete(account: Account) -> None:
    """Delete what is the account's own; published listings stay and can be claimed, and so does a public profile."""
    drafts = list(abandoned_drafts(account).values_list("pk", flat=True))
    kept = Ownership.objects.filter(account=account).exclude(company__in=drafts).select_related("company")
    actor = account.actor("system", "account deletion")
    HistoryEntry.objects.bulk_create(
        history.entry(actor, "owner left", before={"owner": account.pk}, after={}, company=each.company)
        for each in kept
    )
    left = [each.company for each in kept]
    Ownership.objects.filter(account=account).delete()
    publish_owners(*left)
    named = list(Person.objects.filter(positions__company__in=drafts).values_list("pk", flat=True))
    Company.objects.filter(pk__in=drafts).delete()
    of_drafts = Person.objects.filter(pk__in=named, listed=False, account=None, publication_number=None)
    of_drafts.filter(positions=None).delete()  # the drafts alone named them
    Petition.objects.filter(account=account).delete()
    DomainProof.objects.filter(account=account).delete()
    Taking.objects.filter(account=account).delete()
    ReviewerSettings.objects.filter(account=account).delete()
    SavedReply.objects.filter(account=account).update(account=None)
    (Invitation.objects.filter(invited_by=account) | Invitation.objects.filter(email=account.email)).delete()
    _account_invitations(account).delete()
    person = Person.objects.select_for_update().filter(account=account).first()
    if person is not None and not person.published:
        erase_profile(person)
    Person.objects.filter(account=account).update(account=None)
    for model in (HistoryEntry, PendingChange):
        model._default_manager.filter(account=account).update(credential="")  # noqa: SLF001 - Django's public name


PART = Part(name="registry", export=_export, delete=_delete)
