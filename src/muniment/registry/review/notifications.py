"""
Announce items that wait for reviewers, and mail owners and requesters about decisions.

Mail is sent after the commit; a failure undoes nothing.
"""

from collections.abc import Sequence
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from muniment.jobs.queue import enqueue
from muniment.kernel.json import JSONObject
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_at, in_language_of
from muniment.registry.models import Company, Person, Petition
from muniment.webhooks import events

CHECK: Final = "registry.item_waits"


_TO_OWNERS: Final = {
    "submitted": (
        gettext_lazy("%(name)s: submitted"),
        gettext_lazy("The listing %(name)s was submitted for review. We'll email you when a reviewer decides."),
    ),
    "submission withdrawn": (
        gettext_lazy("%(name)s: submission withdrawn"),
        gettext_lazy("An owner withdrew the listing %(name)s from review. It is a draft again."),
    ),
    "approved": (
        gettext_lazy("%(name)s: approved"),
        gettext_lazy("A reviewer approved the listing %(name)s. It is now published."),
    ),
    "changes requested": (
        gettext_lazy("%(name)s: changes requested"),
        gettext_lazy("A reviewer requested changes to the listing %(name)s. Make them and submit the listing again."),
    ),
    "rejected": (gettext_lazy("%(name)s: declined"), gettext_lazy("A reviewer declined the listing %(name)s.")),
    "review reopened": (
        gettext_lazy("%(name)s: back in review"),
        gettext_lazy("A reviewer reversed the decision on the listing %(name)s. It is waiting for review again."),
    ),
    "unlisted": (
        gettext_lazy("%(name)s: unlisted"),
        gettext_lazy("A reviewer unlisted the listing %(name)s. It is no longer public."),
    ),
    "relisted": (
        gettext_lazy("%(name)s: published again"),
        gettext_lazy("A reviewer published the listing %(name)s again."),
    ),
    "unlisted by owner": (
        gettext_lazy("%(name)s: unlisted"),
        gettext_lazy(
            "An owner unlisted the listing %(name)s. It is no longer public. Its owners can publish it again."
        ),
    ),
    "relisted by owner": (
        gettext_lazy("%(name)s: published again"),
        gettext_lazy("An owner published the listing %(name)s again."),
    ),
    "change approved": (
        gettext_lazy("%(name)s: change approved"),
        gettext_lazy("A reviewer approved the pending changes to %(name)s. They are now published."),
    ),
    "change refused": (
        gettext_lazy("%(name)s: change declined"),
        gettext_lazy("A reviewer declined the pending changes to %(name)s. The published listing is unchanged."),
    ),
    "change reopened": (
        gettext_lazy("%(name)s: change back in review"),
        gettext_lazy("A reviewer reversed the decision on the changes to %(name)s. They are waiting for review again."),
    ),
}
_MADE_PUBLIC: Final = frozenset({"approved", "change approved", "relisted", "relisted by owner"})
"""Steps whose mail leads to the public page; every other one leads to where an owner can act."""
_BY_OWNERS: Final = frozenset({"submitted", "submission withdrawn", "unlisted by owner", "relisted by owner"})
"""Steps that are no reviewer's decision."""
_REOPENED: Final = gettext_lazy(
    "A reviewer reversed the decision on your request about %(name)s. It waits for review again."
)
_TO_REQUESTER: Final = {
    ("claim", "approved"): gettext_lazy("Your claim of the listing %(name)s was approved. You can now edit it."),
    ("claim", "refused"): gettext_lazy("Your claim of the listing %(name)s was declined."),
    ("profile", "approved"): gettext_lazy("Your claim of the profile %(name)s was approved. You can now edit it."),
    ("profile", "refused"): gettext_lazy("Your claim of the profile %(name)s was declined."),
    ("suggestion", "approved"): gettext_lazy("Your suggested edit to %(name)s was approved and published."),
    ("suggestion", "refused"): gettext_lazy("Your suggested edit to %(name)s was declined."),
}
_ANSWERS: Final = {
    "confirmed": (
        gettext_lazy("%(name)s: position confirmed"),
        gettext_lazy("%(person)s confirmed these positions in the listing %(name)s. It now links to the profile."),
    ),
    "declined": (
        gettext_lazy("%(name)s: position declined"),
        gettext_lazy("%(person)s declined these positions. They were removed from the listing %(name)s."),
    ),
    "ended": (
        gettext_lazy("%(name)s: position ended"),
        gettext_lazy("%(person)s ended these positions. They were removed from the listing %(name)s."),
    ),
}


def notify_owners(company: Company, step: str, note: str) -> None:
    if step not in _BY_OWNERS:
        tell_webhooks("review.decided", company, {"decision": step}, for_registry=True)
    for owner in company.owners.filter(is_active=True):
        with in_language_of(owner):
            subject, sentence = (words % {"name": company.name} for words in _TO_OWNERS[step])
            link = _to_public_page(company) if step in _MADE_PUBLIC else _to_listing(company)
            text = f"{sentence}\n{_note_block(note)}\n{link}\n"
            outgoing.send(owner.email, subject, text)


def _to_listing(company: Company) -> str:
    return places.link(gettext("Open the listing"), f"/manage/companies/{company.slug}")


def _to_public_page(company: Company) -> str:
    return places.link(gettext("Open the public page"), f"/companies/{company.slug}")


def _to_account() -> str:
    return places.link(gettext("Open your listings"), "/manage")


def addresses_of(company: Company) -> list[str]:
    """Return the email addresses of the owners."""
    return [owner.email for owner in company.owners.filter(is_active=True)]


def notify_about_deletion(name: str, addresses: Sequence[str]) -> None:
    """Mail the former owners of a deleted draft, which can no longer be asked for them."""
    for address in addresses:
        with in_language_at(address):
            subject = gettext("%(name)s: draft deleted") % {"name": name}
            text = gettext("An owner deleted the draft of the listing %(name)s.") % {"name": name}
            outgoing.send(address, subject, f"{text}\n\n{_to_account()}\n")


def tell_webhooks(kind: str, company: Company, data: JSONObject, *, for_registry: bool = False) -> None:
    """Record an event about a listing for the webhooks of its owners, in the caller's transaction."""
    if not events.is_watched():
        return
    told = {"company": company.slug, "url": f"{places.base_url()}/manage/companies/{company.slug}", **data}
    owners = company.owners.values_list("pk", flat=True)
    events.record(kind, told, accounts=owners, for_registry=for_registry, listing=company.slug)


def notify_requester(petition: Petition) -> None:
    """Mail the requester about the decision."""
    # Without a name: what is kept of deliveries must not name a person who is erased.
    told = {"request": petition.kind, "decision": petition.decision, "url": f"{places.base_url()}/manage"}
    events.record("review.decided", told, accounts=[petition.account_id], for_registry=True)
    name = str(petition.company or petition.person)
    with in_language_of(petition.account):
        sentence = _TO_REQUESTER[petition.kind, petition.decision] % {"name": name}
        subject = gettext("%(name)s: approved") if petition.decision == "approved" else gettext("%(name)s: declined")
        text = f"{sentence}\n{_note_block(petition.note)}\n{_to_account()}\n"
        outgoing.send(petition.account.email, subject % {"name": name}, text)


def notify_of_reopening(petition: Petition) -> None:
    """Mail the requester that their request waits again."""
    name = str(petition.company or petition.person)
    with in_language_of(petition.account):
        text = f"{_REOPENED % {'name': name}}\n\n{_to_account()}\n"
        outgoing.send(petition.account.email, gettext("%(name)s: back in review") % {"name": name}, text)


def notify_of_request(person: Person, company: Company, titles: list[str]) -> None:
    """Ask a person to confirm the positions that a listing gives them."""
    tell_webhooks("position.asked", company, {"positions": len(titles)})
    if person.account_id is not None:
        told = {"company": company.slug, "url": f"{places.base_url()}/manage/profile", "positions": len(titles)}
        events.record("position.asked", told, accounts=[person.account_id])
    text = gettext_lazy(
        "The listing %(company)s names you:\n\n%(titles)s\n\n"
        "It shows only your name, and your profile shows nothing, until you confirm. Confirm or decline here:\n\n"
        "%(link)s\n"
    )
    _notify_person(person, gettext_lazy("%(company)s: confirm your position"), text, company, titles)


def _notify_person(person: Person, subject: Promise, text: Promise, company: Company, titles: list[str]) -> None:
    if person.account is None or not person.account.is_active:
        return
    name = outgoing.without_links(company.name, 200)
    with in_language_of(person.account):
        link = places.link(gettext("Open your profile"), "/manage/profile#positions")
        values = {"company": name, "titles": _lines(titles), "link": link}
        outgoing.send(person.account.email, subject % values, text % values)


def _lines(titles: list[str]) -> str:
    return "\n".join(f"- {outgoing.without_links(title, 200) or gettext('(no title)')}" for title in titles[:50])


def notify_owners_of_answer(company: Company, person: Person, titles: list[str], decision: str) -> None:
    """Notify the owners of a listing how a person answered."""
    tell_webhooks(f"position.{decision}", company, {"positions": len(titles)})
    for owner in company.owners.filter(is_active=True):
        with in_language_of(owner):
            subject, sentence = (words % {"name": company.name, "person": person.name} for words in _ANSWERS[decision])
            text = f"{sentence}\n\n{_lines(titles)}\n\n{_to_listing(company)}\n"
            outgoing.send(owner.email, subject, text)


def _note_block(note: str) -> str:
    return f"\n{gettext('Note from the reviewer:')}\n{outgoing.one_block(note)}\n" if note.strip() else ""


def announce(subject: str, company: Company | None = None) -> None:
    """
    Enqueue the checks of an item that waits for a review, and record the event, in the caller's transaction.

    Args:
        subject: ``company:slug``, ``change:7`` or ``petition:7``.
        company: the listing whose owners asked.
    """
    if company is not None:
        tell_webhooks("review.asked", company, {"item": subject}, for_registry=True)
    else:
        told = {"item": subject, "url": f"{places.base_url()}/review"}
        events.record("review.asked", told, for_registry=True)
    check(subject)


def check(subject: str) -> None:
    """Enqueue the checks of an item, in the caller's transaction."""
    enqueue(CHECK, {"subject": subject}, group=CHECK, priority=1)
