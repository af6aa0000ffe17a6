"""The fields that an owner changes: what each takes, what absent and null mean, and that every one comes out again."""

import pytest
from django.conf import settings

from make.registry import document, draft, owner, published
from muniment.registry.company import operations
from muniment.registry.company.company_change import BadFields, CompanyChange
from services.items import without_ids

pytestmark = pytest.mark.django_db


def test_absent_stays_and_null_clears():
    me = owner()
    mine = published(
        me, description="Kept.", website="https://one.example", socials={"twitter": "@a", "email": "a@b.example"}
    )
    operations.update_company(me, mine.slug, CompanyChange({"website": None, "socials": {"twitter": None}}))
    company = document("company", mine.slug)["company"]
    assert "website" not in company
    assert company["description"] == "Kept."
    assert (company["socials"]["twitter"], company["socials"]["email"]) == (None, "a@b.example")
    operations.update_company(me, mine.slug, CompanyChange(socials=None))
    assert document("company", mine.slug)["company"]["socials"] is None


@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": None}, "name"),
        ({"status": "sleeping"}, "status"),
        ({"teamSize": -1}, "teamSize"),
        ({"teamSize": True}, "teamSize"),
        ({"treasury": "lots"}, "treasury"),
        ({"website": "javascript:alert(1)"}, "website"),
        ({"website": "https://a b.example"}, "website"),
        ({"description": "x" * 2_001}, "description"),
        ({"description": "a\0b"}, "description"),
        ({"description": "\ud800"}, "description"),
        ({"themes": ["x" * 61]}, "themes[0]"),
        ({"themes": "energy"}, "themes"),
        ({"socials": {"github": "a"}}, "socials.github"),
        ({"socials": {"twitter": 5}}, "socials.twitter"),
        ({"address": [{"street": "a"}]}, "address[0].street"),
        ({"distribution": {"pools": [{"percentage": "5"}]}}, "distribution.pools[0].percentage"),
        ({"positions": [{"title": "Chair"}]}, "positions[0].person"),
        ({"positions": [{"person": {"slug": "not-listed"}}]}, "positions[0].person.slug"),
        ({"proposals": [{"status": "won"}]}, "proposals[0].status"),
        ({"proposals": [{"votes": {"for": "5"}}]}, "proposals[0].votes.for"),
        ({"capTable": [5]}, "capTable[0]"),
        ({"fundingRound": None}, "fundingRound"),
        ({"fundingRound": {"target": "much"}}, "fundingRound.target"),
        ({"fundingRound": {"closed": "2024-01-01"}}, "fundingRound.closed"),
        *(
            ({key: 1}, key)
            for key in ("id", "state", "owner", "version", "icon", "listedAt", "extra", "publication_number")
        ),
    ],
)
def test_a_value_that_the_form_does_not_take_is_refused_by_its_field(wire, field):
    me = owner()
    mine = draft(me)
    with pytest.raises(BadFields) as problem:
        operations.update_company(me, mine.slug, CompanyChange(wire))
    assert [fault.field for fault in problem.value.faults] == [field]
    assert operations.get_company(me, mine.slug).version == 1


def test_every_editable_field_is_stored_and_published():
    me = owner()
    wire = {
        "name": "Full House", "symbol": "FULL", "teamSize": 7, "treasury": "$1.25M", "status": "active", "type": "DAO",
        "industry": "Energy", "orgKind": "project", "themes": ["energy", "海"], "description": "All.", "body": "# All",
        "website": "https://full.example", "dao_website": "http://dao.full.example",
        "socials": {"email": "full@example.org"}, "address": [{"city": "Port", "country": "fr"}],
        "distribution": {"method": "sale", "pools": [{"name": "team", "percentage": 20.0}]},
        "positions": [{"title": "Chair", "person": {"name": "Ada Moss"}}],
        "proposals": [{"id": "1", "title": "Go", "status": "passed", "votes": {"for": 5.0, "against": 0.5}}],
        "capTable": [{"address": "0x0", "name": "Ada", "tokens": "5", "percentage": 12.5}],
        "fundingRound": {"name": "Seed", "target": "$2M", "opened": "2024-05-01"},
    }  # fmt: skip
    assert {*wire, "fundingRounds", "treasuryAmount"} == settings.SCHEMA.company_change.by_name.keys()
    mine = published(me, **wire)
    data = document("company", mine.slug)
    company = data["company"]
    assert company["treasury"] == "$1.3M"
    assert company["treasuryAmount"] == {"amount": "1250000.00", "currency": "USD"}
    assert company["teamSize"] == 1
    assert company["raising"] is True
    assert without_ids(company["address"]) == [
        {"address_1": None, "address_2": None, "city": "Port", "state": None, "zip": None, "country": "FR"}
    ]
    assert data["distribution"]["method"] == "sale"
    assert without_ids(data["distribution"]["pools"]) == [{"name": "team", "percentage": 20}]
    assert data["proposals"][0]["votes"] == {"for": 5, "against": 0.5}
    assert without_ids(data["positions"]) == [{"title": "Chair", "person": {"name": "Ada Moss", "slug": "ada-moss"}}]
    assert without_ids(operations.get_company(me, mine.slug).bundle["fundingRounds"]) == [
        {"name": "Seed", "target": "$2M", "opened": "2024-05-01"}
    ]
