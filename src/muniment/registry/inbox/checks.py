"""
The checks that help a reviewer to decide on an item: each passes, or asks for a look.

Every check reads the database when the page of an item is opened, except that of links: a job opens these. Only public
addresses are connected to, on the ports of websites, and redirects are not followed: a website that answers with one,
or that refuses programs, is alive. The job also stores the checks that did not pass, which the queue shows and filters
by.

Of the account behind a request, reviewers see counts and public names: neither texts of earlier requests nor drafts.
"""

import http.client
import logging
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from django.conf import settings
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.operations import has_verified_email
from muniment.jobs import handlers
from muniment.jobs.queue import JobRun
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.languages.translated import translated
from muniment.languages.writing import number
from muniment.outbound import fetching
from muniment.outbound.fetching import Connection
from muniment.outbound.following import plain_address
from muniment.registry.company import listings
from muniment.registry.company.access import require_reviewer
from muniment.registry.company.listings import OwnedCompany
from muniment.registry.models import Company, DomainProof, ItemChecks, PendingChange, Petition, State
from muniment.registry.review import claims
from muniment.registry.review.duplicates import host_of, likely_duplicates
from muniment.registry.review.notifications import CHECK, check
from muniment.registry.review.values import broken_values
from muniment.registry.verification.checks import addresses_of
from muniment.registry.verification.hosts import claim_of, mail_addresses
from muniment.registry.verification.proofs import current_claim, evidence_for
from muniment.registry_toml.vocabulary import suggested
from muniment.schema.kinds import Text

TOLERANCE: Final = 0.5
"""Percentage points by which rounded shares may miss 100."""
JUMP: Final = 10
"""From how many times as much, or as little, on a change is large."""
_SUFFIXES: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
NAMES: Final = ("website", "links", "duplicates", "domain", "numbers", "values", "missing")
NEEDED: Final = ("type", "description", "website")
"""The fields that a listing should have when it is submitted."""
RENEWED_AFTER: Final = timedelta(days=1)
MAX_ORGANIZATIONS: Final = 50
PER_SWEEP: Final = 500
LISTINGS_SHOWN: Final = 5


MAX_LINKS: Final = 6
_DEAD: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)

connection: Connection = {}
"""Options of connections to websites; empty in production."""
log = logging.getLogger(__name__)


class Finding(NamedTuple):
    """A link and what is wrong with it; "" if it answers. ``is_checked`` is False if this instance cannot tell."""

    url: str
    fault: str
    is_checked: bool = True

    def to_wire(self) -> JSONObject:
        return self._asdict()


def links_in(facts: JSONMapping) -> list[str]:
    """Return the websites among the values of a company, at most `MAX_LINKS`."""
    values: list[Any] = [facts.get("website"), facts.get("dao_website"), *(facts.get("socials") or {}).values()]
    links: dict[str, None] = {}
    for value in values:
        # A profile on a network can be a name alone.
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            links[value.strip()] = None
    return list(links)[:MAX_LINKS]


def look(url: str) -> Finding:
    """Ask a website whether *url* is there. Takes up to `fetching.DEADLINE_S`."""
    address = _requestable(url)
    if not address:
        return Finding(url, "", is_checked=False)
    try:
        how: Connection = {"resolve": addresses_of, **connection}
        status = fetching.answered_status(address, **how)
    except (OSError, ValueError, http.client.HTTPException) as error:
        log.debug("a link of an item under review is dead: %s", type(error).__name__)
        return Finding(url, _fault(error))
    # Other errors are answers of a website that is there, such as to a program that it does not know.
    if status in _DEAD or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Finding(url, gettext("responds with %(status)d") % {"status": status})
    return Finding(url, "")


def _requestable(url: str) -> str:
    """Return *url* as it is sent, in ASCII; "" if it names a port, a user or a host that is no name."""
    try:
        address = plain_address(url)
    except ValueError:
        return ""
    host = urlsplit(address).hostname or ""
    return "" if ":" in host or "." not in host else address


def _fault(error: Exception) -> str:
    """Return why a website did not answer, without telling anything of the network around this instance."""
    match error:
        case ssl.SSLCertVerificationError():
            return gettext("its certificate is not valid")
        case ssl.SSLError() | http.client.HTTPException():
            return gettext("gives no valid response")
        case TimeoutError():
            return gettext("takes too long to respond")
        case ValueError():
            return gettext("leads to an address that is not public")
        case _:
            return gettext("can't be reached")


def odd_sums(bundle: JSONMapping) -> list[str]:
    """Return the sums of a listing, in wire form, that do not add up."""
    sentences = []
    pools = _sum((bundle.get("distribution") or {}).get("pools") or ())
    if pools is not None and abs(pools - 100) > TOLERANCE:
        sentences.append(gettext("the pools add up to %(sum)s%%, not 100%%") % {"sum": f"{pools:g}"})
    rows = msgspec.json.decode(msgspec.json.encode(bundle.get("capTable") or ()))  # a bundle has them encoded
    holders = _sum(rows)
    if holders is not None and holders > 100 + TOLERANCE:
        sentences.append(gettext("the cap table adds up to %(sum)s%%") % {"sum": f"{holders:g}"})
    return sentences


def _sum(rows: Iterable[Mapping[str, Any]]) -> float | None:
    shares = [row["percentage"] for row in rows if _is_number(row.get("percentage"))]
    return round(sum(shares), 2) if shares else None


def jumps(before: JSONMapping, after: JSONMapping) -> list[tuple[str, str]]:
    """
    Return the fields of *after* that differ from *before* by a large factor.

    Returns:
        The name of each field and what happens to it.
    """
    large_changes = []
    for name, value in after.items():
        old, new = _amount(before.get(name)), _amount(value)
        if isinstance(value, list) and isinstance(before.get(name), list):
            was, will = len(before[name]), len(value)
            if was >= JUMP and will * 2 < was:
                large_changes.append((name, gettext("%(was)d rows become %(will)d") % {"was": was, "will": will}))
        elif old and new and max(old, new) / min(old, new) >= JUMP:
            values = {"was": _shown(before[name]), "will": _shown(value)}
            large_changes.append((name, gettext("%(was)s becomes %(will)s") % values))
    return large_changes


def _shown(value: object) -> str:
    return number(value) if _is_number(value) else str(value)  # type: ignore[arg-type]  # checked


def _amount(value: object) -> float:
    """Return a number or a formatted amount, such as ``$1.2M``, as a number; 0 if it is none."""
    if _is_number(value):
        return abs(float(value))  # type: ignore[arg-type]  # checked
    if not isinstance(value, str):
        return 0.0
    digits = "".join(character for character in value if character.isdigit() or character == ".")
    try:
        return float(digits) * _SUFFIXES.get(value.strip()[-1:].upper(), 1.0)
    except ValueError:
        return 0.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Check(NamedTuple):
    """
    A check of an item.

    Args:
        passed: None while it was not made.
        found: what it found, as text after its label.
        rows: for duplicates, the name, the slug and what is the same.
    """

    name: str
    passed: bool | None
    found: str
    rows: tuple[tuple[str, str, str], ...] = ()


def checks_of(actor: Actor, subject: str) -> list[Check]:
    """Return the checks of an item, or none if it does not exist."""
    kind, _, key = subject.partition(":")
    stored = ItemChecks.objects.filter(subject=subject).first()
    if kind == "company":
        return company_checks(actor, listings.get_company(actor, key), stored=stored)
    if kind == "change":
        change = PendingChange.objects.filter(pk=key).select_related("company").first()
        if change is None:
            return []
        mine = listings.get_company(actor, change.company.slug)
        return company_checks(actor, mine, change.changes, stored=stored)
    petition = Petition.objects.filter(pk=key).select_related("company", "person", "account").first()
    return petition_checks(actor, petition, stored=stored) if petition else []


def company_checks(
    actor: Actor, mine: OwnedCompany, changes: JSONMapping | None = None, *, stored: ItemChecks | None = None
) -> list[Check]:
    """Return the checks of a listing, with the *changes* that are requested."""
    facts = {**mine.bundle["company"], **(changes or {})}
    website = facts.get("website") or ""
    lacking = [name for name in NEEDED if not facts.get(name)]
    broken = [translated(fault.sentence) for fault in broken_values({**mine.bundle, "company": facts})]
    judged = facts if changes is None else changes
    odd = broken + new_values(judged, mine.slug)
    return [
        _website(website),
        _links(links_in(facts), stored),
        _duplicates(actor, facts, mine.slug),
        _domain(mine.slug),
        _numbers(odd_sums(mine.bundle)),
        Check("values", not odd, "; ".join(odd) or gettext("valid")),
        _missing(lacking, has_body=bool(facts.get("body"))),
    ]


def new_values(facts: JSONMapping, slug: str) -> list[str]:
    """
    Return the values that are neither suggested nor those of another public listing, as sentences.

    Such a value is often a slip or another word for one in use, and splits what people filter by.
    """
    sentences = []
    for field in settings.SCHEMA.company.fields:
        value = facts.get(field.name)
        if not isinstance(field.kind, Text) or not field.kind.suggest or not value:
            continue
        suggestions = {word.casefold() for word in suggested(field.name, field.kind.suggest)}
        of_others = Company.objects.filter(published=True, **{f"{field.column}__iexact": value}).exclude(slug=slug)
        if str(value).casefold() not in suggestions and not of_others.exists():
            words = gettext("%(field)s: no other listing has “%(value)s”")
            sentences.append(words % {"field": gettext(field.label), "value": value})
    return sentences


def list_dead_links(actor: Actor, slug: str) -> list[Finding]:
    """
    Return the links of a listing that did not respond when they were checked for its review.

    Raises:
        NotFound: no such listing, or not the actor's.
    """
    own_links = links_in(listings.get_company(actor, slug).bundle["company"])
    changes = PendingChange.objects.filter(company__slug=slug).values_list("pk", flat=True)
    subjects = [f"company:{slug}", *(f"change:{pk}" for pk in changes)]
    findings: dict[str, Finding] = {}
    for links in ItemChecks.objects.filter(subject__in=subjects).order_by("at").values_list("links", flat=True):
        for link in links:
            findings[link["url"]] = Finding(**link)  # the latest one of a link stays
    dead_links = []
    for link in own_links:
        finding = findings.get(link)
        if finding is not None and finding.fault:
            dead_links.append(finding)
    return dead_links


def petition_checks(actor: Actor, petition: Petition, *, stored: ItemChecks | None = None) -> list[Check]:
    """Return the checks of a claim or a suggestion."""
    if petition.company is None:
        return [_claimant_of_profile(petition)]
    if petition.kind == Petition.RequestKind.CLAIM:
        return [_claimant(petition)]
    difference = claims.describe(petition)
    before = {name: values["before"] for name, values in difference.items()}
    after = {name: values["after"] for name, values in difference.items()}
    mine = listings.get_company(actor, petition.company.slug)
    facts = {**mine.bundle["company"], **after}
    odd = [f"{_label(name)}: {words}" for name, words in jumps(before, after)]
    if after.keys() & {"distribution", "capTable"}:
        odd += odd_sums({**mine.bundle, **after})
    present_links = links_in(mine.bundle["company"])
    new_links = [link for link in links_in(after) if link not in present_links]
    # Only what the suggestion can have changed is checked.
    checks = []
    if after.keys() & {"name", "website", "symbol"}:
        checks.append(_duplicates(actor, facts, mine.slug))
    if new_links:
        checks.append(_links(new_links, stored))
    checks.append(_numbers(odd))
    return checks


def _label(name: str) -> str:
    fields = {**settings.SCHEMA.bundle.by_name, **settings.SCHEMA.company.by_name}
    return gettext(fields[name].label) if name in fields else name


def _website(website: str) -> Check:
    host = host_of(website)
    return Check("website", bool(host), host or gettext("missing"))


def _links(wanted: list[str], stored: ItemChecks | None) -> Check:
    if not wanted:
        return Check("links", passed=True, found=gettext("none"))
    findings = _findings_of(wanted, stored)
    dead = [f"{finding.url} {finding.fault}" for finding in findings if finding.fault]
    if dead:
        return Check("links", passed=False, found="; ".join(dead))
    if len(findings) < len(wanted):
        words = gettext("not checked yet") if config.current().link_checks else gettext("link checks are turned off")
        return Check("links", passed=None, found=words)
    unknown = [finding.url for finding in findings if not finding.is_checked]
    if unknown:
        words = gettext("open it yourself: %(links)s") % {"links": ", ".join(unknown)}
        return Check("links", passed=False, found=words)
    return Check("links", passed=True, found=gettext("all respond"))


def _findings_of(wanted: list[str], stored: ItemChecks | None) -> list[Finding]:
    """Return what the job has stored about the links *wanted*, in their order; nothing about those it has not seen."""
    if stored is None:
        return []
    stored_links = {link["url"]: link for link in stored.links}
    return [Finding(**stored_links[url]) for url in wanted if url in stored_links]


def _duplicates(actor: Actor, facts: JSONMapping, slug: str) -> Check:
    values = (str(facts.get(name) or "") for name in ("name", "website", "symbol"))
    twins = likely_duplicates(actor, *values, besides=slug)
    rows = tuple((company.name, company.slug, shared) for company, shared in twins)
    return Check("duplicates", not twins, gettext("none with the same name, website or symbol"), rows)


def _domain(slug: str) -> Check:
    """Return whether an owner proved the website's domain, or has a mail address there."""
    company = Company.objects.get(slug=slug)
    owners = company.ownerships.values_list("account_id", "account__email")
    proof = DomainProof.objects.filter(
        company=company,
        account_id__in=[key for key, _ in owners],
        website=company.website,
        state=DomainProof.ProofState.VERIFIED,
    ).first()
    if proof is not None:
        return Check("domain", passed=True, found=gettext("%(domain)s is verified") % {"domain": proof.domain})
    claim = current_claim(company)
    if claim is None:
        return Check(
            "domain", passed=False, found=gettext("the website has no domain of its own, or other listings share it")
        )
    if any(_is_at(email, mail_addresses(claim, email)) for _, email in owners):
        return Check("domain", passed=True, found=gettext("an owner has an email address at %s") % claim.domain)
    if not owners:
        return Check("domain", passed=None, found=gettext("this listing has no owner"))
    return Check("domain", passed=False, found=gettext("no owner has an email address at %s") % claim.domain)


def _is_at(email: str, addresses: Iterable[str]) -> bool:
    return email.lower() in map(str.lower, addresses)


def _claimant(petition: Petition) -> Check:
    evidence = evidence_for(petition)
    proofs = evidence.proofs if evidence else []
    verified = [proof for proof in proofs if proof.state == DomainProof.ProofState.VERIFIED]
    if verified:
        return Check("domain", passed=True, found=gettext("%(domain)s is verified") % {"domain": verified[0].domain})
    if evidence and evidence.email_matches:
        words = gettext("the claimant has an email address at %s") % evidence.domain
        return Check("domain", passed=True, found=words)
    return Check("domain", passed=False, found=gettext("nothing connects the claimant to the website"))


def _claimant_of_profile(petition: Petition) -> Check:
    """Return whether the claimant has a mail address at an organization that names the person."""
    named = Company.objects.filter(positions__person=petition.person, state=State.PUBLISHED).distinct()
    email = petition.account.email
    for company in named.order_by("pk")[:MAX_ORGANIZATIONS]:
        claim = claim_of(company.website)
        if claim is not None and _is_at(email, mail_addresses(claim, email)):
            values = {"domain": claim.domain, "company": company.name}
            words = gettext("the claimant has an email address at %(domain)s (%(company)s)")
            return Check("domain", passed=True, found=words % values)
    return Check("domain", passed=False, found=gettext("no email address at an organization that names the person"))


def _numbers(odd: list[str]) -> Check:
    return Check("numbers", not odd, "; ".join(odd) or gettext("no sum above 100%, no large jumps"))


def _missing(lacking: list[str], *, has_body: bool) -> Check:
    words = {"type": gettext("type"), "description": gettext("summary"), "website": gettext("website")}
    sentences = []
    if lacking:
        sentences.append(gettext("required: %(fields)s") % {"fields": ", ".join(words[name] for name in lacking)})
    if not has_body:
        sentences.append(gettext("recommended: full description"))
    return Check("missing", not lacking, "; ".join(sentences) or gettext("none"))


def open_stamps() -> dict[str, str]:
    """Return what there is to check of each open item, by subject."""
    stamps: dict[str, str] = {}
    for slug, version in Company.objects.filter(state=State.SUBMITTED).values_list("slug", "version"):
        stamps[f"company:{slug}"] = str(version)
    for key, version in PendingChange.objects.filter(decision="").values_list("pk", "company__version"):
        stamps[f"change:{key}"] = str(version)
    petitions = Petition.objects.filter(decision="").values_list("pk", "company__version", "person__version")
    for key, of_company, of_person in petitions:
        stamps[f"petition:{key}"] = str(of_company or of_person)
    return stamps


def _stamp(subject: str) -> str:
    """Return the stamp of an item; "" if it is not open."""
    kind, _, key = subject.partition(":")
    version: int | None = None
    if kind == "company":
        version = Company.objects.filter(state=State.SUBMITTED, slug=key).values_list("version", flat=True).first()
    elif kind == "change":
        changes = PendingChange.objects.filter(decision="", pk=key)
        version = changes.values_list("company__version", flat=True).first()
    else:
        petitions = Petition.objects.filter(decision="", pk=key)
        for of_company, of_person in petitions.values_list("company__version", "person__version"):
            version = of_company or of_person
    return "" if version is None else str(version)


def check_item(run: JobRun) -> None:
    """Make and store the checks of an item: first what the database tells, then its links, one after the other."""
    subject = run.payload["subject"]
    stamp = _stamp(subject)
    if not stamp:
        return
    _store(subject, stamp, links_found=None)
    if not config.current().link_checks:
        return
    findings = []
    for link in _links_of(subject):
        run.check()
        findings.append(look(link).to_wire())
    _store(subject, stamp, links_found=findings)


def _links_of(subject: str) -> list[str]:
    kind, _, key = subject.partition(":")
    if kind == "company":
        return links_in(listings.get_company(SYSTEM, key).bundle["company"])
    if kind == "change":
        slug = PendingChange.objects.values_list("company__slug", flat=True).get(pk=key)
        return links_in(listings.get_company(SYSTEM, slug).bundle["company"])
    petition = Petition.objects.select_related("company").get(pk=key)
    difference = claims.describe(petition)
    return links_in({name: values["after"] for name, values in difference.items()})


def _store(subject: str, stamp: str, *, links_found: list[JSONObject] | None) -> None:
    row = ItemChecks.objects.filter(subject=subject).first() or ItemChecks(subject=subject)
    row.stamp, row.at = stamp, now()
    if links_found is not None:
        row.links = links_found
    row.save()
    failed = [check.name for check in checks_of(SYSTEM, subject) if check.passed is False]
    # With a blank on both sides of each name, so that a search for one in blanks finds no part of another.
    attention = f" {' '.join(failed)} " if failed else ""
    ItemChecks.objects.filter(pk=row.pk).update(attention=attention)


def sweep() -> int:
    """Check the open items whose checks are missing or old, and delete the checks of others; return how many."""
    stamps = open_stamps()
    stored: dict[str, tuple[str, datetime]] = {}
    for subject, stamp, at in ItemChecks.objects.values_list("subject", "stamp", "at"):
        stored[subject] = (stamp, at)
    decided = [subject for subject in stored if subject not in stamps]
    for start in range(0, len(decided), PER_SWEEP):
        ItemChecks.objects.filter(subject__in=decided[start : start + PER_SWEEP]).delete()
    oldest = now() - RENEWED_AFTER  # links die although nothing in the listing changes
    due = []
    for subject, stamp in stamps.items():
        stored_stamp, at = stored.get(subject, ("", oldest))
        if stored_stamp != stamp or at < oldest:
            due.append(subject)
    for subject in due[:PER_SWEEP]:
        check(subject)
    return len(due)


@dataclass(frozen=True, slots=True)
class Claimant:
    """
    An account that requests something.

    Args:
        since: the first day of the month in which the account was created.
        domain: the domain of its email address.
        is_verified: it received a code there.
        listings: names and slugs of public listings that it owns, at most `LISTINGS_SHOWN`.
        owned: how many public listings it owns.
        approved: earlier requests and listings of it that reviewers approved.
        declined: those that reviewers declined.
    """

    since: date
    domain: str
    is_verified: bool
    listings: tuple[tuple[str, str], ...]
    owned: int
    approved: int
    declined: int


def claimant_of(actor: Actor, petition: Petition) -> Claimant:
    """Return what is known of the account behind a request; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, "see who makes a request")
    account = petition.account
    public = Company.objects.filter(ownerships__account=account, state=State.PUBLISHED).order_by("name", "pk")
    decided = Petition.objects.filter(account=account).exclude(pk=petition.pk)
    rejected = Company.objects.filter(ownerships__account=account, state=State.REJECTED)
    submitted = public.filter(submitted_at__isnull=False)
    return Claimant(
        since=account.joined_at.date().replace(day=1),
        domain=account.email.rpartition("@")[2],
        is_verified=has_verified_email(account),
        listings=tuple(public.values_list("name", "slug")[:LISTINGS_SHOWN]),
        owned=public.count(),
        approved=decided.filter(decision="approved").count() + submitted.count(),
        declined=decided.filter(decision="refused").count() + rejected.count(),
    )


handlers.register(handlers.Handler(kind=CHECK, work=check_item, lease_s=60, max_attempts=3, back_off_s=30, per_group=2))
handlers.register(handlers.Handler(kind="registry.items_wait", work=lambda _: sweep(), lease_s=60), every_s=600)
