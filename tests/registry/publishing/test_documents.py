"""What companies are found by besides their names and texts."""

import pytest
from django.conf import settings

from make.registry import owner, published
from muniment.registry.models import Company
from muniment.registry.publishing.documents import company_document, company_views, search_texts_of_company
from muniment.store.search_text import SITE

ADDRESS = "0x00000000000000000000000000000000000A11CE"
ROW = {
    **dict.fromkeys(("symbol", "website", "dao_website", "type", "industry"), ""),
    **dict.fromkeys(("socials", "themes", "address", "body")),
    "extra": {},
    "former_names": None,
}


@pytest.mark.parametrize(
    "row",
    [
        {"body": f"| address |\n|---|\n| `{ADDRESS}` |"},
        {"body": f"On chain at <https://explorer.example/address/{ADDRESS}>."},
        {"extra": {"tokenDetails": {"contracts": [{"chain": "one", "address": ADDRESS}]}}},
        {"extra": {"links": [f"https://explorer.example/token/{ADDRESS}?a=1"]}},
    ],
)
def test_on_chain_addresses_are_keys_in_lower_case(row):
    assert SITE + ADDRESS.lower() in search_texts_of_company({**ROW, **row}, (), ()).keys


def test_what_is_longer_than_an_address_is_none():
    assert search_texts_of_company({**ROW, "body": ADDRESS + "0"}, (), ()).keys == ()


def test_identifiers_are_bounded_by_company():
    body = " ".join(f"0x{number:040x}" for number in range(1_000))
    extra = {f"number{number}": f"NO-{number:09}" for number in range(1_000)}
    assert len(search_texts_of_company({**ROW, "body": body, "extra": extra}, (), ()).keys) == 250


def test_a_country_is_found_by_its_code_and_its_name():
    place = search_texts_of_company({**ROW, "address": [{"city": "Havnsund", "country": "NO"}]}, (), ()).place
    assert place.split("\n") == ["Havnsund", "NO", "Norway"]


def test_a_state_is_found_by_its_code_and_its_name_and_its_address_by_the_country_that_it_proves():
    address = {"city": "Fellbridge", "state": "ca", "zip": "94105"}
    place = search_texts_of_company({**ROW, "address": [address]}, (), ()).place
    assert place.split("\n") == ["Fellbridge", "ca", "94105", "United States", "California", "CA"]


@pytest.mark.django_db
def test_a_company_is_found_by_the_wallet_of_a_holder_and_by_the_number_and_the_title_of_a_proposal():
    me = owner()
    proposals = [{"id": "QIP-14", "title": "Mend the quay", "status": "passed"}]
    slug = published(me, capTable=[{"address": ADDRESS, "percentage": 1}], proposals=proposals).slug
    key = Company.objects.get(slug=slug).pk
    document = company_document(company_views([key])[key], settings.SCHEMA)
    assert {SITE + ADDRESS.lower(), SITE + "qip14"} <= set(document.search.keys)
    assert "Mend the quay" in document.texts[2]
