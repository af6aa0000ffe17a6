"""Long lists in the form of a listing: edited in pages, and nothing changes that was not touched."""

import json
import re
from urllib.parse import urlencode

import pytest

from make import registry as make
from make.accounts import account, signed_in
from make.pages import fields_of, valid
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import CapTableEntry, Company, HistoryEntry, Proposal
from services.items import without_ids

pytestmark = pytest.mark.django_db
SLUG = "kelp-exchange"
TEAM, TOKEN = (f"/manage/companies/{SLUG}/edit/{step}" for step in ("team", "token"))
STATUSES = ("active", "passed", "failed", "pending")
POSITIONS = [
    {"title": f"Steward {n % 7}", "person": {"name": f"Person {n}"}, "unit": f"Unit {n % 5}"} for n in range(1_355)
]
PROPOSALS = [
    {
        "id": str(n),
        "title": f"Proposal {n}",
        "status": STATUSES[n % 4],
        "votes": {"for": n + 0.5, "against": n, "abstain": 1},
        "createdAt": "2025-01-02",
    }
    for n in range(584)
]
HOLDERS = [
    {"address": f"0x{n:040}", "name": f"Holder {n}; Sons", "tokens": f"{n:,}", "percentage": n / 1e6}
    for n in range(5_000)
]


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def client(owner):
    return signed_in(owner)


def import_listing(owner, folder, positions, proposals, holders):
    """Import a listing with the first rows of each list, and give it to *owner*."""
    listing = {
        "company": {"id": SLUG, "name": "Kelp Exchange", "address": [{"city": "Port Ansel"}, {"city": "Skerry"}]},
        "distribution": {"method": "vote", "pools": [{"name": "Members", "percentage": 60, "note": "kept"}]},
        "positions": POSITIONS[:positions],
        "proposals": PROPOSALS[:proposals],
        "capTable": HOLDERS[:holders],
    }
    import_registry(make.lines(folder / "companies.jsonl", listing))
    listings.add_owner(make.reviewer(), SLUG, owner.pk)


@pytest.fixture
def listing(owner, tmp_path):
    import_listing(owner, tmp_path, 80, 40, 80)


@pytest.fixture
def long_listing(owner, tmp_path):
    import_listing(owner, tmp_path, 1_355, 584, 5_000)


def bundle():
    return make.document("company", SLUG)


def page_of(client, path, **query):
    answer = client.get(f"{path}?{urlencode({name.replace('_', '-'): value for name, value in query.items()})}")
    assert answer.status_code == 200
    html = answer.content.decode()
    valid(html)
    return answer.wsgi_request.get_full_path(), fields_of(html)


def named(fields, text):
    """Return the beginning of the names of the row that holds *text*."""
    return next(name for name, value in fields.items() if value == text).rpartition("-")[0]


def same_but(before, after, **parts):
    """Check that the listing changed in nothing but *parts*, which are given as they must be, with ids where stored."""
    for name, rows in parts.items():
        assert json.dumps(after[name][: len(rows)]) == json.dumps(rows), name
    rest = {"company", "distribution", "positions", "proposals", "capTable"} - parts.keys()
    changed = {"updatedAt", "teamSize"}
    for name in rest:
        left, right = ({k: v for k, v in each[name].items() if k not in changed} if name == "company" else each[name]
                       for each in (before, after))  # fmt: skip
        assert json.dumps(left) == json.dumps(right), name


@pytest.mark.whole(keeps=0)
def test_saving_every_page_of_a_long_list_unchanged_changes_nothing(client, long_listing):
    before, version = bundle(), Company.objects.get().version
    for path, query in (
        (TEAM, {}),
        (TEAM, {"positions_page": 55}),
        (TEAM, {"positions_q": "steward 3"}),
        (TOKEN, {}),
        (TOKEN, {"proposals_page": 24, "capTable_page": 200}),
        (TOKEN, {"capTable_q": "sons"}),
    ):
        address, fields = page_of(client, path, **query)
        assert len(fields) < 700
        saved = client.post(address, fields, follow=True)
        assert "No changes to save." in saved.content.decode()
    assert json.dumps(bundle()) == json.dumps(before)
    assert Company.objects.get().version == version
    assert not HistoryEntry.objects.filter(action="updated").exists()


def test_a_long_list_opens_when_its_rows_are_asked_for(client, listing):
    def is_open(query):
        html = client.get(TOKEN + query).content.decode()
        return [bool(found[1]) for found in re.finditer(r"<details( open)?><summary>[^<]*: Rows", html)]

    assert (is_open(""), is_open("?proposals-page=2"), is_open("?capTable-q=sons")) == (
        [False, False],
        [True, False],
        [False, True],
    )


def test_a_position_is_added_changed_and_removed_among_1355(client, owner, tmp_path):
    import_listing(owner, tmp_path, 1_355, 40, 80)
    before = bundle()
    address, fields = page_of(client, TEAM, positions_page=30)
    changed, removed = named(fields, "Person 730"), named(fields, "Person 740")
    blank = next(name for name in fields if name.startswith("positions-25-"))
    assert fields[blank] == ""
    fields |= {f"{changed}-title": "Chair", f"{removed}-remove": "yes", "positions-25-name": "Newcomer Reef"}
    saved = client.post(address, fields)
    assert saved["Location"] == f"{TEAM}?positions-page=55#positions"
    rows = [row for n, row in enumerate(before["positions"]) if n != 740]
    rows[730] = {**rows[730], "title": "Chair"}
    after = bundle()
    same_but(before, after, positions=rows)
    assert without_ids(after["positions"][1_354:]) == [{"person": {"name": "Newcomer Reef"}}]
    assert HistoryEntry.objects.filter(action="updated").count() == 1
    assert 'value="Newcomer Reef"' in client.get(saved["Location"]).content.decode()


def test_a_proposal_and_a_holder_are_added_changed_and_removed_in_one_save(client, owner, tmp_path):
    import_listing(owner, tmp_path, 80, 584, 5_000)
    before = bundle()
    address, fields = page_of(client, TOKEN, proposals_page=2, capTable_q="Holder 49")
    proposal, gone = named(fields, "Proposal 30"), named(fields, "Proposal 31")
    holder, left = (named(fields, f"Holder {n}; Sons") for n in (490, 4_900))
    fields |= {
        f"{proposal}-for": "1,000,000",
        f"{gone}-remove": "yes",
        "proposals-25-title": "Dredge the bar",
        f"{holder}-name": "Reef; Reef",
        f"{left}-remove": "yes",
        "capTable-25-name": "New; holder",
        "capTable-25-percentage": "0.25",
    }
    assert client.post(address, fields).status_code == 302
    proposals = [row for row in before["proposals"] if row["title"] != "Proposal 31"]
    proposals[30] = {**proposals[30], "votes": {**proposals[30]["votes"], "for": 1_000_000}}
    holders = [row for n, row in enumerate(before["capTable"]) if n != 4_900]
    holders[490] = {**holders[490], "name": "Reef; Reef"}
    after = bundle()
    same_but(before, after, proposals=proposals, capTable=holders)
    assert without_ids(after["proposals"][583:]) == [{"title": "Dredge the bar"}]
    assert without_ids(after["capTable"][4_999:]) == [{"name": "New; holder", "percentage": 0.25}]


def test_opening_another_page_saves_this_one_first(client, listing):
    address, fields = page_of(client, TEAM)
    going = f"{TEAM}?positions-page=2"
    moved = client.post(address, {**fields, "go": going})
    assert moved["Location"] == f"{going}#positions"
    assert "Saved." not in client.get(moved["Location"]).content.decode()
    address, fields = page_of(client, TEAM)
    moved = client.post(address, {**fields, "go": going, f"{named(fields, 'Person 3')}-title": "Chair"})
    assert "Saved." in client.get(moved["Location"]).content.decode()
    assert bundle()["positions"][3]["title"] == "Chair"


def test_what_was_typed_stays_with_its_fault_when_another_page_was_asked_for(client, listing):
    address, fields = page_of(client, TOKEN, capTable_page=3)
    row = named(fields, "Holder 60; Sons")
    typed = {f"{row}-percentage": "half", "capTable-25-name": "Newcomer", "go": f"{TOKEN}?capTable-page=4"}
    before = bundle()
    answer = client.post(address, {**fields, **typed})
    html = answer.content.decode()
    tree = valid(html)
    assert answer.status_code == 422
    field = next(each for each in tree.iter("input") if each.get("value") == "half")
    fault = next(each for each in tree.iter("ul") if each.get("id") == field.get("aria-describedby"))
    assert "Must be a number" in "".join(fault.itertext())
    assert 'value="Newcomer"' in html
    assert bundle() == before
    again = fields_of(html) | {field.get("name"): "2"}
    assert client.post(address, again).status_code == 302
    after = bundle()["capTable"]
    assert (after[60]["percentage"], after[80]["name"]) == (2, "Newcomer")


def test_a_search_saves_what_was_typed_and_shows_the_rows_that_match(client, listing):
    address, fields = page_of(client, TEAM)
    typed = {f"{named(fields, 'Person 7')}-title": "Chair", "positions-q": "person 1"}
    found = client.post(address, {**fields, **typed, "go": address})
    assert found["Location"] == f"{TEAM}?positions-q=person+1#positions"
    html = client.get(found["Location"]).content.decode()
    assert "Rows 1 to 11 of 11 that match, of 80 in all." in html
    assert bundle()["positions"][7]["title"] == "Chair"
    shown = client.post(found["Location"].partition("#")[0], {**fields_of(html), "positions-q": ""})
    assert shown["Location"] == f"{TEAM}#positions"


def test_an_edit_of_a_row_that_changed_meanwhile_is_compared_first(client, listing, owner):
    address, fields = page_of(client, TEAM)
    row, other = named(fields, "Person 3"), bundle()["positions"]
    theirs = {"set": [{"id": other[3]["id"], "title": "Theirs"}, {"id": other[4]["id"], "title": "Theirs too"}]}
    listings.update_company(owner.actor("web"), SLUG, CompanyChange(positions=theirs))
    answer = client.post(address, {**fields, f"{row}-title": "Mine"})
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "This listing changed while you were editing." in html
    assert "79 unchanged rows" in html
    assert html.count("Theirs too") == 1, "the row that was not touched is shown as it is now"
    assert client.post(address, fields_of(html)).status_code == 302
    assert [each["title"] for each in bundle()["positions"][3:5]] == ["Mine", "Theirs too"]


def test_an_edit_of_a_row_that_was_removed_meanwhile_is_asked_about(client, listing, owner):
    address, fields = page_of(client, TEAM)
    gone = bundle()["positions"][3]["id"]
    listings.update_company(owner.actor("web"), SLUG, CompanyChange(positions={"remove": [gone]}))
    answer = client.post(address, {**fields, f"{named(fields, 'Person 3')}-title": "Mine"})
    assert answer.status_code == 422
    assert "This row was removed in the meantime." in answer.content.decode()
    assert len(bundle()["positions"]) == 79


def test_a_fault_does_not_hide_an_edit_that_came_between(client, listing, owner):
    address, fields = page_of(client, TOKEN)
    theirs = {"set": [{"id": bundle()["capTable"][0]["id"], "percentage": 3}]}
    listings.update_company(owner.actor("web"), SLUG, CompanyChange(capTable=theirs))
    wrong = client.post(address, {**fields, "capTable-0-percentage": "half"})
    assert wrong.status_code == 422
    between = client.post(address, {**fields_of(wrong.content.decode()), "capTable-0-percentage": "1"})
    assert between.status_code == 409
    assert bundle()["capTable"][0]["percentage"] == 3
    assert client.post(address, fields_of(between.content.decode())).status_code == 302
    assert bundle()["capTable"][0]["percentage"] == 1


def test_members_that_the_form_does_not_show_stay(client, listing):
    address, fields = page_of(client, TOKEN)
    assert client.post(address, {**fields, "pools-0-percentage": "61"}).status_code == 302
    assert without_ids(bundle()["distribution"]["pools"]) == [{"name": "Members", "percentage": 61, "note": "kept"}]
    address, fields = page_of(client, TEAM)
    assert client.post(address, {**fields, "address-1-zip": "0042"}).status_code == 302
    assert [place["zip"] for place in bundle()["company"]["address"]] == [None, "0042"]


def test_a_stored_name_with_a_line_break_stays_until_it_is_touched(client, listing):
    entry = CapTableEntry.objects.get(company__slug=SLUG, rank=3)
    entry.document |= {"name": "Smith; Sons\r\nand daughters", "origin": "paper"}
    entry.save()
    address, fields = page_of(client, TOKEN)
    row = named(fields, "Smith; Sons\r\nand daughters")
    assert "No changes to save." in client.post(address, fields, follow=True).content.decode()
    assert client.post(address, {**fields, "once": "", f"{row}-tokens": "17"}).status_code == 302
    assert bundle()["capTable"][3] == {**entry.document, "tokens": "17"}
    address, fields = page_of(client, TOKEN)
    touched = client.post(address, {**fields, f"{row}-name": "Smith; Sons\r\nand sisters"})
    assert touched.status_code == 422
    assert bundle()["capTable"][3]["name"] == entry.document["name"]


def test_rows_that_share_an_id_are_told_apart_when_one_is_edited(client, listing):
    for rank in (4, 5, 6):
        row = Proposal.objects.get(company__slug=SLUG, rank=rank)
        row.document |= {"id": "3"}
        row.save()
    stored = [row.document for row in Proposal.objects.filter(company__slug=SLUG).order_by("rank")]
    address, fields = page_of(client, TOKEN)
    assert "No changes to save." in client.post(address, fields, follow=True).content.decode()
    typed = {"once": "", "proposals-4-title": "Renamed", "proposals-6-remove": "yes", "proposals-8-for": "7"}
    assert client.post(address, {**fields, **typed}).status_code == 302
    stored[4] |= {"title": "Renamed"}
    stored[8]["votes"] |= {"for": 7}
    after = bundle()["proposals"]
    assert without_ids(after) == [
        {name: value for name, value in row.items() if name != "id"} for n, row in enumerate(stored) if n != 6
    ]
    assert [row["id"] for row in after[:4]] == ["0", "1", "2", "3"]


def test_only_the_rows_that_a_script_sends_are_needed(client, listing):
    before = bundle()
    address, fields = page_of(client, TEAM, positions_page=2)
    row = named(fields, "Person 30")
    sent = {name: value for name, value in fields.items() if name.startswith(f"{row}-") or name in {"version", "once"}}
    assert client.post(address, {**sent, f"{row}-title": "Chair"}).status_code == 302
    rows = list(before["positions"])
    rows[30] = {**rows[30], "title": "Chair"}
    same_but(before, bundle(), positions=rows)


def test_the_history_of_a_long_list_shows_the_rows_that_changed(client, listing):
    address, fields = page_of(client, TEAM)
    client.post(address, {**fields, f"{named(fields, 'Person 3')}-title": "Chair"})
    html = client.get(f"/manage/companies/{SLUG}/history").content.decode()
    assert "Person 3, <ins>Chair</ins>" in html or "Chair" in html
    assert "Person 7" not in html


def test_funding_rounds_are_rows_too(client, listing):
    address, fields = page_of(client, TOKEN)
    seed = {
        "fundingRounds-0-name": "Seed",
        "fundingRounds-0-target": "$1,249,999.99",
        "fundingRounds-0-opened": "2024-01-31",
    }
    assert client.post(address, {**fields, **seed, "fundingRounds-0-closed": "2024-06-30"}).status_code == 302
    address, fields = page_of(client, TOKEN)
    assert "No changes to save." in client.post(address, fields, follow=True).content.decode()
    before = bundle()["fundingRounds"]
    address, fields = page_of(client, TOKEN)
    early = client.post(address, {**fields, "fundingRounds-0-closed": "2023-01-01"})
    assert early.status_code == 422
    field = next(each for each in valid(early.content.decode()).iter("input") if each.get("value") == "2023-01-01")
    assert field.get("aria-invalid") == "true"
    assert client.post(address, {**fields, "fundingRounds-0-name": "Seed round"}).status_code == 302
    assert bundle()["fundingRounds"] == [{**before[0], "name": "Seed round"}]
    assert before[0]["target"] == "$1249999.99"
