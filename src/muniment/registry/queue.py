"""
What waits for the reviewers, oldest first, and who of them is working on it.

Taking an item locks nothing: it tells the others. What cannot happen twice is decided by the decisions themselves.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden
from muniment.registry.listings import decides
from muniment.registry.models import Company, Ownership, PendingChange, State, Taking
from muniment.registry.petitions import open_petitions

TAKEN_FOR = timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One item of the queue. *subject* names it: ``company:slug``, ``change:7``, ``petition:7``."""

    subject: str
    what: str
    name: str
    since: datetime
    by: str
    taken_by: str
    taken_by_me: bool

    @property
    def address(self) -> str:
        """Give the page that decides on it."""
        kind, _, key = self.subject.partition(":")
        return f"/review/{_ROOMS[kind]}/{key}"


_ROOMS = {"company": "companies", "change": "changes", "petition": "requests"}
_ASKED = {"claim": "claim of the listing", "profile": "claim of the profile", "suggestion": "suggested edit"}


def waiting(actor: Actor) -> list[Waiting]:
    """
    Give everything that waits, oldest first.

    Raises:
        Forbidden: the actor is no reviewer.
    """
    need_reviewer(actor)
    takings = {
        taking.subject: taking for taking in Taking.objects.filter(at__gt=now() - TAKEN_FOR).select_related("account")
    }
    items: list[tuple[str, str, str, datetime, str]] = []
    for company in Company.objects.filter(state=State.SUBMITTED).prefetch_related("owners"):
        since = company.submitted_at or company.updated_at
        by = ", ".join(str(owner) for owner in company.owners.all())
        items.append((f"company:{company.slug}", "new listing", company.name, since, by))
    for change in PendingChange.objects.filter(decision="").select_related("company", "account"):
        what = f"change of {', '.join(change.changes)}"
        items.append((f"change:{change.pk}", what, change.company.name, change.asked_at, str(change.account or "")))
    for petition in open_petitions():
        name = str(petition.company or petition.person)
        what = _ASKED[petition.kind]
        items.append((f"petition:{petition.pk}", what, name, petition.asked_at, str(petition.account)))
    return [
        Waiting(
            subject,
            what,
            name,
            since,
            by,
            str(takings[subject].account) if subject in takings else "",
            subject in takings and takings[subject].account_id == actor.account_id,
        )
        for subject, what, name, since, by in sorted(items, key=lambda item: (item[3], item[0]))
    ]


def take(actor: Actor, subject: str) -> None:
    """
    Tell the other reviewers that the actor works on *subject*.

    Raises:
        Forbidden: the actor is no reviewer.
    """
    account_id = need_reviewer(actor)
    if account_id is None:
        return
    with transaction.atomic():
        Taking.objects.update_or_create(subject=subject, defaults={"account_id": account_id, "at": now()})


def leave(actor: Actor, subject: str) -> None:
    """
    Tell the others that nobody works on *subject* any more.

    Raises:
        Forbidden: the actor is no reviewer.
    """
    need_reviewer(actor)
    Taking.objects.filter(subject=subject).delete()


def taken_by(subject: str) -> str:
    """Give who works on *subject*, empty when nobody does."""
    found = Taking.objects.filter(subject=subject, at__gt=now() - TAKEN_FOR).select_related("account").first()
    return str(found.account) if found else ""


def likely_duplicates(
    actor: Actor, name: str, website: str, symbol: str, *, besides: str = ""
) -> list[tuple[Company, str]]:
    """
    Give listings that may be the same: by name, by the website's host, by symbol.

    Reviewers are shown all, others what is public and what they own themselves.

    Returns:
        At most six, each with what it shares.
    """
    found: dict[int, tuple[Company, str]] = {}
    everything = Company.objects.exclude(slug=besides).exclude(state=State.REJECTED)
    if not decides(actor):
        own = Ownership.objects.filter(account=actor.account_id).values("company_id")
        everything = everything.filter(Q(state=State.PUBLISHED) | Q(pk__in=own))
    if name.strip():
        for company in everything.filter(name__iexact=name.strip())[:3]:
            found[company.pk] = (company, "name")
    host = host_of(website)
    if host:
        near = everything.filter(website__icontains=host)[:20]
        same = [company for company in near if host_of(company.website) == host]
        for company in same[:3]:
            found.setdefault(company.pk, (company, "website"))
    if symbol.strip():
        for company in everything.filter(symbol__iexact=symbol.strip())[:3]:
            found.setdefault(company.pk, (company, "symbol"))
    return list(found.values())[:6]


def host_of(address: str) -> str:
    """Give the host of an address without ``www.``, empty when it has none."""
    rest = address.strip().lower().partition("://")[2] or address.strip().lower()
    host = rest.partition("/")[0].partition(":")[0].removeprefix("www.")
    return host if "." in host else ""


def need_reviewer(actor: Actor) -> int | None:
    """
    Give the account of a reviewer at work, None for the command line.

    Raises:
        Forbidden: the actor is no reviewer.
    """
    if not decides(actor):
        raise Forbidden("Only reviewers see what waits.", "Ask the operator of this registry for the role.")
    return actor.account_id
