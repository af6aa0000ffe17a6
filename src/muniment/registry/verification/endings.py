"""End proofs when the website of their listing changes."""

from collections.abc import Iterable

from muniment.registry.models import DomainProof


def end_proofs(company_ids: Iterable[int]) -> None:
    """End all proofs of listings whose website changed; none of them counts again, also if it changes back."""
    ended = DomainProof.ProofState.ENDED
    DomainProof.objects.filter(company__in=list(company_ids)).exclude(state=ended).update(
        state=ended, finding="The website changed.", due_at=None, code_digest="", code_expires_at=None
    )
