"""Values stored before a rule stay served and editable; what an edit touches must follow the rules."""

import pytest

from make.registry import document, draft, owner, published, reviewer
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.models import CapTableEntry, Company, HistoryEntry, Person, Proposal
from muniment.registry.people import profiles
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry.review import claims, workflow
from muniment.registry.review.values import all_broken_values, broken_values
from muniment.schema.company import MAX_OBJECT_BYTES

pytestmark = pytest.mark.django_db

FACTS = {
    "website": "javascript:alert(1)",
    "symbol": "H\u202eB",
    "description": "x" * 2_001,
    "themes": ["a", "a", ""],
    "socials": {"email": "nope", "twitter": "javascript:alert(1)"},
}
POOLS = [{"id": "p1", "name": "A", "percentage": 60}, {"id": "p2", "name": "B", "percentage": 70}]
PROPOSALS = [
    {"id": "1", "title": "Piers", "votes": {"for": -5, "against": 1}, "endDate": "next week"},
    {"id": "1", "title": "Dykes\n", "votes": {"for": 1}},
]
HOLDERS = [{"id": "h1", "name": "Whale", "percentage": 70}, {"id": "h2", "name": "Shoal", "percentage": 60}]


@pytest.fixture
def me():
    return owner()


@pytest.fixture
def mine(me):
    """Return a listing whose values came before the rules."""
    made = published(me, type="DAO")
    company = Company.objects.get(slug=made.slug)
    everything = dict.fromkeys(("phone_number", "facebook", "instagram", "tiktok", "linkedin", "youtube"))
    socials = {**everything, **FACTS["socials"]}
    facts = {**FACTS, "socials": socials, "distribution": {"method": "vote", "pools": POOLS}}
    Company.objects.filter(pk=company.pk).update(**facts)
    for table, rows in ((Proposal, PROPOSALS), (CapTableEntry, HOLDERS)):
        table.objects.bulk_create([table(company=company, rank=n, document=row) for n, row in enumerate(rows)])
    publish(AffectedRows().company(company.pk))
    return listings.get_company(me, made.slug)


def update(me, mine, **change):
    return listings.update_company(me, mine.slug, CompanyChange(change))


def refused(me, mine, **change):
    with pytest.raises(BadFields) as refusal:
        update(me, mine, **change)
    return [f"{fault.field} {fault.reason}" for fault in refusal.value.faults]


def stored(mine, table):
    return list(table.objects.filter(company__slug=mine.slug).order_by("rank").values_list("document", flat=True))


def shown(mine):
    found = document("company", mine.slug)
    return {**found["company"], **{name: found[name] for name in ("distribution", "proposals", "capTable")}}


def test_what_was_stored_before_the_rules_is_served(mine):
    found = shown(mine)
    assert {name: found[name] for name in ("website", "symbol", "themes")} == {
        name: FACTS[name] for name in ("website", "symbol", "themes")
    }
    assert (found["proposals"], found["capTable"]) == (PROPOSALS, HOLDERS)


def test_writing_back_what_was_read_is_accepted_and_changes_nothing(me, mine):
    before, entries = shown(mine), HistoryEntry.objects.count()
    names = ("website", "symbol", "description", "themes", "socials", "distribution", "proposals", "capTable")
    done = update(me, mine, **{name: before[name] for name in names})
    assert (done.applied, done.awaiting_review, done.version) == ([], [], mine.version)
    assert (shown(mine), HistoryEntry.objects.count()) == (before, entries)


def test_an_edit_of_something_else_is_accepted_and_leaves_the_old_values(me, mine):
    before = shown(mine)
    update(me, mine, industry="Water", socials={"facebook": "tidal"}, distribution={"method": "airdrop"})
    after = shown(mine)
    assert (after["industry"], after["socials"]["facebook"]) == ("Water", "tidal")
    assert after["socials"]["twitter"] == before["socials"]["twitter"]
    assert after["distribution"] == {"method": "airdrop", "pools": POOLS}


def test_an_edit_that_touches_an_old_value_must_correct_it(me, mine):
    found = refused(
        me,
        mine,
        website="javascript:alert(2)",
        description="y" * 2_001,
        themes=["a", "a"],
        socials={"email": "nope again"},
    )
    assert [each.split(" ")[0] for each in found] == ["description", "website", "themes[1]", "socials.email"]
    update(me, mine, website="https://tidal.example", themes=["a"], socials={"email": "a@tidal.example"})
    assert shown(mine)["website"] == "https://tidal.example"


def test_a_new_symbol_for_review_follows_the_rules_too(me, mine):
    assert refused(me, mine, symbol="H\u202eC") == ["symbol contains the bidirectional character U+202E"]


def test_a_list_is_judged_row_by_row(me, mine):
    first, second = PROPOSALS
    update(me, mine, proposals=[first, second, {"title": "Locks", "votes": {"for": 1}}])
    assert shown(mine)["proposals"][:2] == PROPOSALS
    whole = shown(mine)["proposals"]
    found = refused(me, mine, proposals=[{**first, "status": "passed"}, *whole[1:]])
    assert found == [
        "proposals[0].votes.for must be at least 0, not -5",
        "proposals[0].endDate must be a date such as 2024-03-31, not 'next week'",
    ]


def test_a_row_that_is_named_by_its_id_is_judged_by_its_changed_members(me, mine):
    rows = [{"id": f"x{n}", "title": f"Vote {n}", "votes": {"for": -1}, "endDate": "soon"} for n in range(3)]
    company = Company.objects.get(slug=mine.slug)
    Proposal.objects.filter(company=company).delete()
    Proposal.objects.bulk_create([Proposal(company=company, rank=n, document=row) for n, row in enumerate(rows)])
    update(me, mine, proposals={"set": [{"id": "x1", "title": "Renamed", "votes": {"against": 4}}]})
    assert shown(mine)["proposals"][1] == {**rows[1], "title": "Renamed", "votes": {"for": -1, "against": 4}}
    wrong = {"set": [{"id": "x2", "endDate": "later"}], "add": [{"title": "New", "votes": {"against": -2}}]}
    assert refused(me, mine, proposals=wrong) == [
        "proposals.set[0].endDate must be a date such as 2024-03-31, not 'later'",
        "proposals.add[0].votes.against must be at least 0, not -2",
    ]
    update(me, mine, proposals={"remove": ["x0"]})
    assert [row["id"] for row in shown(mine)["proposals"]] == ["x1", "x2"]


def test_shares_are_added_up_after_the_operations(me, mine):
    too_many = ["capTable has shares that add up to 140 %; at most 100 % are allowed"]
    assert refused(me, mine, capTable={"add": [{"name": "Minnow", "percentage": 10}]}) == too_many
    update(me, mine, capTable={"set": [{"id": "h1", "name": "Blue whale"}], "add": [{"name": "Unknown"}]})
    update(me, mine, capTable={"set": [{"id": "h1", "percentage": 30}], "add": [{"name": "Minnow", "percentage": 10}]})
    assert [row.get("percentage") for row in shown(mine)["capTable"]] == [30, 60, None, 10]
    over = {"pools": {"add": [{"name": "C", "percentage": 1}]}}
    assert refused(me, mine, distribution=over) == [
        "distribution.pools has shares that add up to 131 %; at most 100 % are allowed"
    ]


def test_removing_rows_of_shares_that_are_too_many_is_accepted(me, mine):
    update(me, mine, capTable={"add": [{"name": "Silent"}], "remove": ["h2"]})
    assert [row["name"] for row in shown(mine)["capTable"]] == ["Whale", "Silent"]


def test_an_id_may_stay_double_but_does_not_become_so(me, mine):
    assert refused(me, mine, proposals=[*PROPOSALS, {"id": "1", "title": "Third"}]) == [
        "proposals[2].id '1' is also the id of another row"
    ]
    rows = shown(mine)["proposals"]
    update(me, mine, proposals=[rows[0], {"id": "2", "title": "Dykes"}])
    assert [row["id"] for row in shown(mine)["proposals"]] == ["1", "2"]


def test_a_company_object_does_not_grow_without_end(me, mine):
    filler = {f"note{n}": "x" * 60_000 for n in range(4)}
    update(me, mine, distribution=filler)
    (fault,) = refused(me, mine, distribution={"note4": "x" * 60_000})
    assert fault.startswith("company has 30")
    assert fault.endswith("with its distribution; at most 262,144 are allowed")


def test_an_object_that_an_import_brought_too_large_is_edited_and_may_shrink(me, mine):
    Company.objects.filter(slug=mine.slug).update(extra={"more": "x" * MAX_OBJECT_BYTES})
    update(me, mine, description="Short.")
    assert shown(mine)["description"] == "Short."
    assert refused(me, mine, description="Longer.")[0].startswith("company has 26")


def test_a_row_and_a_listing_have_a_size(me):
    mine = draft(me)
    assert refused(me, mine, proposals=[{"title": "A", "text": "x" * 4_096}]) == [
        "proposals[0] has 4,135 bytes; at most 4,096 are allowed"
    ]
    rows = [{"id": str(n), "title": f"Vote {n}", "text": "x" * 3_000} for n in range(1_000)]
    update(me, mine, proposals=rows)
    more = [{"name": f"Holder {n}", "note": "x" * 3_000} for n in range(60)]
    (fault,) = refused(me, mine, capTable=more)
    assert fault.startswith("listing has 3,")
    assert fault.endswith("bytes with all its parts; at most 3,145,728 are allowed")
    update(me, mine, proposals={"set": [{"id": "7", "title": "Renamed"}], "remove": ["9"]})


def test_a_list_has_a_number_of_rows_and_more_stay_editable(me):
    mine = draft(me)
    company = Company.objects.get(slug=mine.slug)
    rows = [{"id": str(n), "title": f"Vote {n}"} for n in range(2_001)]
    Proposal.objects.bulk_create([Proposal(company=company, rank=n, document=row) for n, row in enumerate(rows)])
    assert refused(me, mine, proposals={"add": [{"title": "One more"}]}) == [
        "proposals has 2,002 entries; at most 2,000 are allowed"
    ]
    update(me, mine, proposals={"set": [{"id": "3", "title": "Renamed"}]})
    update(me, mine, proposals={"add": [{"title": "Instead"}], "remove": ["4"]})
    assert update(me, mine, proposals=stored(mine, Proposal)).applied == []


def test_a_change_that_waits_is_judged_when_a_reviewer_approves_it(me, mine):
    update(me, mine, name="Tidal Works")
    waiting = Company.objects.get(slug=mine.slug).pending_changes.get()
    waiting.changes = {"name": "Tidal\u202eWorks"}
    waiting.save()
    with pytest.raises(BadFields, match="bidirectional character"):
        workflow.decide_change(reviewer(), waiting.pk, approve=True)
    workflow.decide_change(reviewer(), waiting.pk, approve=False, note="Plain text only.")


def test_a_suggestion_follows_the_rules(me, mine):
    with pytest.raises(BadFields, match="website must be a web address"):
        claims.suggest_edit(owner(), mine.slug, CompanyChange(website="ftp://tidal.example"), "A new site.")


def test_a_draft_and_a_profile_follow_the_rules(me):
    with pytest.raises(BadFields, match="name contains the control character"):
        draft(me, name="Har\nbour")
    with pytest.raises(BadFields, match="name contains the bidirectional character"):
        profiles.create_profile(me, profiles.ProfileChange(name="Ada \u202eMoss"))
    profiles.create_profile(me, profiles.ProfileChange(name="Ada Moss"))
    Person.objects.filter(account_id=me.account_id).update(name="Ada \u202eMoss")
    profiles.update_profile(me, profiles.ProfileChange(name="Ada \u202eMoss", bio="Builds dykes."))
    with pytest.raises(BadFields, match="name contains the bidirectional character"):
        profiles.update_profile(me, profiles.ProfileChange(name="Ada \u202eReef"))


def test_reverting_to_a_value_that_breaks_a_rule_is_refused(me, mine):
    update(me, mine, website="https://tidal.example")
    entry = HistoryEntry.objects.filter(company__slug=mine.slug).latest("pk")
    assert entry.before == {"website": FACTS["website"]}
    with pytest.raises(BadFields, match="website must be a web address"):
        listings.revert_company(me, mine.slug, entry.pk)


def test_what_breaks_a_rule_is_listed(me, mine):
    expected = [
        *("symbol", "themes[1]", "themes[2]", "description", "website", "socials.email", "socials.twitter"),
        *("distribution.pools", "proposals[0].votes.for", "proposals[0].endDate", "proposals[1].title"),
        *("proposals[1].id", "capTable"),
    ]
    assert [fault.field for fault in broken_values(listings.get_company(me, mine.slug).bundle)] == expected
    Person.objects.create(slug="ada", name="Ada \u202eMoss")
    found = list(all_broken_values())
    assert [fault.field for of, fault in found if of == f"companies/{mine.slug}"] == expected
    assert [(of, fault.field) for of, fault in found if of.startswith("people/")] == [("people/ada", "name")]


def test_funding_rounds_follow_the_rules(me):
    mine = draft(me)
    wrong = {"name": "Se\u202eed", "opened": "0001-01-01"}
    expected = [
        "name contains the bidirectional character U+202E",
        "opened must be a date such as 2024-03-31, not '0001-01-01'",
    ]
    assert refused(me, mine, fundingRound=wrong) == [f"fundingRound.{each}" for each in expected]
    assert refused(me, mine, fundingRounds={"add": [wrong]}) == [f"fundingRounds.add[0].{each}" for each in expected]
