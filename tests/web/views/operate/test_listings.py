"""Moderation in bulk: preview, reason, results line by line; credits granted once."""

import re
from datetime import timedelta

import pytest

from make.accounts import account, signed_in
from make.pages import valid
from muniment.accounts.models import SecurityEvent
from muniment.credits.models import Transfer
from muniment.credits.operations import get_balance, list_purchases, list_transfers
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Forbidden
from muniment.registry.exchange.importer import import_registry
from muniment.registry.inbox.deciding import MAX_TOGETHER, count_gaps, find_rows, list_rows, move_several
from muniment.registry.models import Company, Person, Position
from services.product import DEMO

pytestmark = pytest.mark.django_db
SEVERAL = "/operate/listings/several"


@pytest.fixture
def operator():
    return account("operator@harbour.example", "operator")


@pytest.fixture
def browser(operator):
    return signed_in(operator)


@pytest.fixture
def imported():
    import_registry(DEMO)


@pytest.mark.usefixtures("imported")
def test_companies_and_people_are_found_by_words_and_state(browser):
    page = browser.get("/operate/listings?q=TARNWICK").content.decode()
    assert 'value="tarnwick-tidal"' in page
    assert "No listings found" in browser.get("/operate/listings?q=tarnwick&state=hidden").content.decode()
    person = Person.objects.filter(published=True).order_by("pk").first()
    page = browser.get(f"/operate/listings?kind=people&state=public&q={person.slug}").content.decode()
    assert f'href="/review/people/{person.slug}/erase"' in page


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("kind", ["companies", "people"])
def test_several_are_shown_then_unlisted_with_a_reason_and_published_again(browser, operator, kind):
    model = Company if kind == "companies" else Person
    slugs = list(model.objects.filter(published=True).order_by("pk").values_list("slug", flat=True)[:2])
    form = {"kind": kind, "slug": [*slugs, "no-such-slug"]}
    preview = browser.post(SEVERAL, {**form, "do": "unlist"}).content.decode()
    assert "1 selected listing no longer exists." in preview
    assert model.objects.filter(slug__in=slugs, published=True).count() == 2
    without = browser.post(SEVERAL, {**form, "do": "unlist", "confirmed": "yes"}).content.decode()
    assert "Write a note first." in without
    assert model.objects.filter(slug__in=slugs, published=True).count() == 2
    done = browser.post(
        SEVERAL, {**form, "do": "unlist", "confirmed": "yes", "note": "A court asked."}
    ).content.decode()
    assert done.count('class="pill good"') == 2
    assert done.count('class="pill bad"') == 1
    assert model.objects.filter(slug__in=slugs, published=True).count() == 0
    assert SecurityEvent.objects.filter(event="unlisted", actor=operator).count() == 2
    browser.post(SEVERAL, {"kind": kind, "slug": slugs, "do": "relist", "confirmed": "yes"})
    assert model.objects.filter(slug__in=slugs, published=True).count() == 2


@pytest.mark.usefixtures("imported")
def test_the_overview_counts_what_public_listings_lack_and_leads_to_them(browser):
    Company.objects.update(description="Mends boats.", website="https://a.example", type="DAO", reviewed_at=now())
    Position.objects.filter(person=None).delete()
    public = list(Company.objects.filter(published=True).order_by("pk"))
    draft = Company.objects.create(slug="draft", name="Draft", published=False)
    assert "Every public listing has a summary" in browser.get("/operate").content.decode()

    Company.objects.filter(pk=public[0].pk).update(description="")
    Company.objects.filter(pk=public[1].pk).update(reviewed_at=now() - timedelta(days=366))
    Company.objects.filter(pk=public[2].pk).update(reviewed_at=now() - timedelta(days=364))
    Position.objects.create(company=public[2], name="Ada Reef", rank=9_001)
    Position.objects.create(company=public[2], name="Ida Reef", rank=9_002)
    overview = valid(browser.get("/operate").content.decode())
    links = {each.get("href"): each.text for each in overview.iter("a") if "gap=" in each.get("href", "")}
    assert links == {
        "/operate/listings?gap=description": "Without a summary",
        "/operate/listings?gap=review": "Not reviewed in the last year",
        "/operate/listings?gap=profiles": "With names that have no profile",
    }
    for gap, listing in (("description", public[0]), ("review", public[1]), ("profiles", public[2])):
        page = browser.get(f"/operate/listings?gap={gap}").content.decode()
        assert re.findall(r'name="slug" value="([^"]*)"', page) == [listing.slug], gap
        assert draft.slug not in page

    confirm = {"kind": "companies", "slug": public[1].slug, "do": "confirm"}
    assert "will show today as the date of its review" in browser.post(SEVERAL, confirm).content.decode()
    assert 'class="pill good"' in browser.post(SEVERAL, {**confirm, "confirmed": "yes"}).content.decode()
    assert "No listings found" in browser.get("/operate/listings?gap=review").content.decode()
    people = browser.post(SEVERAL, {"kind": "people", "slug": "ada", "do": "confirm", "confirmed": "yes"})
    assert "Only companies can be marked as reviewed." in people.content.decode()


def test_forms_without_a_decision_or_a_listing_are_refused(browser):
    assert browser.post(SEVERAL, {"kind": "companies", "do": "burn", "slug": "a"}).status_code == 400
    assert browser.post(SEVERAL, {"kind": "ships", "do": "unlist", "slug": "a"}).status_code == 400
    assert browser.post(SEVERAL, {"kind": "companies", "do": "unlist"}).status_code == 400


def test_bulk_moderation_is_for_reviewers_and_bounded(operator):
    owner = account().actor("web")
    for refused in (
        lambda: list_rows(owner, "companies"),
        lambda: find_rows(owner, "people", ["a"]),
        lambda: count_gaps(owner),
        lambda: move_several(owner, "people", "unlist", ["a"], "x"),
        lambda: list_transfers(owner),
        lambda: list_purchases(owner),
    ):
        with pytest.raises(Forbidden):
            refused()
    with pytest.raises(BadRequest):
        move_several(operator.actor("web"), "people", "unlist", ["a"] * (MAX_TOGETHER + 1), "x")


def test_credits_are_granted_once_and_listed(browser, operator):
    other = account("tidal@harbour.example")
    before = get_balance(other.actor("system")).balance
    form = {"email": other.email, "amount": "40", "note": "For the trial", "once": "abc"}
    for _ in range(2):
        browser.post("/operate/credits", form)
    assert get_balance(other.actor("system")).balance == before + 40
    assert Transfer.objects.get(kind="grant").note == "For the trial"
    assert SecurityEvent.objects.filter(event="credits_granted", actor=operator, account=other).count() == 1
    assert b"For the trial" in browser.get("/operate/credits?q=tidal").content
    assert b"No entries" in browser.get("/operate/credits?list=purchases").content
    for wrong in ({"amount": "ten"}, {"amount": "4", "email": "none@harbour.example"}):
        answer = browser.post("/operate/credits", {**form, "once": "", **wrong})
        assert answer.status_code == 200
        assert b'class="notice bad"' in answer.content
