"""The fields that an owner changes: what each takes, what absent and null mean, and that every one comes out again."""

import msgspec
import pytest
from django.conf import settings

from make.registry import document, draft, lines, owner, published
from muniment.kernel.actor import COMMAND
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, HistoryEntry, PendingChange
from muniment.registry.publishing.documents import render
from services.items import without_ids

pytestmark = pytest.mark.django_db


def test_absent_stays_and_null_clears():
    me = owner()
    mine = published(
        me, description="Kept.", website="https://one.example", socials={"twitter": "@a", "email": "a@b.example"}
    )
    listings.update_company(me, mine.slug, CompanyChange({"website": None, "socials": {"twitter": None}}))
    company = document("company", mine.slug)["company"]
    assert "website" not in company
    assert company["description"] == "Kept."
    assert (company["socials"]["twitter"], company["socials"]["email"]) == (None, "a@b.example")
    listings.update_company(me, mine.slug, CompanyChange(socials=None))
    assert document("company", mine.slug)["company"]["socials"] is None


@pytest.mark.whole(keeps="all")
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
        listings.update_company(me, mine.slug, CompanyChange(wire))
    assert [fault.field for fault in problem.value.faults] == [field]
    assert listings.get_company(me, mine.slug).version == 1


def test_every_editable_field_is_stored_and_published():
    me = owner()
    wire = {
        "name": "Full House", "symbol": "FULL", "teamSize": 7, "treasury": "$1.25M", "treasuryNote": "at cost",
        "status": "active", "type": "DAO",
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
    assert without_ids(listings.get_company(me, mine.slug).bundle["fundingRounds"]) == [
        {"name": "Seed", "target": "$2M", "opened": "2024-05-01"}
    ]


EXACT = {"amount": "1249999.99", "currency": "USD"}


def update(me, slug, **change):
    return listings.update_company(me, slug, CompanyChange(change))


def facts(me, slug):
    return listings.get_company(me, slug).bundle["company"]


def faults(refusal):
    return [(fault.field, fault.reason) for fault in refusal.value.faults]


def test_an_amount_with_a_note_is_no_treasury_and_a_new_amount_has_no_note():
    me = owner()
    mine = published(me, treasury="$431,500", treasuryNote="sum of grants received")
    assert (facts(me, mine.slug)["treasury"], facts(me, mine.slug)["treasuryNote"]) == (
        "$431.5K",
        "sum of grants received",
    )
    row = Company.objects.get(slug=mine.slug)
    assert render("company", [row.pk])[row.pk].treasury_minor is None  # neither sorted nor added
    done = update(me, mine.slug, treasury="$2M")
    assert done.diff["treasuryNote"] == {"before": "sum of grants received", "after": None}
    assert "treasuryNote" not in facts(me, mine.slug)
    assert render("company", [row.pk])[row.pk].treasury_minor == 200_000_000
    entry = HistoryEntry.objects.filter(company=row).order_by("-pk").first()
    listings.revert_company(me, mine.slug, entry.pk)
    assert facts(me, mine.slug)["treasuryNote"] == "sum of grants received"
    same = {"treasury": "$3M", "treasuryNote": "sum of grants received"}
    update(me, mine.slug, **same)
    assert facts(me, mine.slug)["treasuryNote"] == "sum of grants received"


@pytest.mark.requirement("owners.exact")
def test_the_shown_text_of_a_treasury_is_no_change_and_any_other_is():
    me = owner()
    mine = published(me, treasury="$1,249,999.99")
    assert (facts(me, mine.slug)["treasury"], facts(me, mine.slug)["treasuryAmount"]) == ("$1.2M", EXACT)
    assert update(me, mine.slug, treasury="$1.2M").applied == []
    assert update(me, mine.slug, treasury="$1.2M", treasuryAmount=EXACT).applied == []
    assert Company.objects.get(slug=mine.slug).treasury_minor == 124_999_999
    done = update(me, mine.slug, treasury="$1,200,000")
    assert done.diff == {"treasury": {"before": "$1249999.99", "after": "$1.2M"}}
    assert document("company", mine.slug)["company"]["treasuryAmount"]["amount"] == "1200000.00"


@pytest.mark.requirement("owners.exact")
def test_an_exact_treasury_is_stored_beside_the_shown_text_of_the_former_and_is_reverted_exactly():
    me = owner()
    mine = published(me, treasury="$1,249,999.99")
    assert update(me, mine.slug, treasury="$1.2M", treasuryAmount={"amount": "7.05"}).applied == ["treasury"]
    assert facts(me, mine.slug)["treasury"] == "$7.1"
    entry = HistoryEntry.objects.filter(company__slug=mine.slug).order_by("pk").last()
    listings.revert_company(me, mine.slug, entry.pk)
    assert facts(me, mine.slug)["treasuryAmount"] == EXACT
    assert update(me, mine.slug, treasuryAmount=None).applied == ["treasury"]
    assert "treasury" not in facts(me, mine.slug)


@pytest.mark.requirement("owners.exact")
def test_two_different_treasuries_are_refused():
    me = owner()
    mine = draft(me, treasury="$5")
    with pytest.raises(BadFields) as refusal:
        update(me, mine.slug, treasury="$6", treasuryAmount={"amount": "7"})
    assert faults(refusal) == [("treasury", "differs from treasuryAmount")]
    with pytest.raises(BadFields) as refusal:
        update(me, mine.slug, treasury="plenty", treasuryAmount={"amount": "many"})
    assert [field for field, _ in faults(refusal)] == ["treasury", "treasuryAmount.amount"]
    update(me, mine.slug, treasury="$1.3M", treasuryAmount={"amount": "1250000"})
    assert facts(me, mine.slug)["treasuryAmount"]["amount"] == "1250000.00"
    update(me, mine.slug, treasury=None, treasuryAmount=None)
    assert "treasuryAmount" not in facts(me, mine.slug)


@pytest.mark.requirement("owners.exact")
def test_a_team_size_is_set_only_while_no_positions_are_listed():
    me = owner()
    team = [{"title": "Chair", "person": {"name": "Ada Moss"}}, {"title": "Clerk", "person": {"name": "Bo Reef"}}]
    mine = published(me, teamSize=435)
    assert update(me, mine.slug, teamSize=435, positions=team).applied == ["positions"]
    assert update(me, mine.slug, teamSize=2).applied == []
    for wrong in (435, 3, None, 0):
        with pytest.raises(BadFields) as refusal:
            update(me, mine.slug, teamSize=wrong)
        assert faults(refusal) == [("teamSize", "is 2, the number of people in the positions, and cannot be set")]
    update(me, mine.slug, positions={"add": [{"title": "Cook", "person": {"name": "Bo Reef"}}]})
    assert facts(me, mine.slug)["teamSize"] == 2
    done = listings.update_company(
        me, mine.slug, CompanyChange(positions=[], teamSize=9), expected_totals={"positions": 3}
    )
    assert done.applied == ["teamSize", "positions"]
    assert facts(me, mine.slug)["teamSize"] == 9


@pytest.mark.requirement("owners.exact")
def test_a_member_that_hides_a_column_is_compared_as_it_is_shown():
    me = owner()
    mine = published(me, description="In the column.")
    Company.objects.filter(slug=mine.slug).update(extra={"description": "Imported before the field existed."})
    shown = listings.get_company(me, mine.slug).bundle["company"]["description"]
    assert shown == "Imported before the field existed."
    assert listings.update_company(me, mine.slug, CompanyChange(description=shown)).applied == []


def test_a_listing_with_irregular_values_is_written_back_unchanged(tmp_path):
    """What an import brought may break the rules for owners."""
    row = {
        "company": {
            "id": "acme",
            "name": " Acme ",
            "website": "acme",
            "themes": ["a, b", "a, b", "x" * 80],
            "body": "one\r\ntwo\n",
            "teamSize": 99,
            "treasury": "$1,249,999.99",
            "socials": {"email": "nope"},
            "address": [{"city": "Port", "country": "NO"}, {"city": "Port"}],
        },
        "distribution": {"details": "a\nb\n", "pools": [{"name": "a;b", "percentage": 60, "note": 1}], "bonus": True},
        "positions": [{"person": {"name": "Smith; Sons"}, "since": 2020}],
        "proposals": [{"id": "1", "votes": {"for": 5}}],
        "capTable": [{"name": "Smith; Sons", "tokens": "1", "percentage": 3}],
    }
    import_registry(lines(tmp_path / "companies.jsonl", row))
    before = document("company", "acme")
    stored = Company.objects.get(slug="acme")
    shown = msgspec.json.decode(msgspec.json.encode(listings.get_company(COMMAND, "acme").bundle))
    given = {
        name: value
        for name, value in {**shown["company"], **shown}.items()
        if name in settings.SCHEMA.company_change.by_name
    }
    assert {"teamSize", "treasuryAmount", "address", "distribution", "positions", "capTable"} <= given.keys()
    done = listings.update_company(COMMAND, "acme", CompanyChange(given), expected_version=stored.version)
    assert (done.applied, done.awaiting_review, done.version) == ([], [], stored.version)
    assert document("company", "acme") == before
    assert HistoryEntry.objects.filter(company=stored).count() == 1
    done = listings.update_company(COMMAND, "acme", CompanyChange({**given, "description": "New."}))
    assert done.applied == ["description"]


def test_a_value_that_equals_the_shown_one_has_its_type_too():
    me = owner()
    mine = draft(me, distribution={"pools": [{"name": "All", "percentage": 1}]})
    [pool] = listings.get_company(me, mine.slug).bundle["distribution"]["pools"]
    assert update(me, mine.slug, distribution={"pools": [pool]}).applied == []
    with pytest.raises(BadFields) as refusal:
        update(me, mine.slug, distribution={"pools": [{**pool, "percentage": True}]})
    assert faults(refusal) == [("distribution.pools[0].percentage", "must be a number, not true")]


def test_repeating_the_current_name_withdraws_a_pending_one():
    me = owner()
    mine = published(me, name="Tidal Works")
    assert update(me, mine.slug, name="Tidal Two").awaiting_review == ["name"]
    update(me, mine.slug, name="Tidal Works")
    assert not PendingChange.objects.filter(decision="").exists()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("linkedin", "socials.linkedin"),
        ("linkedIn", "socials.linkedin"),
        ("phoneNumber", "socials.phone_number"),
        ("vestingPeriod", "distribution.vestingPeriod"),
        ("descripton", "description"),
    ],
)
def test_a_member_that_is_given_beside_its_object_gets_its_path(given, meant):
    me = owner()
    with pytest.raises(BadFields) as refused:
        listings.update_company(me, published(me).slug, CompanyChange({given: "x"}))
    assert refused.value.hint.startswith(f"Did you mean {meant}? Editable fields: name, ")


@pytest.mark.parametrize("given", ["title", "percentage", "state"])
def test_a_member_of_rows_gets_no_path(given):
    me = owner()
    with pytest.raises(BadFields) as refused:
        listings.update_company(me, published(me).slug, CompanyChange({given: "x"}))
    assert refused.value.hint.startswith("Editable fields: name, ")


def test_each_fault_has_its_hint_and_a_hint_is_said_once():
    me = owner()
    people = [{"person": "Ada"}, {"person": "Bo"}]
    change = CompanyChange(status="sleeping", positions={"add": people}, treasury="lots")
    with pytest.raises(BadFields) as refused:
        listings.update_company(me, published(me).slug, change)
    assert refused.value.hint.count("list_company_form_options") == 1
    assert refused.value.hint.count("Send positions.add") == 2
