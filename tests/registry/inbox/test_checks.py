"""Checks of items, links opened on servers on loopback, odd numbers, and what reviewers see of an account."""

import socket
from datetime import timedelta

import pytest

from make.accounts import account
from make.registry import agent_of, draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.inbox import checks
from muniment.registry.inbox.checks import LISTINGS_SHOWN, Finding, claimant_of, jumps, odd_sums
from muniment.registry.models import Company, DomainProof, ItemChecks, Ownership, PendingChange
from muniment.registry.review import claims, workflow
from muniment.registry.review.notifications import CHECK
from services.site import head, site

pytestmark = pytest.mark.django_db
WEBSITE = "https://kelp.example"


def submitted(me=None, **fields):
    me = me or owner()
    values = {"type": "cooperative", "description": "Kelp.", "website": WEBSITE, **fields}
    slug = draft(me, **values).slug
    workflow.submit_company(me, slug)
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


def test_a_listing_whose_address_has_a_colon_is_checked():
    submitted(owner("ida@kelp.example"))
    Company.objects.update(slug="kelp:works")  # as an import may give it
    assert made("company:kelp:works").keys() == {*checks.NAMES}


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
    published(owner(), website="https://reef.example")
    person = listings.get_company(reviewer(), listing.slug).bundle["positions"][0]["person"]["slug"]
    for email, passed in (("ottoline@reef.example", False), ("ottoline@kelp.example", True)):
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
    shares = {"method": "vote", "pools": [{"name": "Members", "percentage": 60}]}
    both = CompanyChange(teamSize=1_200, distribution=shares)
    several = made(f"petition:{claims.suggest_edit(owner(), listing.slug, both, '').pk}")
    assert several["numbers"].found == "Team size: 12 becomes 1,200; the pools add up to 60%, not 100%"


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
    monkeypatch.setattr(checks, "look", lambda url: Finding(url, fault, is_checked))
    subject = submitted(owner("ida@kelp.example"))
    worked_off()
    assert made(subject)["links"] == ("links", passed, words, ())
    assert ItemChecks.objects.get(subject=subject).attention == ("" if passed else " links ")


@pytest.mark.parametrize("kind", ["company", "change", "petition"])
def test_each_kind_of_item_is_checked_when_it_waits(monkeypatch, kind):
    asked = []
    monkeypatch.setattr(checks, "look", lambda url: asked.append(url) or Finding(url, ""))
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
    monkeypatch.setattr(checks, "look", lambda _: pytest.fail("a link was opened"))
    set_config(link_checks=False)
    subject = submitted()
    worked_off()
    assert made(subject)["links"].found == "link checks are turned off"
    assert ItemChecks.objects.get().attention == " domain "


def test_an_item_that_was_decided_before_its_job_is_not_checked():
    subject = submitted()
    workflow.approve_company(reviewer(), subject.partition(":")[2])
    worked_off()
    assert not ItemChecks.objects.exists()


def test_the_sweep_announces_what_has_no_checks_or_old_ones_and_deletes_the_rest(monkeypatch):
    monkeypatch.setattr(checks, "look", lambda url: Finding(url, ""))
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
    workflow.submit_company(me, listing.slug)
    assert made(f"company:{listing.slug}")["numbers"].passed is True


LINK = "https://harbour.example/charter"


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        ("200 OK", ""),
        ("204 No Content", ""),
        ("301 Moved Permanently", ""),
        ("403 Forbidden", ""),
        ("429 Too Many Requests", ""),
        ("404 Not Found", "responds with 404"),
        ("410 Gone", "responds with 410"),
        ("503 Service Unavailable", "responds with 503"),
    ],
)
def test_a_page_that_is_gone_or_broken_is_dead(names, certificate, open_to, status, fault):
    with site(certificate, head(status)) as (port, asked):
        open_to(port)
        assert checks.look(LINK) == (LINK, fault, True)
    assert asked[0].startswith(b"GET /charter HTTP/1.1\r\nHost: harbour.example\r\n")


def test_only_the_first_line_is_read(names, certificate, open_to):
    with site(certificate, b"HTTP/1.1 200 OK\r\n", b"X-Long: " + b"x" * 10_000_000, pause_s=0.05) as (port, _):
        open_to(port)
        assert checks.look(LINK).fault == ""


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"", b"HTTP/9.9 what\r\n", b"x" * 5_000])
def test_a_server_without_a_valid_response_is_dead(names, certificate, open_to, answer):
    with site(certificate, answer) as (port, _):
        open_to(port)
        assert checks.look(LINK).fault == "gives no valid response"


def test_a_wrong_certificate_a_closed_port_an_unknown_name_and_silence_are_told_apart(names, certificate, open_to):
    with site(certificate, head()) as (port, _):
        open_to(port, tls=None)
        assert checks.look(LINK).fault == "its certificate is not valid"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        open_to(port, deadline_s=0.2)
        assert checks.look("http://harbour.example/").fault == "takes too long to respond"
    open_to(port)
    assert checks.look(LINK).fault == "can't be reached"
    assert checks.look("https://missing.example/").fault == "can't be reached"


def test_an_address_that_is_not_public_is_never_connected_to(names, certificate, monkeypatch):
    with site(certificate, head()) as (port, asked):
        monkeypatch.setattr(checks, "connection", {"port": port})
        assert checks.look(LINK).fault == "leads to an address that is not public"
    assert asked == []


@pytest.mark.parametrize(
    "url",
    [
        "https://harbour.example:8443/",
        "https://user:secret@harbour.example/",
        "https://localhost/",
        "https://127.0.0.1:22/",
        "https://[::1/",
        "https://[::ffff:127.0.0.1]/",
        "https://harbour.example:x/",
    ],
)
def test_a_link_to_another_port_or_with_an_account_is_left_to_the_reviewer(url):
    assert checks.look(url) == (url, "", False)


def test_a_link_in_another_script_is_sent_in_ascii(names, certificate, open_to):
    names.records["xn--hfen-loa.example"] = {"A": ["127.0.0.1"]}
    with site(None, head()) as (port, asked):
        open_to(port)
        assert checks.look("http://häfen.example/é?q=ü\r\nX: y").fault == ""
    lines = asked[0].split(b"\r\n")
    assert lines[0] == b"GET /%C3%A9?q=%C3%BCX:%20y HTTP/1.1"
    assert lines[1] == b"Host: xn--hfen-loa.example"


def test_the_links_of_a_listing_are_its_websites_once_each_and_few():
    facts = {
        "website": "https://harbour.example",
        "dao_website": "https://dao.harbour.example",
        "socials": {"email": "ida@harbour.example", "twitter": "@harbour", "youtube": "https://video.example/h"},
    }
    assert checks.links_in(facts) == [facts["website"], facts["dao_website"], "https://video.example/h"]
    assert checks.links_in({"website": "https://a.example", "dao_website": "https://a.example"}) == [
        "https://a.example"
    ]
    assert checks.links_in({}) == []
    many = {str(n): f"https://{n}.example" for n in range(20)}
    assert len(checks.links_in({"socials": many})) == checks.MAX_LINKS


def pools(*shares):
    return {"distribution": {"pools": [{"name": str(n), "percentage": share} for n, share in enumerate(shares)]}}


@pytest.mark.parametrize(
    ("bundle", "found"),
    [
        ({}, []),
        ({"distribution": None, "capTable": []}, []),
        ({"distribution": {"pools": [{"name": "Members"}]}}, []),
        (pools(60, 40), []),
        (pools(33.3, 33.3, 33.3), []),
        (pools(60, 30), ["the pools add up to 90%, not 100%"]),
        (pools(80, 80), ["the pools add up to 160%, not 100%"]),
        ({"capTable": [{"percentage": 40}]}, []),
        ({"capTable": [{"percentage": 70}, {"percentage": 60}]}, ["the cap table adds up to 130%"]),
    ],
)
def test_sums_that_do_not_add_up_are_found(bundle, found):
    assert odd_sums(bundle) == found


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"teamSize": 12}, {"teamSize": 13}, []),
        ({"teamSize": 12}, {"teamSize": 1_200}, ["teamSize"]),
        ({"teamSize": 1_200}, {"teamSize": 12}, ["teamSize"]),
        ({"teamSize": None}, {"teamSize": 1_200}, []),
        ({"treasury": "$1.2M"}, {"treasury": "$1.4M"}, []),
        ({"treasury": "$1.2M"}, {"treasury": "$1.2B"}, ["treasury"]),
        ({"treasury": "$900K"}, {"treasury": "$1M"}, []),
        ({"name": "A 1"}, {"name": "A 2"}, []),
        ({"name": "..."}, {"name": "1.2.3"}, []),
        ({"raising": False}, {"raising": True}, []),
        ({"positions": [{}] * 12}, {"positions": [{}] * 8}, []),
        ({"positions": [{}] * 12}, {"positions": [{}] * 2}, ["positions"]),
    ],
)
def test_large_jumps_are_found(before, after, found):
    assert [name for name, _ in jumps(before, after)] == found


@pytest.fixture
def target():
    return published(owner(), name="Harbour Fund").slug


def test_a_new_account_has_no_history(target):
    claim = claims.claim_company(owner("ida@kelp.example"), target, "I chair it.")
    found = claimant_of(reviewer(), claim)
    assert (found.domain, found.is_verified, found.owned, found.approved, found.declined) == (
        "kelp.example",
        False,
        0,
        0,
        0,
    )
    assert found.since.day == 1


def test_a_verified_address_counts(target):
    claimant = account("ida@kelp.example").actor("web")
    claim = claims.claim_company(claimant, target, "I chair it.")
    assert claimant_of(reviewer(), claim).is_verified is True
    Account.objects.filter(pk=claim.account_id).update(email="changed@kelp.example")
    claim.account.refresh_from_db()
    assert claimant_of(reviewer(), claim).is_verified is False


def test_earlier_decisions_are_counted_and_only_public_listings_are_named(target):
    me, judge = owner(), reviewer()
    for number in range(LISTINGS_SHOWN + 1):
        published(me, name=f"Kelp {number}")
    draft(me, name="Secret plan")
    rejected = draft(me, name="Refused plan").slug
    workflow.submit_company(me, rejected)
    workflow.reject_company(judge, rejected, "No.")
    first = claims.claim_company(me, target, "I chair it.")
    claims.decide_request(judge, first.pk, approve=False, note="No.")
    found = claimant_of(judge, claims.claim_company(me, target, "Here is proof."))
    assert (found.owned, found.approved, found.declined) == (6, 6, 2)
    assert [name for name, _ in found.listings] == [f"Kelp {number}" for number in range(LISTINGS_SHOWN)]


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_strangers_learn_nothing_of_an_account(target, who):
    claim = claims.claim_company(owner(), target, "I chair it.")
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    with pytest.raises(Forbidden):
        claimant_of(actor, claim)


def test_a_value_that_no_other_listing_has_is_looked_at():
    check = made(submitted(type="co"))["values"]
    assert check.passed is False
    assert check.found == "Type: no other listing has “co”"
    published(owner(), type="Co")
    assert made(submitted(type="co"))["values"].passed is True
    assert made(submitted(type="Cooperative"))["values"].passed is True, "it is suggested"


def test_the_value_of_an_unpublished_listing_does_not_count():
    draft(owner(), type="co")
    assert made(submitted(type="co"))["values"].passed is False


def test_a_change_is_judged_by_its_own_values():
    mine = owner()
    listed = published(mine, type="co")
    listings.update_company(mine, listed.slug, CompanyChange(name="Kelp and Sons"))
    change = PendingChange.objects.get()
    assert made(f"change:{change.pk}")["values"].passed is True
