"""Who proves the domain of a listing, what is shown of it, and what ends it. Names and websites are on loopback."""

import re
from datetime import timedelta

import pytest
from django.core.cache import cache

from make.accounts import Letters, deliver_mail
from make.registry import document as shown
from make.registry import draft, lines, owner, published, reviewer
from muniment import config
from muniment.accounts.models import Account
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, TooMany
from muniment.registry import own_data
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, DomainProof, HistoryEntry, Petition
from muniment.registry.review import claims, workflow
from muniment.registry.verification import checks, proofs
from services.mail import Mailbox, text_of
from services.site import head, site

pytestmark = pytest.mark.django_db
HOST = "harbour.example"
RECORD = f"_muniment-challenge.{HOST}"
WEBSITE = f"https://{HOST}/"
TEXT = head(Content_Type="text/plain")


@pytest.fixture(autouse=True)
def _clean():
    cache.clear()


@pytest.fixture
def letters(settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    return Letters()


def listing(actor, website=WEBSITE, **fields):
    return published(actor, website=website, **fields).slug


def claimed(slug):
    """Have a stranger claim a listing; return the stranger and the claim."""
    stranger = owner()
    return stranger, claims.claim_company(stranger, slug, "I chair it.")


def domain(slug):
    return shown("company", slug)["company"].get("verifiedDomain")


def by_record(names, actor, slug, record=RECORD):
    """Prove a domain by DNS."""
    names.txt(record, proofs.start_proof(actor, slug, "dns").value)
    return proofs.check_proof(actor, slug, "dns")


def code_sent(actor, slug, address, letters, capture):
    with capture(execute=True):
        proofs.send_code(actor, slug, address)
    return letters.code(address)


def test_an_owner_proves_the_domain_by_a_record_and_it_is_shown_with_method_and_date(names):
    me = owner()
    slug = listing(me)
    assert domain(slug) is None
    proof = by_record(names, me, slug)
    assert (proof.state, proof.finding) == ("verified", "")
    found = domain(slug)
    assert (found["domain"], found["method"]) == (HOST, "dns")
    assert found["verifiedAt"].startswith(f"{now():%Y-%m-%dT%H}")
    entry = listings.company_history(me, slug).items[0]
    assert (entry.action, entry.after) == ("domain verified", {"verifiedDomain": f"{HOST} (dns)"})


def test_a_record_that_is_not_there_yet_is_looked_for_again(names):
    me = owner()
    slug = listing(me)
    first = proofs.start_proof(me, slug, "dns")
    assert "no TXT record" in proofs.check_proof(me, slug, "dns").finding
    assert domain(slug) is None
    assert proofs.start_proof(me, slug, "dns").value == first.value
    names.txt(RECORD, first.value)
    assert proofs.check_proof(me, slug, "dns").state == "verified"


def test_an_owner_proves_the_domain_by_a_file(names, certificate, open_to):
    me = owner()
    slug = listing(me)
    proof = proofs.start_proof(me, slug, "file")
    with site(certificate, TEXT, f"{proof.value}\n".encode()) as (port, _):
        open_to(port)
        assert proofs.check_proof(me, slug, "file").state == "verified"
    assert (domain(slug)["domain"], domain(slug)["method"]) == (HOST, "file")


def test_an_owner_proves_the_domain_by_a_code_that_a_mail_server_delivers(
    monkeypatch, settings, django_capture_on_commit_callbacks
):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    me = owner()
    slug = listing(me)
    now_ = config.current()
    kept = {setting.name: getattr(now_, setting.name) for setting in config.SETTINGS}
    with Mailbox() as mailbox:
        monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, "mail_url": mailbox.url}))
        with django_capture_on_commit_callbacks(execute=True):
            proofs.send_code(me, slug, f"postmaster@{HOST}")
        deliver_mail()
        message = mailbox.wait_for(f"postmaster@{HOST}", subject=HOST)
    text = text_of(message)
    code = re.search(r"^([A-Z2-9]{4}-[A-Z2-9]{4})$", text, re.MULTILINE)[1]
    assert f"/companies/{slug}" in text
    assert Account.objects.get(pk=me.account_id).email in text
    assert proofs.confirm_code(me, slug, f" {code.lower()} ").state == "verified"
    assert (domain(slug)["domain"], domain(slug)["method"]) == (HOST, "mail")
    proof = DomainProof.objects.get()
    assert (proof.address, proof.code_digest) == (f"postmaster@{HOST}", "")


def test_a_tenant_of_a_shared_host_is_shown_with_its_path(names, certificate, open_to):
    me = owner()
    slug = listing(me, f"https://{HOST}/tides")
    for other in ("/ferries", "/salt"):
        listing(owner(), f"https://www.{HOST}{other}")
    with pytest.raises(BadRequest, match="cannot be proven this way"):
        proofs.start_proof(me, slug, "dns")
    with pytest.raises(BadRequest, match="cannot be proven this way"):
        proofs.send_code(me, slug, f"postmaster@{HOST}")
    value = proofs.start_proof(me, slug, "file").value
    with site(certificate, TEXT, value.encode()) as (port, asked):
        open_to(port)
        proofs.check_proof(me, slug, "file")
    assert asked[0].startswith(b"GET /tides/.well-known/muniment-verification.txt ")
    assert domain(slug)["domain"] == f"{HOST}/tides"


@pytest.mark.parametrize("website", ["https://münchen.example/tides", "https://xn--mnchen-3ya.example/tides"])
def test_a_shared_host_is_recognized_in_each_of_its_spellings(website):
    me = owner()
    slug = listing(me, website)
    listing(owner(), "https://www.münchen.example/ferries")
    assert "dns" in proofs.find_verification(me, slug).claim.methods
    listing(owner(), "http://XN--MNCHEN-3YA.example/salt")
    assert proofs.find_verification(me, slug).claim.methods == ("file",)


def test_a_website_that_cannot_be_proven_is_refused_with_the_reason():
    me = owner()
    slug = listing(me, "https://github.com/")
    assert proofs.find_verification(me, slug).claim is None
    for begin in (
        lambda: proofs.start_proof(me, slug, "file"),
        lambda: proofs.send_code(me, slug, "postmaster@github.com"),
    ):
        with pytest.raises(BadRequest, match="cannot be proven"):
            begin()


# ---------------------------------------------------------------------------------------------- claims


def test_a_claimants_proof_is_evidence_for_the_reviewer_and_public_once_the_claim_is_approved(names):
    slug = listing(owner())
    stranger, claim = claimed(slug)
    by_record(names, stranger, slug)
    assert domain(slug) is None
    [proof] = proofs.evidence_for(claim).proofs
    assert (proof.domain, proof.state) == (HOST, "verified")
    claims.decide_request(reviewer(), claim.pk, approve=True)
    assert domain(slug)["domain"] == HOST


def test_the_proof_of_a_declined_claim_is_never_shown(names):
    slug = listing(owner())
    stranger, claim = claimed(slug)
    by_record(names, stranger, slug)
    claims.decide_request(reviewer(), claim.pk, approve=False, note="No.")
    assert domain(slug) is None
    with pytest.raises(NotFound):
        proofs.check_proof(stranger, slug, "dns")


def test_evidence_is_that_of_the_claimant_and_the_claimed_listing_alone(names):
    me = owner()
    slug = listing(me)
    by_record(names, me, slug)
    _, claim = claimed(slug)
    found = proofs.evidence_for(claim)
    assert (found.domain, found.proofs, found.email_matches, found.listings) == (HOST, [], False, 0)
    suggestion = claims.suggest_edit(me, listing(owner(), "https://other.example"), CompanyChange(), "Closed.")
    assert proofs.evidence_for(suggestion) is None


@pytest.mark.parametrize(
    ("email", "website", "matches"),
    [
        ("Ida@Harbour.example", WEBSITE, True),
        ("ida@harbour.example", f"https://www.{HOST}/", True),
        ("ida@other.example", WEBSITE, False),
        ("ida@evil.harbour.example", WEBSITE, False),
        ("ida@github.com", "https://github.com/harbour", False),
    ],
)
def test_the_reviewer_sees_whether_the_claimants_address_is_at_the_domain(email, website, matches):
    claimant = owner(email)
    claim = claims.claim_company(claimant, listing(owner(), website), "I chair it.")
    assert proofs.evidence_for(claim).email_matches is matches


def test_an_owner_who_leaves_takes_the_proof_along_and_the_listing_says_that_no_owner_maintains_it(names):
    me = owner()
    slug = listing(me)
    by_record(names, me, slug)
    assert shown("company", slug)["company"]["maintainedByOwner"] is True
    listings.leave_company(me, slug)
    company = shown("company", slug)["company"]
    assert (company["maintainedByOwner"], company.get("verifiedDomain")) == (False, None)
    listings.add_owner(COMMAND, slug, owner().account_id)
    assert shown("company", slug)["company"]["maintainedByOwner"] is True
    assert domain(slug) is None


def test_a_deleted_account_takes_its_proofs_along(names):
    me = owner()
    slug = listing(me)
    by_record(names, me, slug)
    own_data.PART.delete(Account.objects.get(pk=me.account_id))
    company = shown("company", slug)["company"]
    assert (company["maintainedByOwner"], company.get("verifiedDomain")) == (False, None)
    assert not DomainProof.objects.exists()


# ---------------------------------------------------------------------------------------------- attackers


@pytest.mark.parametrize("who", ["visitor", "stranger", "owner of another listing", "claimant of another listing"])
def test_only_owners_and_claimants_prove(names, who):
    slug, other = listing(owner()), listing(owner(), "https://other.example")
    actor = {
        "visitor": lambda: VISITOR,
        "stranger": owner,
        "owner of another listing": lambda: (me := owner(), listing(me, "https://third.example"))[0],
        "claimant of another listing": lambda: claimed(other)[0],
    }[who]()
    for act in (
        lambda: proofs.find_verification(actor, slug),
        lambda: proofs.start_proof(actor, slug, "dns"),
        lambda: proofs.check_proof(actor, slug, "dns"),
        lambda: proofs.send_code(actor, slug, f"postmaster@{HOST}"),
        lambda: proofs.confirm_code(actor, slug, "AAAA-AAAA"),
    ):
        with pytest.raises(Forbidden if who == "visitor" else NotFound):
            act()
    assert names.asked == []


def test_a_draft_cannot_be_proven():
    me = owner()
    with pytest.raises(NotFound):
        proofs.start_proof(me, draft(me, website=WEBSITE).slug, "dns")


def test_the_record_or_file_of_another_account_proves_nothing(names, certificate, open_to):
    """The owner published a value; the claimant's own is another."""
    me = owner()
    slug = listing(me)
    by_record(names, me, slug)
    stranger, _ = claimed(slug)
    theirs = proofs.start_proof(stranger, slug, "dns")
    assert theirs.value != DomainProof.objects.get(account=me.account_id).value
    assert "doesn't contain this value" in proofs.check_proof(stranger, slug, "dns").finding
    value = proofs.start_proof(me, slug, "file").value
    proofs.start_proof(stranger, slug, "file")
    with site(certificate, TEXT, value.encode()) as (port, _):
        open_to(port)
        assert "doesn't contain this value" in proofs.check_proof(stranger, slug, "file").finding


def test_a_value_proves_one_listing_only(names):
    me = owner()
    slug, second = listing(me), listing(me)
    by_record(names, me, slug)
    proofs.start_proof(me, second, "dns")
    assert "doesn't contain this value" in proofs.check_proof(me, second, "dns").finding


def test_a_proof_must_be_begun_and_mail_is_not_looked_up(names):
    me = owner()
    slug = listing(me)
    for method in ("dns", "mail", "nonsense"):
        with pytest.raises(NotFound):
            proofs.check_proof(me, slug, method)
    for method in ("mail", "nonsense"):
        with pytest.raises(BadRequest):
            proofs.start_proof(me, slug, method)
    with pytest.raises(NotFound, match="No code was sent"):
        proofs.confirm_code(me, slug, "AAAA-AAAA")


def test_a_website_that_changes_ends_its_proofs_for_good_also_if_it_changes_back(names):
    me = owner()
    slug = listing(me)
    value = by_record(names, me, slug).value
    listings.update_company(me, slug, CompanyChange(website="https://other.example/"))
    assert domain(slug) is None
    listings.update_company(me, slug, CompanyChange(website=WEBSITE))
    assert domain(slug) is None
    assert DomainProof.objects.get().state == "ended"
    with pytest.raises(NotFound):
        proofs.check_proof(me, slug, "dns")
    again = proofs.start_proof(me, slug, "dns")
    assert again.value != value, "the old record still stands, and must not count"
    assert "doesn't contain this value" in proofs.check_proof(me, slug, "dns").finding


def test_a_revert_that_changes_the_website_ends_proofs_too(names):
    me = owner()
    slug = listing(me)
    listings.update_company(me, slug, CompanyChange(website="https://earlier.example"))
    entry = HistoryEntry.objects.filter(company__slug=slug, action="updated").latest("pk")
    names.records["earlier.example"] = {"A": ["127.0.0.1"]}
    by_record(names, me, slug, "_muniment-challenge.earlier.example")
    listings.revert_company(me, slug, entry.pk)
    assert (domain(slug), DomainProof.objects.get().state) == (None, "ended")


def test_an_import_that_changes_the_website_ends_proofs_too(names, tmp_path):
    me, row = owner(), {"id": "kelp", "name": "Kelp", "website": WEBSITE}
    import_registry(lines(tmp_path / "companies.jsonl", {"company": row}))
    listings.add_owner(COMMAND, "kelp", me.account_id)
    by_record(names, me, "kelp")
    import_registry(lines(tmp_path / "companies.jsonl", {"company": {**row, "description": "Kelp."}}))
    assert domain("kelp")["domain"] == HOST
    import_registry(lines(tmp_path / "companies.jsonl", {"company": {**row, "website": "https://other.example"}}))
    assert (domain("kelp"), DomainProof.objects.get().state) == (None, "ended")


def test_an_edit_of_anything_else_keeps_the_proof(names):
    me = owner()
    slug = listing(me)
    by_record(names, me, slug)
    listings.update_company(me, slug, CompanyChange(description="Ferries.", website=WEBSITE))
    assert domain(slug)["domain"] == HOST


def test_a_website_that_changes_during_the_look_is_not_verified(names, monkeypatch):
    me = owner()
    slug = listing(me)
    names.txt(RECORD, proofs.start_proof(me, slug, "dns").value)
    look = checks.look

    def meanwhile(claim, proof):
        found = look(claim, proof)
        listings.update_company(me, slug, CompanyChange(website="https://other.example/"))
        return found

    monkeypatch.setattr(checks, "look", meanwhile)
    with pytest.raises(Conflict, match="website of the listing has changed"):
        proofs.check_proof(me, slug, "dns")
    assert domain(slug) is None


def test_a_listing_that_is_gone_during_the_look_is_not_verified(names):
    me = owner()
    slug = listing(me)
    proof = proofs.start_proof(me, slug, "dns")
    DomainProof.objects.all().delete()
    with pytest.raises(Conflict):
        proofs.settle(proof.pk, "", me)


def test_another_accounts_code_verifies_nothing(letters, django_capture_on_commit_callbacks):
    me = owner()
    slug = listing(me)
    stranger, _ = claimed(slug)
    code = code_sent(me, slug, f"info@{HOST}", letters, django_capture_on_commit_callbacks)
    with pytest.raises(NotFound, match="No code was sent"):
        proofs.confirm_code(stranger, slug, code)
    other = code_sent(stranger, slug, f"admin@{HOST}", letters, django_capture_on_commit_callbacks)
    for actor, wrong in ((me, other), (stranger, code)):
        with pytest.raises(BadRequest, match="code is wrong"):
            proofs.confirm_code(actor, slug, wrong)
    assert proofs.confirm_code(me, slug, code).state == "verified"


def test_a_code_works_once_and_for_one_hour_and_five_tries(letters, django_capture_on_commit_callbacks):
    me = owner()
    slug = listing(me)
    send = lambda: code_sent(me, slug, f"info@{HOST}", letters, django_capture_on_commit_callbacks)  # noqa: E731 - three times
    code = send()
    assert proofs.confirm_code(me, slug, code).state == "verified"
    with pytest.raises(BadRequest, match="used or has expired"):
        proofs.confirm_code(me, slug, code)
    code = send()
    DomainProof.objects.update(code_expires_at=now() - timedelta(seconds=1))
    with pytest.raises(BadRequest, match="used or has expired"):
        proofs.confirm_code(me, slug, code)
    code = send()
    for _ in range(proofs.MAX_ATTEMPTS):
        with pytest.raises(BadRequest, match="code is wrong"):
            proofs.confirm_code(me, slug, "AAAA-AAAA")
    with pytest.raises(BadRequest, match="used or has expired"):
        proofs.confirm_code(me, slug, code)


def test_the_code_is_not_in_the_database(letters, django_capture_on_commit_callbacks):
    me = owner()
    slug = listing(me)
    code = code_sent(me, slug, f"info@{HOST}", letters, django_capture_on_commit_callbacks).replace("-", "")
    stored = " ".join(map(str, DomainProof.objects.values_list().get()))
    assert code not in stored
    assert len(DomainProof.objects.get().code_digest) == 64


@pytest.mark.parametrize(
    "address",
    ["ida@harbour.example", "postmaster@other.example", "root@harbour.example", "", "postmaster@harbour.example\nx"],
)
def test_a_code_goes_to_an_offered_address_only(address):
    me = owner()
    with pytest.raises(BadRequest, match="does not belong"):
        proofs.send_code(me, listing(me), address)


def test_the_address_on_the_listing_counts_once_a_reviewer_has_seen_it():
    me, address = owner(), f"ida@{HOST}"
    slug = listing(me, socials={"email": address})
    assert proofs.find_verification(me, slug).addresses[0] == address


def test_the_address_of_an_imported_listing_is_what_the_operator_brought(tmp_path):
    me, address = owner(), f"ida@{HOST}"
    row = {"id": "kelp", "name": "Kelp", "website": WEBSITE, "socials": {"email": address}}
    import_registry(lines(tmp_path / "companies.jsonl", {"company": row}))
    listings.add_owner(COMMAND, "kelp", me.account_id)
    assert address in proofs.find_verification(me, "kelp").addresses


def test_an_address_that_an_owner_put_there_afterwards_is_no_evidence():
    """A student or a customer has a mailbox at the domain too."""
    me, address = owner(), f"ida@{HOST}"
    slug = listing(me)
    listings.update_company(me, slug, CompanyChange(socials={"email": address}))
    listings.update_company(me, slug, CompanyChange(description="Ferries."))
    assert address not in proofs.find_verification(me, slug).addresses
    with pytest.raises(BadRequest):
        proofs.send_code(me, slug, address)
    listings.update_company(reviewer(), slug, CompanyChange(socials={"email": "x@y.example"}))
    listings.update_company(reviewer(), slug, CompanyChange(socials={"email": address}))
    assert address in proofs.find_verification(me, slug).addresses


def test_a_verified_address_is_not_replaced_by_another_one(letters, django_capture_on_commit_callbacks):
    me = owner()
    slug = listing(me)
    proofs.confirm_code(me, slug, code_sent(me, slug, f"info@{HOST}", letters, django_capture_on_commit_callbacks))
    with pytest.raises(BadRequest, match=f"verified with info@{HOST}"):
        proofs.send_code(me, slug, f"admin@{HOST}")


def test_codes_and_checks_are_limited(names):
    me = owner()
    slug = listing(me)
    for _ in range(proofs.MAILS_TO_ONE_A_DAY):
        proofs.send_code(me, slug, f"info@{HOST}")
    with pytest.raises(TooMany):
        proofs.send_code(me, slug, f"info@{HOST}")
    stranger, _ = claimed(slug)
    with pytest.raises(TooMany):
        proofs.send_code(stranger, slug, f"info@{HOST}")
    proofs.start_proof(me, slug, "dns")
    for _ in range(proofs.CHECKS_AN_HOUR):
        proofs.check_proof(me, slug, "dns")
    with pytest.raises(TooMany):
        proofs.check_proof(me, slug, "dns")


# ---------------------------------------------------------------------------------------------- reviews


def test_a_listing_says_when_a_reviewer_last_approved_it(tmp_path):
    me = owner()
    slug = listing(me)
    first = shown("company", slug)["company"]["reviewedAt"]
    listings.update_company(me, slug, CompanyChange(description="Ferries."))
    assert shown("company", slug)["company"]["reviewedAt"] == first
    listings.update_company(me, slug, CompanyChange(name="Harbour United"))
    change = Company.objects.get(slug=slug).pending_changes.get(decision="")
    workflow.decide_change(reviewer(), change.pk, approve=True)
    second = shown("company", slug)["company"]["reviewedAt"]
    assert second > first
    workflow.unlist_company(reviewer(), slug, "Closed.")
    workflow.relist_company(reviewer(), slug)
    assert shown("company", slug)["company"]["reviewedAt"] > second


def test_the_review_of_an_imported_listing_is_what_its_file_says_and_a_review_here_stays(tmp_path):
    at = "2026-01-31T09:30:00.000000Z"
    known = {"company": {"id": "known", "name": "Known", "reviewedAt": at}}
    claims_all = {"verifiedDomain": {"domain": "x.example"}, "maintainedByOwner": True}
    silent = {"company": {"id": "silent", "name": "Silent", **claims_all}}
    import_registry(lines(tmp_path / "companies.jsonl", known, silent))
    assert shown("company", "known")["company"]["reviewedAt"] == at
    company = shown("company", "silent")["company"]
    assert "reviewedAt" not in company
    assert (company["maintainedByOwner"], company.get("verifiedDomain")) == (False, None)
    import_registry(lines(tmp_path / "companies.jsonl", {"company": {"id": "known", "name": "Known", "type": "DAO"}}))
    assert shown("company", "known")["company"]["reviewedAt"] == at


def test_petitions_of_other_kinds_have_no_evidence():
    assert proofs.evidence_for(Petition(kind="profile")) is None
