"""Long lists of companies in files of their own: what is imported, what is said of bad rows, what is exported."""

import gzip
import json

import pytest

from make.registry import bring, document, lines, owner, published, reviewer
from make.spreadsheets import zipped
from muniment.accounts.models import Account
from muniment.kernel.problems import BadRequest
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange import exporter, json_lines, list_files
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.imports.undoing import undo_import
from muniment.registry.models import Company, GivenSlug, HistoryEntry, ImportRun, Person
from muniment.registry.people import positions, profiles
from muniment.registry.people.erasing import erase_person
from muniment.registry.review.pruning import plan_pruning
from muniment.registry.tables.operations import is_table, prepare_file
from muniment.registry.tables.reading import TableFile
from services.items import without_ids

pytestmark = pytest.mark.django_db
UPDATED = "2024-05-01T00:00:00.000000Z"


def holders(slug, *names):
    return [{"company": slug, "holder": {"address": f"0x{name}", "name": name}} for name in names]


def company(slug):
    return {"company": {"id": slug, "name": slug.title()}, "updatedAt": UPDATED}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "registry"
    lines(made / "companies.jsonl", company("acme"), company("reef"))
    return made


def cap_table(slug):
    return [row["name"] for row in document("company", slug)["capTable"]]


def test_the_lists_of_a_folder_are_those_of_its_companies(folder):
    lines(folder / "captable.jsonl", *holders("acme", "Ada", "Bo"), *holders("reef", "Cy"))
    lines(
        folder / "positions.jsonl",
        {"company": "acme", "position": {"title": "Chair", "person": {"name": "Ada Moss"}}},
        {"company": "acme", "position": {"title": "Clerk", "person": {"name": "Bo Reef"}, "company": "kept"}},
    )
    lines(folder / "proposals.jsonl", {"company": "reef", "proposal": {"title": "Plant willows", "status": "passed"}})
    summary, bad, warnings = bring(folder)
    assert (bad, warnings) == ([], [])
    assert str(summary).startswith("companies: 2 new")
    assert (summary.counts["captable"].changed, summary.counts["positions"].changed) == (2, 1)
    acme, reef = document("company", "acme"), document("company", "reef")
    assert (cap_table("acme"), cap_table("reef")) == (["Ada", "Bo"], ["Cy"])
    assert [(row["title"], row["person"]["slug"]) for row in acme["positions"]] == [
        ("Chair", "ada-moss"),
        ("Clerk", "bo-reef"),
    ]
    assert acme["positions"][1]["company"] == "kept"
    assert without_ids(reef["proposals"]) == [{"title": "Plant willows", "status": "passed"}]
    # The lists belong to the row of the company, and so does its time of change.
    assert (acme["company"]["updatedAt"], reef["company"]["updatedAt"]) == (UPDATED, UPDATED)
    again, _, _ = bring(folder)
    assert {(counts.new, counts.changed) for counts in again.counts.values()} == {(0, 0)}


def test_a_list_of_a_line_is_ignored_if_a_file_has_the_list_of_its_company(folder):
    acme = {**company("acme"), "capTable": [{"name": "Own line"}], "proposals": []}
    reef = {**company("reef"), "capTable": [{"name": "Own line"}]}
    lines(folder / "companies.jsonl", acme, reef)
    lines(folder / "captable.jsonl", *holders("acme", "Ada"))
    lines(folder / "proposals.jsonl", {"company": "acme", "proposal": {"title": "Plant willows", "status": "passed"}})
    for _ in range(2):
        summary, bad, warnings = bring(folder)
        assert (bad, cap_table("acme"), cap_table("reef")) == ([], ["Ada"], ["Own line"])
        assert [(each.file, each.line, each.field) for each in warnings] == [("companies.jsonl", 1, "capTable")]
    # Neither the line nor the file takes back what the other one wrote.
    assert {(counts.new, counts.changed) for counts in summary.counts.values()} == {(0, 0)}
    lines(folder / "captable.jsonl", *holders("acme", "Bo"), b'{"company": "acme", "holder": 1}\n')
    bring(folder)
    assert cap_table("acme") == ["Ada"]


def test_lists_that_an_interrupted_import_lacks_keep_the_time_of_their_line(folder, tmp_path):
    bring(folder)  # and was ended before the lists
    place = {"company": "acme", "position": {"title": "Chair", "person": {"name": "Ada Moss"}}}
    lines(folder / "captable.jsonl", *holders("acme", "Ada"))
    lines(folder / "positions.jsonl", place)
    bring(folder)
    assert document("company", "acme")["company"]["updatedAt"] == UPDATED
    # A list that another one replaces was changed since.
    lines(folder / "captable.jsonl", *holders("acme", "Bo"))
    bring(folder)
    assert document("company", "acme")["company"]["updatedAt"] > UPDATED


def test_each_position_is_told_with_its_own_line_also_after_others_were_left_out(folder):
    bring(folder)
    places = [
        {"title": "Clerk", "person": {"slug": "cy-erased", "name": "Cy Erased"}},
        {"title": "Chair", "person": {"slug": "ada-moss", "name": "Ada Moss"}},
        {"title": "Cook", "person": {"slug": "bo-reef", "name": "Bo Reef"}},
    ]
    file = folder / "positions.jsonl"
    bring(lines(file, *({"company": "acme", "position": place} for place in places)))
    me = owner()
    profiles.join_person(reviewer(), "ada-moss", me.account_id)
    (position,) = positions.list_positions(me)
    positions.answer_positions(me, end=[position.id])
    erase_person(reviewer(), "cy-erased")
    warned = [(each.line, each.field) for each in bring(file)[2]]
    assert warned == [(1, "position.person"), (2, "position")]
    assert [each["title"] for each in document("company", "acme")["positions"]] == ["Cook"]
    places[2]["person"] = {"slug": "no-such-person"}
    told = [
        (each.line, each.field) for each in bring(lines(file, *({"company": "acme", "position": p} for p in places)))[1]
    ]
    assert told == [(3, "position.person.slug")]
    assert [each["title"] for each in document("company", "acme")["positions"]] == ["Cook"]


@pytest.mark.parametrize("name", ["captable.jsonl", "captable.jsonl.gz"])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", []),
        (b"{broken\n", [(1, "")]),
        (b'{"company": {"id": "acme"}, "holder": {"name": "Ada"}}\n', [(1, "company")]),
        (b'{"holder": {"name": "Ada"}}\n', [(1, "company")]),
    ],
)
def test_a_file_with_the_name_of_lists_is_one_whatever_its_first_line_is(folder, tmp_path, name, content, told):
    file = tmp_path / name
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert not is_table(file)
    assert [(each.line, each.field) for each in bring(file)[1]] == told
    assert plan_pruning(file).rows == []


@pytest.mark.parametrize("name", ["positions.json", "lists.zip"])
def test_a_file_of_lists_is_not_read_as_a_table(tmp_path, name):
    place = {"company": "acme", "position": {"title": "Chair", "person": {"name": "Ada Moss"}}}
    file = lines(tmp_path / "positions.jsonl", place, place)
    content = file.read_bytes()
    if name == "lists.zip":
        content = zipped({"companies.csv": "name\nAcme\n", "positions.jsonl": content})
    with pytest.raises(BadRequest, match="has the rows of companies' lists") as refused:
        prepare_file(TableFile(name, content))
    assert "muniment import FOLDER" in refused.value.hint
    table = {"company": "Acme", "position": {"title": "Chair"}, "name": "Ada Moss"}
    assert prepare_file(TableFile("table.json", json.dumps([table]).encode())).sheets


def test_a_file_of_lists_alone_replaces_whole_lists_and_nothing_else(folder, tmp_path):
    bring(folder)
    before = document("company", "acme")["company"]
    for name in ("captable.jsonl", "holders of today.jsonl"):
        summary, bad, _ = bring(lines(tmp_path / name, *holders("acme", name, "Bo")))
        assert (bad, summary.counts["captable"].changed, cap_table("acme")) == ([], 1, [name, "Bo"])
    after = document("company", "acme")["company"]
    assert after.pop("updatedAt") > before.pop("updatedAt")
    assert after == before
    assert bring(tmp_path / "captable.jsonl", dry_run=True)[0].counts["captable"].changed == 1
    assert cap_table("acme") == ["holders of today.jsonl", "Bo"]


def test_bad_rows_are_told_with_their_lines_and_a_list_is_whole_or_not_at_all(folder):
    share = {"company": "reef", "holder": {"name": "Cy", "percentage": 101}}
    lines(
        folder / "captable.jsonl",
        *holders("acme", "Ada"),
        b"\n",
        b"{nonsense\n",
        *holders("acme", "Bo"),
        *holders("reef", "Di"),
        share,
        *holders("gone", "Ed"),
        {"company": "", "holder": {}},
        *holders("acme", "Fay"),
        {"company": "acme", "holder": "Gil"},
    )
    summary, bad, _ = bring(folder)
    told = sorted((fault.line, fault.field, fault.reason) for fault in bad)
    assert [(line, field) for line, field, _ in told] == [
        (1, "company"),
        (3, ""),
        (6, "holder.percentage"),
        (7, "company"),
        (8, "company"),
        (9, "company"),
        (10, "holder"),
    ]
    assert told[0][2] == "is left out with the whole list, because line 3 is invalid"
    assert told[3][2] == "is left out with the whole list, because line 8 is invalid"
    assert (summary.bad, summary.dropped) == (6, 1)
    assert (cap_table("acme"), cap_table("reef")) == ([], ["Di", "Cy"])


def test_a_list_with_too_many_rows_is_told_left_out_and_not_held(folder, monkeypatch):
    lines(folder / "captable.jsonl", *holders("reef", "Di"))
    assert bring(folder)[1] == []
    monkeypatch.setattr(list_files, "MAX_ROWS", 2)
    lines(folder / "captable.jsonl", *holders("acme", "Ada", "Bo"), *holders("reef", "Cy", "Ed", "Fay"))
    _, bad, _ = bring(folder)
    assert [(fault.line, fault.field, fault.reason) for fault in bad] == [
        (3, "capTable", "has 3 rows; a list has at most 2")
    ]
    assert (cap_table("acme"), cap_table("reef")) == (["Ada", "Bo"], ["Di"])
    (_, long_list) = list_files.whole_lists("captable", json_lines.read_lines(folder / "captable.jsonl"))
    assert long_list.value is None


def test_a_list_in_two_places_of_a_file_and_one_of_an_unknown_company_are_refused(folder):
    rows = (*holders("acme", "Ada"), *holders("reef", "Bo"), *holders("acme", "Cy"), *holders("gone", "Di"))
    lines(folder / "captable.jsonl", *rows)
    for options in ({"dry_run": True}, {}):
        told = [(fault.line, fault.field, fault.reason) for fault in bring(folder, **options)[1]]
        assert told == [
            (3, "company", "'acme' is already in line 1"),
            (4, "company", "is unknown: no company has the id 'gone'"),
        ]
    assert (cap_table("acme"), cap_table("reef")) == (["Ada"], ["Bo"])


def test_rows_that_an_owner_changed_are_kept(folder, tmp_path):
    me = owner()
    made = published(me, name="Tidal Works")
    file = tmp_path / "captable.jsonl"
    bring(lines(file, *holders(made.slug, "Ada", "Bo")))
    first = document("company", made.slug)["capTable"][0]
    change = CompanyChange(capTable={"set": [{"id": first["id"], "name": "Ada Moss"}]})
    update_company(me, made.slug, change)
    summary, bad, warnings = bring(lines(file, *holders(made.slug, "Ada", "Bo", "Cy")))
    assert (bad, summary.counts["captable"].kept, cap_table(made.slug)) == ([], 1, ["Ada Moss", "Bo", "Cy"])
    assert [(each.line, each.field) for each in warnings] == [(1, "capTable")]


@pytest.mark.parametrize("most", [exporter.LONG_LIST_ROWS, 1])
def test_one_undo_restores_a_listing_and_its_lists(folder, monkeypatch, most):
    monkeypatch.setattr(exporter, "LONG_LIST_ROWS", most)
    bring(folder)
    bring(lines(folder / "captable.jsonl", *holders("acme", "Ada", "Bo")))
    before = document("company", "acme")
    lines(folder / "companies.jsonl", {"company": {"id": "acme", "name": "Acme", "description": "New"}})
    lines(folder / "captable.jsonl", *holders("acme", "Cy"))
    lines(folder / "proposals.jsonl", {"company": "acme", "proposal": {"title": "Plant willows"}})
    bring(folder)
    assert cap_table("acme") == ["Cy"]
    run = ImportRun.objects.latest("pk")
    assert HistoryEntry.objects.filter(import_run=run).count() == 1
    undone = undo_import(operator(), run.pk)
    after = document("company", "acme")
    assert (undone.restored, undone.kept) == (1, [])
    for each in (before, after):
        del each["company"]["updatedAt"]
    assert after == before


def operator():
    account = Account.objects.create_user("operator@example.org", role="operator")
    return account.actor("web", "pages")


@pytest.mark.parametrize("limit", ["LONG_LIST_ROWS", "LONG_LIST_BYTES"])
def test_long_lists_leave_in_files_of_their_own_and_come_back_the_same(folder, tmp_path, monkeypatch, limit):
    lines(folder / "captable.jsonl", *holders("acme", *(f"Holder {n}" for n in range(30))), *holders("reef", "Cy"))
    lines(
        folder / "positions.jsonl",
        *(
            {"company": "acme", "position": {"title": f"Seat {n}", "person": {"name": f"Person {n}"}, "since": n}}
            for n in range(20)
        ),
    )
    bring(folder)
    short = tmp_path / "short"
    export_registry(short, private=True)
    assert sorted(file.name for file in short.iterdir()) == ["companies.jsonl", "frameworks.jsonl", "people.jsonl"]
    monkeypatch.setattr(exporter, limit, 10 if limit == "LONG_LIST_ROWS" else 800)
    monkeypatch.setattr("muniment.registry.publishing.documents._LIST_CHUNK", 7)
    long = tmp_path / "long"
    counts = export_registry(long, private=True)
    assert (counts["captable"], counts["positions"], "proposals" in counts) == (30, 20, False)
    first, second = (json.loads(line) for line in (long / "companies.jsonl").read_text().splitlines())
    assert ("capTable" in first, "positions" in first, "capTable" in second) == (False, False, True)
    whole = json.loads((short / "companies.jsonl").read_text().splitlines()[0])
    rows = [json.loads(line) for line in (long / "captable.jsonl").read_text().splitlines()]
    assert [row["holder"] for row in rows] == whole["capTable"]
    places = [json.loads(line) for line in (long / "positions.jsonl").read_text().splitlines()]
    assert [row["position"] for row in places] == whole["positions"]
    before = document("company", "acme"), document("person", "person-3")
    for model in (Company, Person, GivenSlug):  # an empty registry
        model.objects.all().delete()
    summary = import_registry(long)
    assert (summary.bad, summary.dropped) == (0, 0)
    assert import_registry(long).counts["captable"].unchanged == 1
    monkeypatch.undo()
    export_registry(long, private=True)
    assert not (long / "captable.jsonl").exists()
    assert (document("company", "acme"), document("person", "person-3")) == before


def test_a_line_that_is_too_long_names_the_files_of_long_lists(folder, monkeypatch):
    monkeypatch.setattr(json_lines, "MAX_LINE_BYTES", 50)
    _, bad, _ = bring(folder)
    assert "captable.jsonl, positions.jsonl and proposals.jsonl" in str(bad[0])


def test_files_of_lists_prune_nothing_and_need_a_row_to_be_known(folder, tmp_path):
    bring(folder)
    assert plan_pruning(lines(tmp_path / "captable.jsonl", *holders("acme", "Ada"))).rows == []
    with pytest.raises(BadRequest):
        import_registry(lines(tmp_path / "holders.jsonl", {"holder": {"name": "Ada"}}))
