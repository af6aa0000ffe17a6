"""
Prove the domain of a listing's website: begin, check, confirm a mailed code, repeat, and what ends a proof.

Owners and accounts with an open claim prove. A proof is of one account, for one website: it shows while that account
owns the listing, and ends for good when the website changes. Every 90 days a record or a file is looked up again, and a
mailed proof is confirmed with a new code; a proof that fails for 14 days is hidden.

Source: issue of the record, evidence for claims; decisions, section 2.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import quote

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext, gettext_noop

from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooMany
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.registry import history
from muniment.registry.company.access import require_account
from muniment.registry.company.listings import publish_owners
from muniment.registry.models import Company, DomainProof, HistoryEntry, Ownership, Petition, State
from muniment.registry.review.notifications import announce
from muniment.registry.verification import checks
from muniment.registry.verification.hosts import Claim, Method, as_written, bare, claim_of, mail_addresses, site_of

HIDDEN_AFTER: Final = timedelta(days=14)
RETRIED_AFTER: Final = timedelta(days=1)
PER_RUN: Final = 200


ProofState = DomainProof.ProofState

SHARED_FROM: Final = 3
"""Listings with the same host from which on the host counts as one that many share."""
REPEATED_AFTER: Final = timedelta(days=90)
CODE_VALID_FOR: Final = timedelta(hours=1)
MAX_ATTEMPTS: Final = 5
CHECKS_AN_HOUR: Final = 30
MAILS_A_DAY: Final = 10
"""Codes that one account may have sent."""
MAILS_TO_ONE_A_DAY: Final = 3
_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


@dataclass(frozen=True, slots=True)
class Verification:
    """The proofs that an account can give about a listing, and the state of the verification."""

    company: Company
    claim: Claim | None
    proofs: dict[str, DomainProof]
    addresses: list[str]
    is_owner: bool


def find_verification(actor: Actor, slug: str) -> Verification:
    """
    Return what the actor can prove about a published listing.

    Raises:
        Forbidden: the actor has no account.
        NotFound: no such listing, or the actor neither owns nor claims it.
    """
    company = _provable(actor, slug)
    claim = current_claim(company)
    mine = DomainProof.objects.filter(company=company, account=actor.account_id, website=company.website)
    proofs = {proof.method: proof for proof in mine.exclude(state=ProofState.ENDED)}
    is_owner = company.ownerships.filter(account=actor.account_id).exists()
    addresses = _addresses(company, claim) if claim else []
    return Verification(company, claim, proofs, addresses, is_owner)


def current_claim(company: Company) -> Claim | None:
    """Return what can be proven about the website of *company* now."""
    site = site_of(company.website)
    return claim_of(company.website, shared=site is not None and _users(site.host) >= SHARED_FROM)


def _users(host: str) -> int:
    spelled = Q(website__icontains=bare(host)) | Q(website__icontains=as_written(bare(host)))
    near = Company.objects.filter(spelled, state=State.PUBLISHED).values_list("website", flat=True)
    sites = filter(None, map(site_of, near))
    return sum(bare(site.host) == bare(host) for site in sites)


def _addresses(company: Company, claim: Claim) -> list[str]:
    published = (company.socials or {}).get("email") or ""
    if not _is_reviewed(company, published):
        published = ""
    return mail_addresses(claim, published)


def _is_reviewed(company: Company, address: str) -> bool:
    """Return whether a reviewer or operator has seen *address* on the listing: owners can put any address there."""
    entries = HistoryEntry.objects.filter(company=company).select_related("account").order_by("-at", "-pk")
    for entry in history.touching(entries, ("socials",), actions=("approved",)).iterator(chunk_size=1):
        if entry.action == "approved":
            return True
        if (entry.after.get("socials") or {}).get("email") == address:
            by_reviewer = entry.account is not None and entry.account.actor("web").is_reviewer
            return by_reviewer or entry.via in {"command", "system"}
    return True


def start_proof(actor: Actor, slug: str, method: str) -> DomainProof:
    """
    Begin a proof by DNS or by a file: make the value that the record or the file must contain.

    Raises:
        Forbidden: the actor has no account.
        NotFound: no such listing, or the actor neither owns nor claims it.
        BadRequest: the website cannot be proven this way.
    """
    with transaction.atomic():
        company = _provable(actor, slug, lock=True)
        claim = _require(current_claim(company), method, of=("dns", "file"))
        proof = _begun(actor, company, claim, method)
        if not proof.value:
            proof.value = f"muniment-verification={secrets.token_hex(16)}"
            proof.save(update_fields=["value"])
        return proof


def check_proof(actor: Actor, slug: str, method: str) -> DomainProof:
    """
    Look for the record or the file now.

    Returns:
        The proof; its finding says what is wrong while it is not verified.

    Raises:
        NotFound: no such listing or proof, or the actor neither owns nor claims the listing.
        Conflict: the website changed meanwhile.
        TooMany: the account has checked too often.
    """
    company = _provable(actor, slug)
    proof = _standing(actor, company).filter(method=method).first()
    if proof is None or method == "mail":
        raise NotFound("This proof was not begun, or has ended.", "Begin it again.")
    _hold(f"proof-checks:{actor.account_id}", CHECKS_AN_HOUR, hours=1)
    return settle(proof.pk, inspect(proof), actor)


def inspect(proof: DomainProof) -> str:
    """Return the finding of a look at the record or the file; "" if the proof holds. Takes seconds."""
    claim = current_claim(proof.company)
    if claim is None or proof.method not in claim.methods or claim.domain != proof.domain:
        return gettext(checks.SHARED)
    return checks.look(claim, proof)


def settle(proof_id: int, finding: str, actor: Actor) -> DomainProof:
    """
    Record a finding: verify the proof, or keep what is wrong.

    Raises:
        Conflict: the proof ended during the look.
    """
    with transaction.atomic():
        proof = locked(proof_id)
        if proof is None:
            raise Conflict("The website of the listing has changed.", "Reload the page and begin again.")
        if finding:
            proof.finding = finding
            proof.save(update_fields=["finding"])
        else:
            verify(actor, proof)
        return proof


def locked(proof_id: int) -> DomainProof | None:
    """Lock a proof and its listing; None if it has ended."""
    company = Company.objects.select_for_update(of=("self",)).filter(domain_proofs=proof_id).first()
    if company is None:
        return None
    held = DomainProof.objects.select_for_update(of=("self",)).filter(pk=proof_id, website=company.website)
    proof = held.exclude(state=ProofState.ENDED).first()
    if proof is not None:
        proof.company = company
    return proof


def verify(actor: Actor, proof: DomainProof) -> None:
    """Mark a locked proof as found now, and publish what its listing shows of it."""
    first = proof.state != ProofState.VERIFIED
    proof.state, proof.finding, proof.failing_since = ProofState.VERIFIED, "", None
    proof.code_digest, proof.code_expires_at, proof.attempts = "", None, 0
    proof.verified_at = now()
    proof.due_at = proof.verified_at + REPEATED_AFTER
    proof.save()
    if first:
        after = {"verifiedDomain": f"{proof.domain} ({proof.method})"}
        history.entry(actor, "domain verified", before={}, after=after, company=proof.company).save()
        claimed = Petition.objects.filter(company=proof.company_id, account=proof.account_id, decision="")
        for key in claimed.values_list("pk", flat=True):
            announce(f"petition:{key}")
    if is_owners(proof):
        publish_owners(proof.company)


def is_owners(proof: DomainProof) -> bool:
    return Ownership.objects.filter(company=proof.company_id, account=proof.account_id).exists()


def send_code(actor: Actor, slug: str, address: str) -> DomainProof:
    """
    Mail a code to an address at the website's domain.

    Raises:
        Forbidden: the actor has no account.
        NotFound: no such listing, or the actor neither owns nor claims it.
        BadRequest: the website cannot be proven by mail, or the address is not one that the page offers.
        TooMany: too many codes were sent, by this account or to this address.
    """
    account_id = require_account(actor, "A proof belongs to an account.")
    with transaction.atomic():
        company = _provable(actor, slug, lock=True)
        claim = _require(current_claim(company), "mail", of=("mail",))
        if address not in _addresses(company, claim):
            raise BadRequest("The address does not belong to this domain.", "Choose one of the addresses on the page.")
        _hold(f"proof-mails:{account_id}", MAILS_A_DAY, hours=24)
        _hold(f"proof-mails-to:{address}", MAILS_TO_ONE_A_DAY, hours=24)
        proof = _begun(actor, company, claim, "mail")
        if proof.state == ProofState.VERIFIED and proof.address != address:
            raise BadRequest(
                Phrase("This domain is verified with {address}.", address=proof.address),
                "Send a code to that address to confirm it again.",
            )
        renew_code(proof, CODE_VALID_FOR, address)
        return proof


def renew_code(proof: DomainProof, valid_for: timedelta, address: str) -> None:
    """Replace the code of a locked proof and mail it."""
    text = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    proof.address = address
    proof.code_digest = _code_digest(proof, text)
    proof.code_expires_at, proof.attempts = now() + valid_for, 0
    proof.save()
    mail_code(proof, f"{text[:4]}-{text[4:]}", valid_for)


def confirm_code(actor: Actor, slug: str, code: str) -> DomainProof:
    """
    Verify the domain with the mailed code.

    Raises:
        NotFound: no such listing, or the actor neither owns nor claims it; no code was sent to prove it.
        BadRequest: the code is wrong, was used, or has expired.
    """
    company = _provable(actor, slug)
    with transaction.atomic():
        mail_proof = _standing(actor, company).filter(method="mail").first()
        proof = locked(mail_proof.pk) if mail_proof else None
        if proof is None:
            raise NotFound("No code was sent.", "Send a code first.")
        is_unexpired = proof.code_expires_at is not None and proof.code_expires_at > now()
        is_usable = is_unexpired and proof.attempts < MAX_ATTEMPTS
        typed = "".join(sign for sign in code.upper() if sign.isalnum())  # people type it with spaces or a dash
        is_right = is_usable and _is_code(proof, typed)
        if is_right:
            verify(actor, proof)
        else:
            proof.attempts = min(proof.attempts + 1, MAX_ATTEMPTS)
            proof.save(update_fields=["attempts"])
    # After the transaction, which would take the attempt back.
    if not is_usable:
        raise BadRequest("The code was used or has expired.", "Send a new one.")
    if not is_right:
        raise BadRequest(
            "The code is wrong.",
            Phrase("A code can be tried {limit} times. Check it, or send a new one.", limit=MAX_ATTEMPTS),
        )
    return proof


def _is_code(proof: DomainProof, typed: str) -> bool:
    """Return whether *typed* is the mailed code, which may have been sent under a former secret key."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(constant_time_compare(proof.code_digest, _code_digest(proof, typed, key)) for key in keys)


def _code_digest(proof: DomainProof, code: str, key: str = "") -> str:
    """Return a keyed digest: who reads the database cannot find the code by trying all."""
    text, key = f"{proof.pk}:{proof.address}:{code}", key or settings.SECRET_KEY
    return salted_hmac("muniment.domain-proof", text, secret=key, algorithm="sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Evidence:
    """
    The evidence for the claim of a listing, as the reviewer sees it.

    Args:
        domain: what can be proven about the website; "" if nothing can.
        email_matches: the account's email address is at that domain, and the domain is not shared.
        listings: how many listings the account owns.
    """

    domain: str
    proofs: list[DomainProof]
    email_matches: bool
    listings: int


def evidence_for(petition: Petition) -> Evidence | None:
    """Return the evidence beside the claim of a listing; None for other requests."""
    company = petition.company
    if company is None or petition.kind != Petition.RequestKind.CLAIM:
        return None
    account = petition.account
    claim = current_claim(company)
    addresses = mail_addresses(claim, account.email) if claim else []
    return Evidence(
        domain=claim.domain if claim else "",
        proofs=list(DomainProof.objects.filter(company=company, account=account).order_by("pk")),
        email_matches=account.email.lower() in [address.lower() for address in addresses],
        listings=Ownership.objects.filter(account=account).count(),
    )


def _provable(actor: Actor, slug: str, *, lock: bool = False) -> Company:
    account_id = require_account(actor, "A proof belongs to an account.")
    companies = Company.objects.filter(slug=slug, state=State.PUBLISHED)
    if lock:
        companies = companies.select_for_update(of=("self",))
    company = companies.first()
    if company is not None:
        claims = Petition.objects.filter(
            company=company, account=account_id, kind=Petition.RequestKind.CLAIM, decision=""
        )
        if company.ownerships.filter(account=account_id).exists() or claims.exists():
            return company
    raise NotFound(
        Phrase("You neither own nor claim a company with the slug {slug!r}.", slug=slug[:200]),
        "Claim the listing on its public page.",
    )


def _standing(actor: Actor, company: Company) -> QuerySet[DomainProof]:
    mine = DomainProof.objects.filter(company=company, account=actor.account_id, website=company.website)
    return mine.select_related("company").exclude(state=ProofState.ENDED)


def _require(claim: Claim | None, method: str, *, of: tuple[Method, ...]) -> Claim:
    if claim is None:
        raise BadRequest(
            "The domain of this website cannot be proven.",
            "It needs a host of its own, or a path of its own on a host that many share.",
        )
    if method not in of or method not in claim.methods:
        raise BadRequest(
            Phrase("{domain} cannot be proven this way.", domain=claim.domain),
            Phrase("Use one of: {methods}.", methods=", ".join(claim.methods)),
        )
    return claim


def _begun(actor: Actor, company: Company, claim: Claim, method: str) -> DomainProof:
    """Return the actor's proof by *method* for the present website; a proof of anything else ends."""
    of_website = {"website": company.website, "domain": claim.domain}
    subject = {"company": company, "account_id": actor.account_id, "method": method}
    open_ones = DomainProof.objects.filter(**subject).exclude(state=ProofState.ENDED)
    open_ones.exclude(**of_website).update(state=ProofState.ENDED, due_at=None)
    return open_ones.first() or DomainProof.objects.create(**subject, **of_website)


def _hold(key: str, limit: int, *, hours: int) -> None:
    window = int(now().timestamp()) // (3_600 * hours)
    kept = f"{key}:{window}"
    cache.add(kept, 0, timeout=3_600 * hours + 60)
    if cache.incr(kept) > limit:
        raise TooMany("You have done this too often.", "Try again later.", retry_after_s=3_600)


_CODE: Final = gettext_noop(
    "%(account)s asks to verify that %(domain)s belongs to this listing:\n\n%(listing)s\n\n"
    "To confirm it, enter this code at %(page)s while signed in to that account:\n\n%(code)s\n\n"
    "The code expires in %(valid)s. If you did not expect this message, ignore it and do not pass the code on.\n"
)
_WARNINGS: Final = {
    "failing": (
        gettext_noop("%(domain)s: verification failed"),
        gettext_noop(
            "We could not find your proof of %(domain)s again: %(finding)s\n\n"
            "The domain is shown as verified for 14 more days. Restore the proof before then:\n\n%(page)s\n"
        ),
    ),
    "code sent": (
        gettext_noop("%(domain)s: confirm it again"),
        gettext_noop(
            "We sent a new code to %(address)s, because a verified domain is confirmed every 90 days.\n\n"
            "The domain is shown as verified for 14 more days. Enter the code before then:\n\n%(page)s\n"
        ),
    ),
    "hidden": (
        gettext_noop("%(domain)s: no longer verified"),
        gettext_noop(
            "We could not find your proof of %(domain)s for 14 days, so the domain is no longer shown as verified:"
            " %(finding)s\n\nVerify it again:\n\n%(page)s\n"
        ),
    ),
}


def mail_code(proof: DomainProof, code: str, valid_for: timedelta) -> None:
    """Send a code to the address of a proof."""
    days = valid_for.days
    with in_language_of(proof.account):
        duration = gettext("%(days)d days") % {"days": days} if days else gettext("one hour")
        values = {
            **_values(proof),
            "account": proof.account.email,
            "listing": places.place(f"/companies/{quote(proof.company.slug)}"),
            "code": code,
            "valid": duration,
        }
        subject = gettext("Code to verify %(domain)s") % values
        outgoing.send(proof.address, subject, gettext(_CODE) % values, kind="code", expires_at=proof.code_expires_at)


def warn_account(proof: DomainProof, what: str) -> None:
    """Notify the account that its proof fails, needs a new code, or is hidden."""
    subject, text = _WARNINGS[what]
    values = _values(proof)
    if proof.account.is_active:
        with in_language_of(proof.account):
            outgoing.send(proof.account.email, gettext(subject) % values, gettext(text) % values)


def _values(proof: DomainProof) -> dict[str, str]:
    return {
        "domain": proof.domain,
        "address": proof.address,
        "finding": proof.finding,
        "page": places.place(f"/companies/{quote(proof.company.slug)}/domain"),
    }


def repeat_proofs() -> int:
    """Repeat the proofs that are due, each in transactions of its own; return how many there were."""
    due = DomainProof.objects.filter(state=ProofState.VERIFIED, due_at__lte=now()).order_by("due_at", "pk")
    chosen = list(due.select_related("company", "account")[:PER_RUN])
    for proof in chosen:
        finding = ""
        if proof.method != "mail" and is_owners(proof):
            try:
                finding = inspect(proof)
            except TooMany:
                continue  # the next run has a slot
        _settle_due(proof.pk, finding)
    return len(chosen)


def _settle_due(proof_id: int, finding: str) -> None:
    with transaction.atomic():
        proof = locked(proof_id)
        if proof is None or not is_owners(proof):
            kept = DomainProof.objects.filter(pk=proof_id)
            kept.update(state=ProofState.ENDED, due_at=None, finding="The account no longer owns the listing.")
        elif proof.due_at is None or proof.due_at > now():
            pass  # verified in the meantime
        elif proof.method != "mail" and not finding:
            verify(SYSTEM, proof)
        else:
            _fail(proof, finding)


def _fail(proof: DomainProof, finding: str) -> None:
    """Record that a proof was not found again; warn its account the first time, and when it is hidden."""
    at = now()
    is_first = proof.failing_since is None
    proof.failing_since = proof.failing_since or at
    proof.finding = finding
    is_hidden = at - proof.failing_since >= HIDDEN_AFTER
    if is_hidden:
        proof.state, proof.due_at = ProofState.FAILED, None
        before = {"verifiedDomain": f"{proof.domain} ({proof.method})"}
        history.entry(SYSTEM, "domain proof failed", before=before, after={}, company=proof.company).save()
    else:
        proof.due_at = min(at + RETRIED_AFTER, proof.failing_since + HIDDEN_AFTER)
    proof.save()
    if is_hidden:
        publish_owners(proof.company)
        warn_account(proof, "hidden")
    elif is_first and proof.method == "mail":
        renew_code(proof, HIDDEN_AFTER, proof.address)
        warn_account(proof, "code sent")
    elif is_first:
        warn_account(proof, "failing")
