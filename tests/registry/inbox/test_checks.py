"""The checks of items: what they find, what a job stores of them, and when they are made again."""

from datetime import timedelta

import pytest

from make.registry import draft, owner, published, reviewer
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.inbox import checks, links
from muniment.registry.inbox.links import Finding
from muniment.registry.inbox.waiting import CHECK
from muniment.registry.models import Company, DomainProof, ItemChecks, Ownership, PendingChange
from muniment.registry.review import claims, decisions

pytestmark = pytest.mark.django_db
WEBSITE = "https://kelp.example"


def submitted(me=None, **fields):
    me = me or owner()
    values = {"type": "cooperative", "description": "Kelp.", "website": WEBSITE, **fields}
    slug = draft(me, **values).slug
    decisions.submit_company(me, slug)
    return f"company:{slug}"


def made(subject):
    return {check.name: check for check in checks.checks_of(reviewer(), subject)}


def worked_off():
    while run := queue.claim("tests"):
        run.handler.work(run)
        run.finish(None)


def test_a_listing_with_nothing_odd_passes():
    found = made(submitted(owner("ida@kelp.example")))
    assert [name for name, check in found.items() if check.passed is not True] == ["links"]
    assert tuple(found) == checks.NAMES
    assert found["links"].passed is None


def test_a_poor_listing_is_looked_at():
    published(owner(), name="Kelp Works", symbol="KELP")
    pools = {"method": "vote", "pools": [{"name": "Members", "percentage": 60}]}
    found = made(submitted(name="kelp works", website="", description="", distribution=pools))
    failed = [name for name, check in found.items() if check.passed is False]
    assert failed == ["website", "duplicates", "domain", "numbers", "missing"]
    assert found["duplicates"].rows == (("Kelp Works", "kelp-works", "name"),)
    assert found["missing"].found == "required: summary, website; recommended: full description"


def test_stored_values_that_break_a_rule_are_looked_at():
    subject = submitted()
    Company.objects.filter(state="submitted").update(website="not a link")
    assert made(subject)["values"].passed is False


def test_a_verified_domain_or_an_address_there_passes():
    stranger = owner("ida@other.example")
    subject = submitted(stranger)
    assert made(subject)["domain"].found == "no owner has an email address at kelp.example"
    company = Company.objects.get()
    DomainProof.objects.create(
        company=company, account_id=stranger.account_id, website=WEBSITE, domain="kelp.example", method="dns"
    )
    assert made(subject)["domain"].passed is False
    DomainProof.objects.update(state=DomainProof.ProofState.VERIFIED, verified_at=now())
    assert made(subject)["domain"] == ("domain", True, "kelp.example is verified", ())
    DomainProof.objects.update(website="https://former.example")
    assert made(subject)["domain"].passed is False


def test_a_listing_without_an_owner_has_no_domain_to_check():
    subject = submitted(owner())
    Ownership.objects.all().delete()
    assert made(subject)["domain"] == ("domain", None, "this listing has no owner", ())


def test_a_claim_passes_by_the_claimants_domain():
    listing = published(owner(), website=WEBSITE).slug
    for email, passed in (("ida@other.example", False), ("ida@kelp.example", True)):
        claim = claims.claim_company(owner(email), listing, "I chair it.")
        assert made(f"petition:{claim.pk}") == {"domain": made(f"petition:{claim.pk}")["domain"]}
        assert made(f"petition:{claim.pk}")["domain"].passed is passed
    proven = owner("ida@third.example")
    claim = claims.claim_company(proven, listing, "I chair it.")
    DomainProof.objects.create(
        company=Company.objects.get(),
        account_id=proven.account_id,
        website=WEBSITE,
        domain="kelp.example",
        method="dns",
        state=DomainProof.ProofState.VERIFIED,
        verified_at=now(),
    )
    assert made(f"petition:{claim.pk}")["domain"].found == "kelp.example is verified"


def test_a_claim_of_a_profile_passes_by_the_domain_of_an_organization_that_names_the_person():
    team = [{"title": "Chair", "person": {"name": "Ottoline Brand"}}]
    listing = published(owner(), website=WEBSITE, positions=team)
    person = listings.get_company(reviewer(), listing.slug).bundle["positions"][0]["person"]["slug"]
    for email, passed in (("ottoline@other.example", False), ("ottoline@kelp.example", True)):
        claim = claims.claim_person(owner(email), person, "It is me.")
        assert made(f"petition:{claim.pk}")["domain"].passed is passed


def test_a_suggestion_is_checked_for_what_it_changes():
    listing = published(owner(), name="Kelp Works", website=WEBSITE, teamSize=12)
    published(owner(), name="Tide Works")
    words = claims.suggest_edit(owner(), listing.slug, CompanyChange(description="Better."), "")
    assert {name: check.passed for name, check in made(f"petition:{words.pk}").items()} == {"numbers": True}
    change = CompanyChange(name="Tide Works", website="https://tide.example", teamSize=1_200)
    odd = made(f"petition:{claims.suggest_edit(owner(), listing.slug, change, '').pk}")
    assert {name: check.passed for name, check in odd.items()} == {
        "duplicates": False,
        "links": None,
        "numbers": False,
    }
    assert odd["numbers"].found == "Team size: 12 becomes 1,200"


def test_a_change_is_checked_with_what_it_changes():
    me = owner()
    listing = published(me, name="Kelp Works", website=WEBSITE)
    published(owner(), name="Tide Works")
    listings.update_company(me, listing.slug, CompanyChange(name="Tide Works"))
    assert made(f"change:{PendingChange.objects.get().pk}")["duplicates"].passed is False
    assert made("change:999") == made("petition:999") == {}


@pytest.mark.parametrize(
    ("fault", "is_checked", "passed", "words"),
    [
        ("", True, True, "all respond"),
        ("responds with 404", True, False, f"{WEBSITE} responds with 404"),
        ("", False, False, f"open it yourself: {WEBSITE}"),
    ],
)
def test_a_job_opens_the_links_of_an_item_and_stores_what_failed(monkeypatch, fault, is_checked, passed, words):
    monkeypatch.setattr(links, "look", lambda url: Finding(url, fault, is_checked))
    subject = submitted(owner("ida@kelp.example"))
    worked_off()
    assert made(subject)["links"] == ("links", passed, words, ())
    assert ItemChecks.objects.get(subject=subject).attention == ("" if passed else " links ")


@pytest.mark.parametrize("kind", ["company", "change", "petition"])
def test_each_kind_of_item_is_checked_when_it_waits(monkeypatch, kind):
    asked = []
    monkeypatch.setattr(links, "look", lambda url: asked.append(url) or Finding(url, ""))
    me = owner()
    if kind == "company":
        submitted(me)
    else:
        listing = published(me, website=WEBSITE).slug
        worked_off()
        asked.clear()
        if kind == "change":
            listings.update_company(me, listing, CompanyChange(name="Tide Works"))
        else:
            claims.suggest_edit(owner(), listing, CompanyChange(website=WEBSITE + "/new"), "")
    worked_off()
    assert [each.subject.partition(":")[0] for each in ItemChecks.objects.all()][-1] == kind
    assert asked == [WEBSITE + "/new" if kind == "petition" else WEBSITE]


def test_an_instance_that_opens_no_links_says_so(monkeypatch, set_config):
    monkeypatch.setattr(links, "look", lambda _: pytest.fail("a link was opened"))
    set_config(link_checks=False)
    subject = submitted()
    worked_off()
    assert made(subject)["links"].found == "link checks are turned off"
    assert ItemChecks.objects.get().attention == " domain "


def test_an_item_that_was_decided_before_its_job_is_not_checked():
    subject = submitted()
    decisions.approve_company(reviewer(), subject.partition(":")[2])
    worked_off()
    assert not ItemChecks.objects.exists()


def test_the_sweep_announces_what_has_no_checks_or_old_ones_and_deletes_the_rest(monkeypatch):
    monkeypatch.setattr(links, "look", lambda url: Finding(url, ""))
    me = owner()
    subject = submitted(me)
    worked_off()
    ItemChecks.objects.create(subject="company:decided", stamp="1")

    def announced():
        Job.objects.all().delete()
        checks.sweep()
        return [job.payload["subject"] for job in Job.objects.filter(kind=CHECK)]

    assert announced() == []
    assert [each.subject for each in ItemChecks.objects.all()] == [subject]
    ItemChecks.objects.update(at=Company.objects.get().updated_at - timedelta(days=2))
    assert announced() == [subject]
    worked_off()
    listings.update_company(me, subject.partition(":")[2], CompanyChange(description="Other."))
    assert announced() == [subject]
    ItemChecks.objects.all().delete()
    assert announced() == [subject]


def test_the_sum_of_a_stored_cap_table_is_checked():
    me = owner("ida@kelp.example")
    listing = draft(me, type="cooperative", description="Kelp.", website=WEBSITE)
    listings.update_company(me, listing.slug, CompanyChange(capTable=[{"name": "Treasury", "percentage": 70}]))
    decisions.submit_company(me, listing.slug)
    assert made(f"company:{listing.slug}")["numbers"].passed is True
