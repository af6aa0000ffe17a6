"""Answers of the owner-scoped server stay within what a model can take, and within what a database should be asked."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from make.accounts import account
from muniment.accounts import tokens
from muniment.credits import operations as credits_
from muniment.documents.models import Document
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.mcp.tools.answers import BUDGET_BYTES
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company, Ownership
from muniment.registry.people import profiles
from services.manage import manage

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    with manage() as made:
        yield made


@pytest.fixture
def owner():
    return account("owner@harbour.example")


@pytest.fixture
def text(owner):
    return tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES).text


def make_listings(owner, number, name):
    for n in range(number):
        listings.create_company(owner.actor("web"), CompanyChange(name=f"{n} {name}"), slug=f"one-{n}")


def test_a_page_of_listings_takes_as_many_questions_as_one_listing(owner):
    def asked():
        with CaptureQueriesContext(connection) as found:
            listings.list_companies(owner.actor("token"), page_size=100)
        return len(found)

    make_listings(owner, 1, "Quay")
    alone = asked()
    listings.create_company(owner.actor("web"), CompanyChange(name="Another quay"))
    listings.create_company(owner.actor("web"), CompanyChange(name="A third quay"))
    assert asked() == alone


def test_a_long_profile_of_many_listings_fits_and_says_what_was_cut(server, owner, text):
    listings_by_rows(owner, 101, "Quay")
    profiles.create_profile(owner.actor("web"), profiles.ProfileChange(name="Ada", bio="潮" * 20_000))
    answer = server.call(text, "get_my_profile")
    assert len(msgspec.json.encode(answer)) <= BUDGET_BYTES
    found = answer["data"]
    assert (len(found["companies"]), found["companiesTotal"]) == (100, 101)
    assert found["person"]["bioTruncated"] is True
    assert found["person"]["bioUrl"].endswith("/manage/profile")


CJK = "水" * 190


def listings_by_rows(owner, number, name=CJK, **fields):
    """Make listings as the import leaves them, quickly; give them."""
    made = Company.objects.bulk_create(
        Company(slug=f"{n:03}{name}", name=f"{n:03}{name}", state="draft", **fields) for n in range(number)
    )
    Ownership.objects.bulk_create(Ownership(company=each, account=owner) for each in made)
    return made


def size(answer):
    return len(msgspec.json.encode(answer))


def pages_through(server, text, tool, key, **arguments):
    """Follow an answer's own page size, as its hint says; give every item's key."""
    seen, following, page_size = [], 1, 100
    while following:
        answer = server.call(text, tool, page=following, pageSize=page_size, **arguments)
        assert size(answer) <= BUDGET_BYTES
        seen += [item[key] for item in answer["data"]]
        following, page_size = answer["nextPage"], answer["pagination"]["pageSize"]
        assert ("hint" in answer) == (page_size < 100 and bool(following) and len(seen) == page_size)
    return seen


@pytest.mark.requirement("mcp.size")
def test_a_hundred_listings_of_long_names_fit_by_smaller_pages_that_miss_none(server, owner, text):
    made = listings_by_rows(owner, 120)
    first = server.call(text, "list_my_companies", pageSize=100)
    taken = first["pagination"]["pageSize"]
    assert len(first["data"]) == taken < 100
    assert first["hint"] == f"No more than {taken} fit into one answer. Go on with page 2 and pageSize {taken}."
    assert {"id", "name", "state", "role", "version", "updatedAt", "pendingChanges"} <= set(first["data"][0])
    seen = pages_through(server, text, "list_my_companies", "id")
    assert sorted(seen) == sorted(each.slug for each in made)


@pytest.mark.requirement("mcp.size")
def test_names_that_grow_longer_from_page_to_page_do_not_end_in_pages_of_one(server, owner, text):
    made = Company.objects.bulk_create(
        Company(
            slug=f"{n:03}{'水' * min(190, 40 + n)}", name="水" * min(190, 40 + n), state="draft", updated_at=when(n)
        )
        for n in range(200)
    )
    Ownership.objects.bulk_create(Ownership(company=each, account=owner) for each in made)
    seen, following, sizes = [], 1, [100]
    while following:
        answer = server.call(text, "list_my_companies", page=following, pageSize=sizes[-1])
        assert size(answer) <= BUDGET_BYTES
        seen += [item["id"] for item in answer["data"]]
        following = answer["nextPage"]
        sizes.append(answer["pagination"]["pageSize"])
    assert seen == [each.slug for each in made]
    assert min(sizes) >= 20


def when(number):
    """Return a moment, the earlier the higher the number: lists begin with the newest."""
    return datetime(2026, 1, 1, tzinfo=UTC) - timedelta(hours=number)


@pytest.mark.requirement("mcp.size")
def test_a_later_page_that_does_not_fit_begins_where_it_was_asked_to(server, owner, text):
    listings_by_rows(owner, 260)
    whole = [each.slug for each in listings.list_companies(owner.actor("token"), page_size=300).items]
    for page, page_size in ((2, 100), (3, 100), (2, 99), (3, 97)):
        answer = server.call(text, "list_my_companies", page=page, pageSize=page_size)
        start, told = (page - 1) * page_size, answer["pagination"]
        assert size(answer) <= BUDGET_BYTES
        assert (told["page"] - 1) * told["pageSize"] == start
        assert [each["id"] for each in answer["data"]] == whole[start : start + told["pageSize"]]
        assert told["total"] == 260


@pytest.mark.requirement("mcp.size")
def test_a_hundred_documents_of_long_names_fit_by_smaller_pages_that_miss_none(server, owner, text):
    (company,) = listings_by_rows(owner, 1)
    made = Document.objects.bulk_create(
        Document(
            company=company,
            account=owner,
            via="web",
            filename=f"{n}{'水' * 200}.pdf",
            content_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            size_bytes=1,
            sha256="0" * 64,
            state="ready",
            text_state="not extractable",
            text_note="水" * 300,
            blob_key=f"documents/none/{n}",
        )
        for n in range(110)
    )
    seen = pages_through(server, text, "list_my_documents", "documentId")
    assert sorted(seen) == sorted(each.pk for each in made)
    answer = server.call(text, "list_my_documents", pageSize=100)
    assert answer["quota"]["usedBytes"] == 110
    assert answer["data"][0]["companySlug"] == company.slug
    assert answer["data"][0]["filenameTruncated"] is True


@pytest.mark.requirement("mcp.size")
def test_any_answer_about_a_listing_fits_and_keeps_its_version(server, owner, text):
    (company,) = listings_by_rows(owner, 1, reviewer_note="水" * 30_000, extra={"more": ["水" * 900] * 70})
    shown = server.call(text, "get_my_company", slug=company.slug)
    assert size(shown) <= BUDGET_BYTES
    assert (shown["data"]["version"], shown["data"]["state"]) == (1, "draft")
    assert shown["data"]["company"]["truncated"] is True
    address = [dict.fromkeys(("address_1", "address_2", "city", "state", "zip"), "𠀀" * 200)] * 10
    asked = {"changes": {"address": address}, "include": ["company"]}
    done = server.call(text, "update_my_company", slug=company.slug, **asked)
    assert size(done) <= BUDGET_BYTES
    assert (done["data"]["version"], done["data"]["applied"]) == (2, ["address"])
    assert done["data"]["company"]["url"].startswith("http://testserver/manage/companies/")


@pytest.mark.requirement("mcp.size")
def test_credits_with_long_notes_and_a_profile_of_long_names_fit(server, owner, text):
    listings_by_rows(owner, 120)
    for _ in range(50):
        credits_.grant(COMMAND, owner.email, 1, note="水" * 2_000)
    found = server.call(text, "get_credits")
    assert size(found) <= BUDGET_BYTES
    entries = found["data"]["entries"]
    assert len(entries) == 50
    assert entries[0]["noteTruncated"] is True
    assert entries[0]["noteUrl"].endswith("/manage/credits")
    profile = server.call(text, "get_my_profile")
    assert size(profile) <= BUDGET_BYTES
    assert profile["data"]["companiesTotal"] == 120
