"""Listings that may describe the same organization."""

from django.db.models import Q

from muniment.kernel.actor import Actor
from muniment.kernel.phrases.phrase import marked
from muniment.registry.models import Company, Ownership, State


def likely_duplicates(
    actor: Actor, name: str, website: str, symbol: str, *, besides: str = ""
) -> list[tuple[Company, str]]:
    """
    Return listings that may be the same, by name, website host or symbol.

    Reviewers see all of them, others only public listings and their own.

    Returns:
        At most six, each with what matches.
    """
    found: dict[int, tuple[Company, str]] = {}
    everything = Company.objects.exclude(slug=besides).exclude(state=State.REJECTED)
    if not actor.decides:
        own = Ownership.objects.filter(account=actor.account_id).values("company_id")
        everything = everything.filter(Q(state=State.PUBLISHED) | Q(pk__in=own))
    if name.strip():
        for company in everything.filter(name__iexact=name.strip())[:3]:
            found[company.pk] = (company, marked("name"))
    host = host_of(website)
    if host:
        near = everything.filter(website__icontains=host)[:20]
        same = [company for company in near if host_of(company.website) == host]
        for company in same[:3]:
            found.setdefault(company.pk, (company, marked("website")))
    if symbol.strip():
        for company in everything.filter(symbol__iexact=symbol.strip())[:3]:
            found.setdefault(company.pk, (company, marked("symbol")))
    return list(found.values())[:6]


def host_of(address: str) -> str:
    """Return the host of a URL without ``www.``; empty if there is none."""
    rest = address.strip().lower().partition("://")[2] or address.strip().lower()
    host = rest.partition("/")[0].partition(":")[0].removeprefix("www.")
    return host if "." in host else ""
