"""History in compact form: it is small, and every entry reverts to the whole values before it."""

from typing import Any

import msgspec
import pytest

from make.registry import draft, lines, link_names, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.problems import BadRequest, NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import add_owner, compare
from muniment.registry.exchange.importer import import_registry
from muniment.registry.history import LaterChanges
from muniment.registry.models import CapTableEntry, Company, HistoryEntry, Person
from muniment.registry.own_data import PART
from muniment.registry.people.erasing import erase_person
from muniment.registry.people.moderation import merge_people

pytestmark = pytest.mark.django_db

FIELDS = ("positions", "proposals", "capTable", "fundingRounds", "distribution", "socials", "address", "description")
TEAM = [{"title": f"Post {n}", "person": {"name": f"Person {n}", "isNew": True}} for n in range(5)]
HOLDERS = [{"name": f"Holder {n}", "address": f"0x{n}", "percentage": n / 10} for n in range(8)]


@pytest.fixture
def me():
    return owner()


@pytest.fixture
def mine(me):
    return published(
        me,
        description="Keeps the quay.",
        positions=TEAM,
        proposals=[{"id": str(n), "title": f"Vote {n}", "votes": {"for": n}} for n in range(4)],
        capTable=HOLDERS,
        distribution={"method": "sale", "details": "All.", "pools": [{"name": "A", "percentage": 10}]},
        socials={"twitter": "@quay", "email": "quay@example.org"},
        address=[{"city": "Port"}, {"city": "Bay"}],
    )


def now(slug: str) -> dict[str, Any]:
    """Return the present values of a listing in the form of the history."""
    values = compare(Company.objects.get(slug=slug), dict.fromkeys(FIELDS), replace=True).before
    return {name: values.get(name) for name in FIELDS}


def ids(slug: str, name: str) -> list[str]:
    return [row["id"] for row in now(slug)[name]]


def size_of(entry: HistoryEntry) -> int:
    return len(msgspec.json.encode([entry.before, entry.after, entry.parts, entry.changed]))


def edits(slug: str) -> list[dict[str, Any]]:
    """Return edits of every list and object, each of which depends on the present rows."""
    holders, team, votes = (ids(slug, name) for name in ("capTable", "positions", "proposals"))
    rows = {row["id"]: row for row in now(slug)["capTable"]}
    return [
        {"capTable": {"set": [{"id": holders[3], "percentage": 1}]}},
        {"capTable": {"add": [{"name": "New"}], "remove": [holders[0], holders[1]]}},
        {"capTable": [rows[each] for each in (holders[5], *holders[2:5], *holders[6:])], "description": "Changed."},
        {"positions": {"remove": [team[0]], "set": [{"id": team[2], "title": "Chief"}]}},
        {"proposals": {"set": [{"id": votes[1], "votes": {"against": 3}}], "remove": [votes[2]]}},
        {"distribution": {"details": None, "vesting": {"years": 4, "cliff": 1}}},
        {"distribution": {"pools": {"add": [{"name": "B", "percentage": 5}]}, "method": "airdrop"}},
        {"fundingRound": {"name": "Seed", "opened": "2025-01-01"}},
        {"fundingRounds": {"add": [{"name": "Pre", "opened": "2023-01-01", "closed": "2024-01-01"}]}},
        {"fundingRound": {"closed": "2026-01-01"}},
        {"socials": {"twitter": None, "youtube": "https://youtube.example/quay"}},
        {"address": {"add": [{"city": "Dock"}], "remove": [ids(slug, "address")[0]]}},
        {"capTable": {"add": [{"name": "Last"}]}},
    ]


def make_edits(me, slug: str) -> list[tuple[HistoryEntry, dict[str, Any]]]:
    """Make all edits; return their entries, each with the values before it."""
    found = []
    for change in edits(slug):
        before = now(slug)
        totals = {name: len(before[name]) for name in change if isinstance(change[name], list)}
        listings.update_company(me, slug, CompanyChange(change), expected_totals=totals)
        found.append((HistoryEntry.objects.latest("pk"), before))
    return found


def reverted(me, slug: str, entry: HistoryEntry, **options: Any) -> dict[str, Any]:
    """Return the values that reverting *entry* would write."""
    done = listings.revert_company(me, slug, entry.pk, overwrite=True, dry_run=True, **options)
    after = now(slug) | {name: sides["after"] for name, sides in done.diff.items()}
    return {name: after[name] for name in entry.before if name in FIELDS}


def expected(entry: HistoryEntry, before: dict[str, Any]) -> dict[str, Any]:
    return {name: before[name] for name in entry.before if name in FIELDS}


def test_every_entry_reverts_to_the_whole_values_before_it(me, mine):
    made = make_edits(me, mine.slug)
    assert any(entry.parts for entry, _ in made)
    for entry, before in made:
        if entry.action == "updated" and set(entry.before) - {"fundingRound"}:
            assert reverted(me, mine.slug, entry) == expected(entry, before)


def test_undoing_everything_from_the_end_leads_back_to_the_first_values(me, mine):
    first = now(mine.slug)
    made = make_edits(me, mine.slug)
    for entry, before in reversed(made):
        if set(entry.before) - {"fundingRound"}:
            listings.revert_company(me, mine.slug, entry.pk, overwrite=True)
            assert expected(entry, now(mine.slug)) == expected(entry, before)
    assert {**now(mine.slug), "fundingRounds": None} == {**first, "fundingRounds": None}
    again = HistoryEntry.objects.filter(action="reverted").latest("pk")
    assert reverted(me, mine.slug, again).keys() == again.before.keys()


def test_later_changes_of_the_same_field_are_named_and_replaced_only_when_told(me, mine):
    made = make_edits(me, mine.slug)
    entry, before = made[0]
    with pytest.raises(LaterChanges) as conflict:
        listings.revert_company(me, mine.slug, entry.pk)
    assert conflict.value.fields == ["capTable"]
    listings.revert_company(me, mine.slug, entry.pk, overwrite=True)
    assert now(mine.slug)["capTable"] == before["capTable"]
    assert now(mine.slug)["description"] == "Changed."


def test_reverts_after_a_merge_of_two_people_restore_what_they_restored_before(me, mine):
    link_names(mine.slug)
    team = ids(mine.slug, "positions")
    listings.update_company(me, mine.slug, CompanyChange(positions={"set": [{"id": team[1], "title": "Post 0"}]}))
    entry, before = HistoryEntry.objects.latest("pk"), now(mine.slug)
    slugs = [row["person"]["slug"] for row in before["positions"]]
    merge_people(reviewer(), slugs[1], slugs[0])
    merged = HistoryEntry.objects.get(company__slug=mine.slug, action="person merged")
    assert [row["id"] for row in merged.before["positions"]] == [team[1]]
    assert [row["id"] for row in now(mine.slug)["positions"]] == [team[0], *team[2:]]
    found = reverted(me, mine.slug, entry)["positions"]
    assert [(row["id"], row["title"], row["person"]["slug"]) for row in found[:2]] == [
        (team[0], "Post 0", slugs[0]),
        (team[1], "Post 1", slugs[0]),
    ]
    with pytest.raises(BadRequest, match="no change that can be reverted"):
        listings.revert_company(me, mine.slug, merged.pk)


def test_reverts_after_an_erasure_lack_the_person_alone(me, mine):
    link_names(mine.slug)
    team = ids(mine.slug, "positions")
    for change in ({"remove": [team[3]]}, {"remove": [team[1]]}, {"set": [{"id": team[4], "title": "Chief"}]}):
        before = now(mine.slug)["positions"]
        listings.update_company(me, mine.slug, CompanyChange(positions=change))
    first = HistoryEntry.objects.filter(action="updated").order_by("pk")[0]
    erase_person(reviewer(), Person.objects.get(name="Person 2").slug)
    assert [row["id"] for row in reverted(me, mine.slug, first)["positions"]] == [team[n] for n in (0, 1, 3, 4)]
    assert before[0]["id"] == team[0]


def test_an_erased_person_leaves_the_places_of_rows_too(me, mine):
    link_names(mine.slug)
    team = ids(mine.slug, "positions")
    listings.update_company(me, mine.slug, CompanyChange(positions={"remove": team[1:3]}))
    entry = HistoryEntry.objects.latest("pk")
    assert entry.parts["positions"]["from"] == [[team[0], team[3], 1, team[1], team[2]]]
    erase_person(reviewer(), Person.objects.get(name="Person 1").slug)
    entry.refresh_from_db()
    assert entry.parts["positions"]["from"] == [[team[0], team[3], 1, team[2]]]
    assert [row["id"] for row in entry.before["positions"]] == [team[2]]
    erase_person(reviewer(), Person.objects.get(name="Person 2").slug)
    entry.refresh_from_db()
    assert (entry.before, entry.after, entry.parts, entry.changed) == ({}, {}, None, [])


def test_one_row_of_ten_thousand_writes_a_few_hundred_bytes(me):
    mine = draft(me)
    company = Company.objects.get(slug=mine.slug)
    rows = [{"id": f"h{n}", "name": f"Holder number {n}", "address": f"0x{n:040x}"} for n in range(10_000)]
    CapTableEntry.objects.bulk_create([CapTableEntry(company=company, rank=n, document=d) for n, d in enumerate(rows)])
    for change in (
        {"set": [{"id": "h5000", "percentage": 0.5}]},
        {"remove": ["h77"]},
        {"add": [{"name": "One more"}]},
        [rows[9], *(row for row in rows if row["id"] not in {"h9", "h77", "h5000"})],
    ):
        totals = {"capTable": company.cap_table.count()} if isinstance(change, list) else None
        listings.update_company(me, mine.slug, CompanyChange(capTable=change), expected_totals=totals)
        assert size_of(HistoryEntry.objects.latest("pk")) < 600


def test_one_member_of_a_large_object_writes_a_few_hundred_bytes(me):
    mine = draft(me, distribution={f"note{n}": "x" * 40_000 for n in range(5)})
    listings.update_company(me, mine.slug, CompanyChange(distribution={"method": "sale"}))
    entry = HistoryEntry.objects.latest("pk")
    assert (entry.before, entry.after) == ({"distribution": {}}, {"distribution": {"method": "sale"}})
    assert size_of(entry) < 200


def test_an_import_writes_the_changed_rows_alone(tmp_path):
    company = {"id": "quay", "slug": "quay", "name": "Quay"}
    rows = [{"name": f"Holder {n}", "address": f"0x{n}", "percentage": 0.001} for n in range(2_000)]
    import_registry(lines(tmp_path / "companies.jsonl", {"company": company, "capTable": rows}))
    rows[7] = {**rows[7], "percentage": 0.002}
    import_registry(lines(tmp_path / "companies.jsonl", {"company": company, "capTable": rows}))
    entry = HistoryEntry.objects.latest("pk")
    assert [row["address"] for row in entry.after["capTable"]] == ["0x7"]
    assert size_of(entry) < 600


def test_an_import_recognizes_edits_of_single_rows(tmp_path, me):
    company = {"id": "quay", "slug": "quay", "name": "Quay"}
    rows = [{"id": f"h{n}", "name": f"Holder {n}", "percentage": n} for n in range(6)]
    distribution = {"method": "sale", "details": "Of the file."}
    row = {"company": company, "capTable": rows, "distribution": distribution}
    import_registry(lines(tmp_path / "companies.jsonl", row))
    add_owner(reviewer(), "quay", me.account_id)
    for change in (
        {"capTable": {"set": [{"id": "h1", "percentage": 50}]}},
        {"capTable": {"remove": ["h4"]}},
        {"capTable": {"set": [{"id": "h1", "percentage": 60}]}},
        {"distribution": {"schedule": "Of the owner."}},
        {"distribution": {"schedule": None}},
    ):
        listings.update_company(me, "quay", CompanyChange(change))
    row["capTable"] = [{**each, "name": each["name"].upper()} for each in rows]
    row["distribution"] = {**distribution, "details": "Of the next file."}
    import_registry(lines(tmp_path / "companies.jsonl", row))
    found = [(each["id"], each["name"], each["percentage"]) for each in now("quay")["capTable"]]
    assert found == [
        ("h0", "HOLDER 0", 0),
        ("h1", "Holder 1", 60),
        ("h2", "HOLDER 2", 2),
        ("h3", "HOLDER 3", 3),
        ("h5", "HOLDER 5", 5),
    ]
    assert now("quay")["distribution"]["details"] == "Of the next file."


def test_the_account_export_has_the_changed_rows_and_their_places(me, mine):
    made = make_edits(me, mine.slug)
    files = {each.path: each.content for each in PART.export(Account.objects.get(pk=me.account_id))}
    changes = [each for each in files["changes.json"] if each["action"] == "updated"]
    assert [(each["before"], each["after"], each.get("parts")) for each in changes] == [
        (entry.before, entry.after, entry.parts) for entry, _ in made
    ]


def test_a_stranger_reverts_nothing(me, mine):
    made = make_edits(me, mine.slug)
    before = now(mine.slug)
    with pytest.raises(NotFound):
        listings.revert_company(owner(), mine.slug, made[0][0].pk, overwrite=True)
    assert now(mine.slug) == before
