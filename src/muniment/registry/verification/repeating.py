"""
Repeat proofs every 90 days, and hide those that fail for 14 days.

A record or a file is looked up again; a mailed proof is confirmed with a new code. A proof whose account neither owns
the listing nor claims it, or whose website changed, ends instead.
"""

from datetime import timedelta
from typing import Final

from django.db import transaction

from muniment.kernel.actor import SYSTEM
from muniment.kernel.ids import now
from muniment.kernel.problems import TooMany
from muniment.registry import history
from muniment.registry.company.listings import publish_owners
from muniment.registry.models import DomainProof
from muniment.registry.verification import mailing
from muniment.registry.verification.proofs import ProofState, inspect, is_owners, locked, renew_code, verify

HIDDEN_AFTER: Final = timedelta(days=14)
RETRIED_AFTER: Final = timedelta(days=1)
PER_RUN: Final = 200


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
        _settle(proof.pk, finding)
    return len(chosen)


def _settle(proof_id: int, finding: str) -> None:
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
    at = now()
    first = proof.failing_since is None
    proof.failing_since = proof.failing_since or at
    proof.finding = finding
    if at - proof.failing_since >= HIDDEN_AFTER:
        proof.state, proof.due_at = ProofState.FAILED, None
        before = {"verifiedDomain": f"{proof.domain} ({proof.method})"}
        history.entry(SYSTEM, "domain proof failed", before=before, after={}, company=proof.company).save()
        what = "hidden"
    else:
        proof.due_at = min(at + RETRIED_AFTER, proof.failing_since + HIDDEN_AFTER)
        what = ("code sent" if proof.method == "mail" else "failing") if first else ""
    proof.save()
    if what == "code sent":
        renew_code(proof, HIDDEN_AFTER, proof.address)
    if what == "hidden":
        publish_owners(proof.company)
    if what:
        mailing.warn(proof, what)
