"""Claims of listings and profiles, and suggested edits: what may be requested, by whom, and what a decision does."""

import pytest

from make.accounts import Letters
from make.registry import agent_of, document, draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.models import Company, Person, Petition
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review import claims, workflow

pytestmark = pytest.mark.django_db


def public_person():
    """Make a public person without an account and return the slug."""
    published(owner(), positions=[{"person": {"name": "Ada Moss"}}])
    return Person.objects.get(name="Ada Moss").slug


def claimed(slug=""):
    """Have a stranger claim a listing; return the stranger and the claim."""
    stranger = owner()
    return stranger, claims.claim_company(stranger, slug or published(owner()).slug, "I chair it.")


def owners(slug):
    return set(Company.objects.get(slug=slug).owners.values_list("pk", flat=True))


def test_an_approved_claim_makes_its_account_an_owner_beside_the_others():
    me = owner()
    slug = published(me).slug
    stranger, claim = claimed(slug)
    assert owners(slug) == {me.account_id}
    decided = claims.decide_request(reviewer(), claim.pk, approve=True)
    assert (decided.decision, decided.decided_by_id is not None) == ("approved", True)
    assert owners(slug) == {me.account_id, stranger.account_id}


def test_a_declined_claim_changes_no_owner_and_may_be_made_again():
    stranger, claim = claimed()
    slug, before = claim.company.slug, owners(claim.company.slug)
    claims.decide_request(reviewer(), claim.pk, approve=False, note=" Write from the company's address. ")
    claim.refresh_from_db()
    assert (claim.decision, claim.note) == ("refused", "Write from the company's address.")
    assert owners(slug) == before
    assert claims.claim_company(stranger, slug, "Here is the letter.").decision == ""


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_claim_is_decided_once(first, second):
    _, claim = claimed()
    slug = claim.company.slug
    judge = reviewer()
    claims.decide_request(judge, claim.pk, approve=first, note="Seen.")
    before = owners(slug)
    with pytest.raises(Conflict):
        claims.decide_request(reviewer(), claim.pk, approve=second, note="Seen too.")
    claim.refresh_from_db()
    assert (claim.decision, claim.note) == ("approved" if first else "refused", "Seen.")
    assert claim.decided_by_id == judge.account_id
    assert owners(slug) == before


@pytest.mark.parametrize("who", ["visitor", "the one who asks", "owner of the listing", "reviewer's token"])
def test_only_a_reviewer_at_work_decides_a_claim(who):
    me = owner()
    stranger, claim = claimed(published(me).slug)
    actor = {
        "visitor": lambda: VISITOR,
        "the one who asks": lambda: stranger,
        "owner of the listing": lambda: me,
        "reviewer's token": lambda: agent_of(reviewer()),
    }[who]()
    for approve in (True, False):
        with pytest.raises(Forbidden):
            claims.decide_request(actor, claim.pk, approve=approve, note="Mine.")
    claim.refresh_from_db()
    assert (claim.decision, owners(claim.company.slug)) == ("", {me.account_id})


@pytest.mark.parametrize("note", ["", " \n"])
def test_a_claim_is_declined_with_a_reason_only(note):
    _, claim = claimed()
    with pytest.raises(BadRequest):
        claims.decide_request(reviewer(), claim.pk, approve=False, note=note)
    claim.refresh_from_db()
    assert claim.decision == ""


def test_a_claim_that_does_not_exist_is_not_found():
    with pytest.raises(NotFound):
        claims.decide_request(reviewer(), 4_711, approve=True)


def test_an_owner_does_not_claim_what_they_own():
    me = owner()
    slug = published(me).slug
    with pytest.raises(Conflict):
        claims.claim_company(me, slug, "Mine.")
    assert not Petition.objects.exists()


def test_the_same_claim_waits_once():
    stranger, claim = claimed()
    with pytest.raises(Conflict):
        claims.claim_company(stranger, claim.company.slug, "Again.")
    assert Petition.objects.get() == claim
    assert claimed(claim.company.slug)[1] != claim  # another account has a claim of its own


def test_a_visitor_without_an_account_requests_nothing():
    slug, person = published(owner()).slug, public_person()
    for request in (
        lambda: claims.claim_company(VISITOR, slug, "Mine."),
        lambda: claims.claim_person(VISITOR, person, "Me."),
        lambda: claims.suggest_edit(VISITOR, slug, CompanyChange(description="x"), "Wrong."),
    ):
        with pytest.raises(Forbidden):
            request()
    assert not Petition.objects.exists()


@pytest.mark.parametrize("hidden", ["unknown", "draft", "unlisted"])
def test_only_public_listings_are_claimed_or_corrected(hidden):
    me = owner()
    slug = {"unknown": lambda: "nowhere", "draft": lambda: draft(me).slug, "unlisted": lambda: published(me).slug}[
        hidden
    ]()
    if hidden == "unlisted":
        workflow.unlist_company(reviewer(), slug, "Closed.")
    for request in (
        lambda: claims.claim_company(owner(), slug, "Mine."),
        lambda: claims.suggest_edit(owner(), slug, CompanyChange(description="x"), "Wrong."),
    ):
        with pytest.raises(NotFound):
            request()
    assert not Petition.objects.exists()


@pytest.mark.parametrize(
    "text", ["", "  \n", "x" * 2_001, "a\0b", "\ud800"], ids=["empty", "blank", "long", "NUL", "surrogate"]
)
def test_a_claim_needs_words_that_can_be_stored(text):
    slug, person = published(owner()).slug, public_person()
    for claim in (claims.claim_company, claims.claim_person):
        with pytest.raises(BadFields) as problem:
            claim(owner(), slug if claim is claims.claim_company else person, text)
        assert [fault.field for fault in problem.value.faults] == ["text"]
    assert not Petition.objects.exists()
    assert claims.claim_company(owner(), slug, "x" * 2_000).text == "x" * 2_000


def test_an_account_has_at_most_twenty_open_requests():
    stranger, listings = owner(), [published(owner()).slug for _ in range(2)]
    for number in range(19):
        company = Company.objects.create(slug=f"listing-{number}", name="A", state="published")
        Petition.objects.create(kind="claim", account_id=stranger.account_id, company=company)
    last = claims.claim_company(stranger, listings[0], "I chair it.")
    with pytest.raises(Conflict):
        claims.claim_company(stranger, listings[1], "This too.")
    assert Petition.objects.count() == 20
    claims.claim_company(owner(), listings[1], "Another account has a limit of its own.")
    claims.decide_request(reviewer(), last.pk, approve=False, note="No.")
    assert claims.claim_company(stranger, listings[1], "A decided one counts no more.").pk


# ------------------------------------------------------------------ profiles


def test_an_approved_claim_of_a_profile_gives_it_to_the_account():
    me, slug = owner(), public_person()
    claim = claims.claim_person(me, slug, "My address is on the site.")
    assert profiles.get_profile(me) is None
    claims.decide_request(reviewer(), claim.pk, approve=True)
    assert profiles.get_profile(me).slug == slug


def test_a_person_who_is_not_public_is_not_found():
    hidden = profiles.create_profile(owner(), ProfileChange(name="Bo Reef"))
    for slug in (hidden.slug, "missing"):
        with pytest.raises(NotFound):
            claims.claim_person(owner(), slug, "Me.")
    assert not Petition.objects.exists()


def test_a_profile_that_belongs_to_an_account_is_not_claimed_by_another():
    me, slug = owner(), public_person()
    profiles.join_person(reviewer(), slug, me.account_id)
    with pytest.raises(Conflict):
        claims.claim_person(owner(), slug, "Me.")
    assert not Petition.objects.exists()


def test_an_account_with_a_profile_claims_no_other():
    me, slug = owner(), public_person()
    profiles.create_profile(me, ProfileChange(name="Bo Reef"))
    with pytest.raises(Conflict):
        claims.claim_person(me, slug, "Me too.")
    assert not Petition.objects.exists()


def test_a_profile_that_was_given_away_meanwhile_stays_with_its_account_and_the_claim_waits():
    first, second, slug = owner(), owner(), public_person()
    early, late = (claims.claim_person(who, slug, "Me.") for who in (first, second))
    claims.decide_request(reviewer(), early.pk, approve=True)
    with pytest.raises(Conflict):
        claims.decide_request(reviewer(), late.pk, approve=True)
    late.refresh_from_db()
    assert (late.decision, profiles.get_profile(first).slug, profiles.get_profile(second)) == ("", slug, None)


# ------------------------------------------------------------------ suggestions


def test_an_approved_suggestion_is_published_with_the_reviewer_in_the_history():
    me = owner()
    slug = published(me, description="Boats.").slug
    asked = claims.suggest_edit(owner(), slug, CompanyChange(description="Boats and nets."), "")
    assert claims.describe(asked) == {"description": {"before": "Boats.", "after": "Boats and nets."}}
    assert document("company", slug)["company"]["description"] == "Boats."
    judge = reviewer()
    claims.decide_request(judge, asked.pk, approve=True)
    assert document("company", slug)["company"]["description"] == "Boats and nets."
    assert listings.company_history(me, slug).items[0].account_id == judge.account_id
    assert owners(slug) == {me.account_id}


def test_a_suggestion_changes_a_field_or_says_what_is_wrong():
    slug = published(owner(), description="Boats.").slug
    with pytest.raises(BadFields) as problem:
        claims.suggest_edit(owner(), slug, CompanyChange(description="Boats."), " ")
    assert [fault.field for fault in problem.value.faults] == ["text"]
    assert not Petition.objects.exists()
    words = claims.suggest_edit(owner(), slug, CompanyChange(), "The board has changed.")
    assert (words.changes, claims.describe(words)) == ({}, {})


def test_a_suggestion_takes_what_the_form_takes():
    slug = published(owner()).slug
    with pytest.raises(BadFields) as problem:
        claims.suggest_edit(owner(), slug, CompanyChange(website="javascript:alert(1)"), "")
    assert [fault.field for fault in problem.value.faults] == ["website"]
    assert not Petition.objects.exists()


def test_the_account_is_mailed_the_decision_and_the_note(settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters = Letters()
    subjects = []
    slug = published(owner(), name="Tidal Works").slug
    for approve in (True, False):
        stranger, claim = claimed(slug)
        with django_capture_on_commit_callbacks(execute=True):
            claims.decide_request(reviewer(), claim.pk, approve=approve, note="Seen your letter.")
        found = letters.to(Account.objects.get(pk=stranger.account_id).email)
        [subject] = [subject for subject, text in found if "Seen your letter." in text]
        assert "Tidal Works" in subject
        subjects.append(subject)
    assert subjects[0] != subjects[1]
