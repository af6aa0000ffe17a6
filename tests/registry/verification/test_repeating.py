"""Proofs are repeated every 90 days; one that fails is shown for 14 more days, and then hidden."""

from datetime import timedelta

import pytest
from django.core.cache import cache

from make.accounts import Letters
from make.registry import document as shown
from make.registry import owner, published
from muniment.accounts.models import Account
from muniment.jobs import handlers
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.models import Company, DomainProof, Ownership
from muniment.registry.review import claims
from muniment.registry.verification import checks, proofs
from muniment.registry.verification.proofs import repeat_proofs

pytestmark = pytest.mark.django_db
HOST = "harbour.example"
RECORD = f"_muniment-challenge.{HOST}"
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _clean():
    cache.clear()


@pytest.fixture
def letters(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    return Letters()


@pytest.fixture
def proven(names):
    """A listing with a domain that its owner has proven by DNS."""
    me = owner("ida@kelp.example")
    slug = published(me, website=f"https://{HOST}/").slug
    names.txt(RECORD, proofs.start_proof(me, slug, "dns").value)
    proofs.check_proof(me, slug, "dns")
    return slug


def domain(slug):
    return shown("company", slug)["company"].get("verifiedDomain")


def later(days):
    """Let days pass, by moving every stored moment of the proofs back."""
    for proof in DomainProof.objects.all():
        for name in ("verified_at", "due_at", "failing_since", "code_expires_at"):
            moment = getattr(proof, name)
            setattr(proof, name, moment and moment - days * DAY)
        proof.save()


def test_a_proof_is_repeated_after_90_days_and_not_before(proven, names):
    names.asked.clear()
    later(89)
    assert (repeat_proofs(), names.asked) == (0, [])
    later(2)
    assert (repeat_proofs(), names.asked) == (1, [(RECORD, "TXT")])
    proof = DomainProof.objects.get()
    assert proof.state == "verified"
    assert now() - proof.verified_at < DAY
    assert domain(proven)["verifiedAt"].startswith(f"{proof.verified_at:%Y-%m-%dT%H:%M}")
    assert repeat_proofs() == 0


def test_a_proof_that_fails_for_14_days_is_hidden_and_its_account_is_told(
    proven, names, letters, django_capture_on_commit_callbacks
):
    del names.records[RECORD]
    later(91)
    for _ in range(14):
        with django_capture_on_commit_callbacks(execute=True):
            assert repeat_proofs() == 1
        assert domain(proven)["domain"] == HOST
        later(1)
    assert [subject for subject, _ in letters.to("ida@kelp.example")] == [f"[Muniment] {HOST}: verification failed"]
    with django_capture_on_commit_callbacks(execute=True):
        assert repeat_proofs() == 1
    assert domain(proven) is None
    assert DomainProof.objects.get().state == "failed"
    subject, text = letters.to("ida@kelp.example")[-1]
    assert subject.endswith(f"{HOST}: no longer verified")
    assert "no TXT record" in text
    assert f"/companies/{proven}/domain" in text
    history = listings.company_history(Account.objects.get(email="ida@kelp.example").actor("web"), proven).items
    assert history[0].action == "domain proof failed"
    later(100)
    assert repeat_proofs() == 0


def test_a_proof_that_is_found_again_within_14_days_stays(proven, names):
    kept = names.records.pop(RECORD)
    later(91)
    repeat_proofs()
    later(13)
    names.records[RECORD] = kept
    repeat_proofs()
    proof = DomainProof.objects.get()
    assert (proof.state, proof.failing_since, proof.finding) == ("verified", None, "")
    later(89)
    assert repeat_proofs() == 0


def test_a_hidden_proof_is_verified_again_by_its_owner(proven, names):
    kept = names.records.pop(RECORD)
    later(91)
    repeat_proofs()
    later(14)
    repeat_proofs()
    assert domain(proven) is None
    names.records[RECORD] = kept
    me = Account.objects.get(email="ida@kelp.example").actor("web")
    assert proofs.check_proof(me, proven, "dns").state == "verified"
    assert domain(proven)["domain"] == HOST


def test_a_mailed_proof_is_confirmed_with_a_new_code(letters, django_capture_on_commit_callbacks):
    me = owner("ida@kelp.example")
    slug = published(me, website=f"https://{HOST}/").slug
    with django_capture_on_commit_callbacks(execute=True):
        proofs.send_code(me, slug, f"info@{HOST}")
    proofs.confirm_code(me, slug, letters.code(f"info@{HOST}"))
    later(91)
    for _ in range(3):
        with django_capture_on_commit_callbacks(execute=True):
            repeat_proofs()
        later(1)
    assert len(letters.to(f"info@{HOST}")) == 2
    assert "expires in 14 days" in letters.to(f"info@{HOST}")[-1][1]
    assert [subject for subject, _ in letters.to("ida@kelp.example")][2:] == [f"[Muniment] {HOST}: confirm it again"]
    assert domain(slug)["domain"] == HOST
    assert proofs.confirm_code(me, slug, letters.code(f"info@{HOST}")).failing_since is None
    later(91)
    repeat_proofs()
    later(14)
    repeat_proofs()
    assert domain(slug) is None


def test_a_host_that_many_use_by_now_is_no_longer_proven_by_its_record(proven):
    for path in ("/ferries", "/salt"):
        published(owner(), website=f"https://{HOST}{path}")
    later(91)
    repeat_proofs()
    assert "Several listings use this host" in DomainProof.objects.get().finding


def test_the_proof_of_an_account_that_no_longer_owns_the_listing_ends(proven, names):
    Ownership.objects.all().delete()
    names.asked.clear()
    later(91)
    repeat_proofs()
    assert (DomainProof.objects.get().state, names.asked) == ("ended", [])


def test_a_claimants_proof_is_not_repeated(names):
    slug = published(owner(), website=f"https://{HOST}/").slug
    stranger = owner()
    claims.claim_company(stranger, slug, "I chair it.")
    names.txt(RECORD, proofs.start_proof(stranger, slug, "dns").value)
    proofs.check_proof(stranger, slug, "dns")
    later(91)
    repeat_proofs()
    assert DomainProof.objects.get().state == "ended"


def test_a_website_that_changed_without_the_operations_ends_the_proof(proven):
    Company.objects.filter(slug=proven).update(website="https://other.example")
    later(91)
    repeat_proofs()
    assert DomainProof.objects.get().state == "ended"


def test_a_proof_that_was_verified_during_the_run_stays(proven, names, monkeypatch):
    look = checks.look

    def meanwhile(claim, proof):
        DomainProof.objects.update(due_at=now() + DAY)
        del names.records[RECORD]
        return look(claim, proof)

    later(91)
    monkeypatch.setattr(checks, "look", meanwhile)
    repeat_proofs()
    proof = DomainProof.objects.get()
    assert (proof.state, proof.failing_since) == ("verified", None)


def test_a_run_without_a_slot_waits_for_the_next(proven, monkeypatch):
    later(91)
    held = [checks._slots.acquire(blocking=False) for _ in range(checks.SLOTS)]
    try:
        repeat_proofs()
    finally:
        for _ in held:
            checks._slots.release()
    assert DomainProof.objects.get().failing_since is None
    assert repeat_proofs() == 1


def test_the_job_runs_every_hour(proven):
    assert handlers.periodic()["registry.proofs_aged"] == 3_600
    later(91)
    assert handlers.handler("registry.proofs_aged").work(None) == 1
