"""Answers of the owner-scoped server stay within what a model can take, and within what a database should be asked."""

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from make.accounts import account
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from muniment.mcp.cuts import BUDGET_BYTES
from muniment.registry import operations, profiles
from muniment.registry.changes import CompanyChange
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


def listings(owner, number, name):
    for n in range(number):
        operations.create_company(owner.actor("web"), CompanyChange(name=f"{n} {name}"), slug=f"one-{n}")


def test_a_page_of_listings_takes_as_many_questions_as_one_listing(owner):
    def asked():
        with CaptureQueriesContext(connection) as found:
            operations.list_companies(owner.actor("token"), page_size=100)
        return len(found)

    listings(owner, 1, "Quay")
    alone = asked()
    operations.create_company(owner.actor("web"), CompanyChange(name="Another quay"))
    operations.create_company(owner.actor("web"), CompanyChange(name="A third quay"))
    assert asked() == alone


def test_a_long_profile_of_many_listings_fits_and_says_what_was_cut(server, owner, text):
    listings(owner, 101, "Quay")
    profiles.create_profile(owner.actor("web"), profiles.ProfileChange(name="Ada", bio="潮" * 20_000))
    answer = server.call(text, "get_my_profile")
    assert len(msgspec.json.encode(answer)) <= BUDGET_BYTES
    found = answer["data"]
    assert (len(found["companies"]), found["companiesTotal"]) == (100, 101)
    assert found["person"]["bioTruncated"] is True
    assert found["person"]["bioUrl"].endswith("/manage/profile")
