"""Likely duplicates: by name, website host or symbol, and only listings that the actor may see."""

import pytest

from make.registry import agent_of, draft, owner, published, reviewer
from muniment.registry.models import Company
from muniment.registry.review import duplicates, workflow

pytestmark = pytest.mark.django_db


def twins(actor, name="", website="", symbol="", **more):
    return {found.slug: why for found, why in duplicates.likely_duplicates(actor, name, website, symbol, **more)}


def test_a_listing_of_the_same_name_website_or_symbol_is_a_likely_duplicate():
    by_name = published(owner(), name="Tidal Works").slug
    by_site = published(owner(), website="https://www.tidal.example/about").slug
    by_symbol = published(owner(), symbol="TIDE").slug
    published(owner(), website="https://nottidal.example", symbol="TIDES")
    found = twins(owner(), " tidal works ", "http://tidal.example:8080", "tide")
    assert found == {by_name: "name", by_site: "website", by_symbol: "symbol"}
    assert twins(owner(), " ", "", " ") == {}
    assert by_name not in twins(owner(), "Tidal Works", besides=by_name)


def test_a_strangers_draft_is_a_duplicate_for_reviewers_alone():
    me = owner()
    slug = draft(me, name="Tidal Works").slug
    assert twins(me, "Tidal Works") == {slug: "name"}
    assert twins(reviewer(), "Tidal Works") == {slug: "name"}
    assert twins(owner(), "Tidal Works") == twins(agent_of(reviewer()), "Tidal Works") == {}


def test_at_most_three_duplicates_by_each_of_name_website_and_symbol_and_six_in_all():
    for number in range(4):
        published(owner(), name="Tidal Works", symbol=f"A{number}")
        published(owner(), website=f"https://tidal.example/{number}")
        published(owner(), symbol="TIDE")
    assert list(twins(owner(), "Tidal Works").values()) == ["name"] * 3
    assert list(twins(owner(), website="https://tidal.example").values()) == ["website"] * 3
    assert list(twins(owner(), symbol="TIDE").values()) == ["symbol"] * 3
    assert list(twins(owner(), "Tidal Works", "tidal.example", "TIDE").values()) == ["name"] * 3 + ["website"] * 3


def test_a_rejected_listing_is_no_duplicate():
    me = owner()
    slug = draft(me, name="Tidal Works").slug
    workflow.submit_company(me, slug)
    workflow.reject_company(reviewer(), slug, "Not an organization.")
    assert Company.objects.filter(name="Tidal Works").exists()
    assert twins(reviewer(), "Tidal Works") == {}


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://www.Tidal.example/a?b", "tidal.example"),
        ("tidal.example", "tidal.example"),
        ("http://tidal.example:80", "tidal.example"),
        ("localhost", ""),
        ("", ""),
    ],
)
def test_the_host_of_an_address(address, host):
    assert duplicates.host_of(address) == host
