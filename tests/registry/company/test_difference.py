"""A listing that is written back as it was read stays as it is: rounded, derived and irregular values too."""

import msgspec
import pytest
from django.conf import settings

from make.registry import document, draft, lines, owner, published
from muniment.kernel.actor import COMMAND
from muniment.registry.company import operations
from muniment.registry.company.company_change import BadFields, CompanyChange
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, HistoryEntry, PendingChange

pytestmark = pytest.mark.django_db
EXACT = {"amount": "1249999.99", "currency": "USD"}


def update(me, slug, **change):
    return operations.update_company(me, slug, CompanyChange(change))


def facts(me, slug):
    return operations.get_company(me, slug).bundle["company"]


def faults(refusal):
    return [(fault.field, fault.reason) for fault in refusal.value.faults]


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
    operations.revert_company(me, mine.slug, entry.pk)
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
    done = operations.update_company(
        me, mine.slug, CompanyChange(positions=[], teamSize=9), expected_totals={"positions": 3}
    )
    assert done.applied == ["teamSize", "positions"]
    assert facts(me, mine.slug)["teamSize"] == 9


@pytest.mark.requirement("owners.exact")
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
    shown = msgspec.json.decode(msgspec.json.encode(operations.get_company(COMMAND, "acme").bundle))
    given = {
        name: value
        for name, value in {**shown["company"], **shown}.items()
        if name in settings.SCHEMA.company_change.by_name
    }
    assert {"teamSize", "treasuryAmount", "address", "distribution", "positions", "capTable"} <= given.keys()
    done = operations.update_company(COMMAND, "acme", CompanyChange(given), expected_version=stored.version)
    assert (done.applied, done.awaiting_review, done.version) == ([], [], stored.version)
    assert document("company", "acme") == before
    assert HistoryEntry.objects.filter(company=stored).count() == 1
    done = operations.update_company(COMMAND, "acme", CompanyChange({**given, "description": "New."}))
    assert done.applied == ["description"]


def test_a_value_that_equals_the_shown_one_has_its_type_too():
    me = owner()
    mine = draft(me, distribution={"pools": [{"name": "All", "percentage": 1}]})
    [pool] = operations.get_company(me, mine.slug).bundle["distribution"]["pools"]
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
