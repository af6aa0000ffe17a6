"""Import: what good rows become, what is said of bad ones, and that a second run changes nothing."""

import gc
import json
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.test.utils import CaptureQueriesContext

from make.registry import bring, changes, document, item, keys, lines, owner, published
from muniment.kernel.problems import BadRequest
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange import companies, exporter, frameworks, importer, people, reading
from muniment.registry.exchange.batch import existing_rows
from muniment.registry.exchange.companies import import_companies
from muniment.registry.exchange.reading import RowFault
from muniment.registry.models import Company, Framework, GivenSlug, HistoryEntry, Person
from muniment.store.search import text_index
from muniment.store.sqlite import bulk_writes
from services.items import without_ids

pytestmark = pytest.mark.django_db


def company(slug: str = "acme", /, **members: Any) -> dict[str, Any]:
    return {"id": slug, "name": slug.title(), **members}


def caused(error: Exception, sqlstate: str) -> Exception:
    """Attach the cause of a driver with this SQLSTATE to *error*."""
    error.__cause__ = Exception()
    error.__cause__.sqlstate = sqlstate
    return error


def bring_companies(folder: Path, *rows: Any, **options: Any) -> list[RowFault]:
    return bring(lines(folder / "companies.jsonl", *rows), **options)[1]


@pytest.mark.requirement("absent.null", "absent.lists", "absent.left-out")
def test_a_bare_company_has_exactly_the_members_that_are_always_there(tmp_path):
    assert (
        bring_companies(tmp_path, {"company": {"id": "acme", "name": "Acme"}, "updatedAt": "2024-05-01T00:00:00Z"})
        == []
    )
    bare = {"id": "acme", "name": "Acme", "body": None, "socials": None, "address": None, "raising": False}
    bare |= {"updatedAt": "2024-05-01T00:00:00.000000Z", "maintainedByOwner": False}
    data = document("company", "acme")
    empty = {part: [] for part in ("proposals", "positions", "capTable", "fundingRounds")}
    assert data == {"company": bare, "distribution": None, **empty}
    assert list(data["company"]) == [
        "id",
        "name",
        "body",
        "socials",
        "address",
        "raising",
        "updatedAt",
        "maintainedByOwner",
    ]
    assert item("company", "acme") == bare


@pytest.mark.requirement("absent.left-out")
def test_null_counts_as_absent_where_the_contract_has_none_and_empty_texts_are_not_known(tmp_path):
    nulls = (
        "symbol",
        "teamSize",
        "treasury",
        "status",
        "type",
        "industry",
        "orgKind",
        "themes",
        "description",
        "website",
    )
    bring_companies(
        tmp_path,
        {
            "company": company(
                "nulls", **dict.fromkeys((*nulls, "dao_website", "createdAt", "icon", "body", "socials", "address"))
            )
        },
        {"company": company("empty", symbol="", icon="", description="", themes=[], address=[], socials={"email": ""})},
    )
    for slug in ("nulls", "empty"):
        assert set(document("company", slug)["company"]) == {
            "id",
            "name",
            "body",
            "socials",
            "address",
            "raising",
            "maintainedByOwner",
            "updatedAt",
        }
        assert document("company", slug)["company"]["socials"] is None


@pytest.mark.requirement("import.open-objects")
def test_unknown_members_are_kept_in_every_open_object_and_come_last_in_sorted_order(tmp_path):
    bring_companies(
        tmp_path,
        {
            "company": company(zeta=[1, {"b": None, "a": 1.5}], alpha="x", none=None),
            "distribution": {"method": "sale", "bonus": True},
            "proposals": [{"id": "1", "createdAt": "2024", "title": "Go"}],
            "positions": [{"since": 2020, "title": "Chair", "person": {"slug": "ada", "name": "Ada", "hue": 3}}],
            "capTable": [{"rank": 1, "address": "0x0", "name": ""}],
        },
    )
    data = document("company", "acme")
    assert list(data["company"])[-3:] == ["alpha", "none", "zeta"]
    assert data["company"]["zeta"] == [1, {"b": None, "a": 1.5}]
    assert data["distribution"] == {"method": "sale", "bonus": True}
    assert list(data["proposals"][0]) == ["id", "title", "createdAt"]
    assert without_ids(data["positions"]) == [
        {"title": "Chair", "person": {"name": "Ada", "slug": "ada", "hue": 3}, "since": 2020}
    ]
    assert without_ids(data["capTable"]) == [{"address": "0x0", "name": "", "rank": 1}]
    assert document("person", "ada")["positions"][0]["since"] == 2020


def test_links_hold_all_eight_keys_and_addresses_all_six(tmp_path):
    bring_companies(
        tmp_path, {"company": company(socials={"twitter": "@a"}, address=[{"city": "Port", "zip": ""}, {}])}
    )
    shown = document("company", "acme")["company"]
    assert shown["socials"] == {
        **dict.fromkeys(("email", "phone_number", "facebook", "instagram", "tiktok", "linkedin", "youtube")),
        "twitter": "@a",
    }
    assert without_ids(shown["address"]) == [
        {"address_1": None, "address_2": None, "city": "Port", "state": None, "zip": None, "country": None}
    ]


@pytest.mark.requirement("import.treasury-parsed", "format.treasury")
@pytest.mark.parametrize(
    ("given", "shown"),
    [("$50.0K", "$50K"), ("1,234,567.89", "$1.2M"), ("$999.95", "$1K"), ("USD 2 billion", "$2B"), ("$0", "$0")],
)
def test_a_treasury_is_read_as_people_write_it(tmp_path, given, shown):
    bring_companies(tmp_path, {"company": company(treasury=given)})
    assert document("company", "acme")["company"]["treasury"] == shown


@pytest.mark.requirement("format.team-size")
def test_team_size_counts_people_before_it_believes_the_file(tmp_path):
    ada, other = {"slug": "ada", "name": "Ada"}, {"slug": "ada-2", "name": "Ada"}
    titles = ({}, {"title": "Chair"}, {"title": "Clerk"})
    bring_companies(
        tmp_path,
        {"company": company("one", teamSize=90), "positions": [{**title, "person": ada} for title in titles]},
        {"company": company("two", teamSize=1), "positions": [{"person": ada}, {"person": other}, {"person": ada}]},
        {"company": company("believed", teamSize=90.0), "positions": []},
        {"company": company("unknown")},
    )
    sizes = {
        slug: document("company", slug)["company"].get("teamSize") for slug in ("one", "two", "believed", "unknown")
    }
    assert sizes == {"one": 1, "two": 2, "believed": 90, "unknown": None}
    assert item("person", "ada")["companyCount"] == 2


def test_an_imported_team_size_survives_an_export_though_people_are_counted(tmp_path):
    ada = {"slug": "ada", "name": "Ada"}
    bring_companies(tmp_path, {"company": company(teamSize=90), "positions": [{"person": ada}, {"person": ada}]})
    before = changes()
    exporter.export_registry(tmp_path / "export")
    (line,) = (tmp_path / "export" / "companies.jsonl").read_text().splitlines()
    assert json.loads(line)["company"]["teamSize"] == 90
    bring(tmp_path / "export")
    assert (changes(), document("company", "acme")["company"]["teamSize"]) == (before, 1)


def test_whole_numbers_are_written_the_same_way(tmp_path):
    votes = [{"votes": {"for": 5, "against": 5.0}}, {"votes": {"for": 0.25, "against": 1e3}}]
    bring_companies(tmp_path, {"company": company(), "proposals": votes, "capTable": [{"percentage": 12.0}]})
    data = json.dumps(document("company", "acme"))
    assert '{"for": 5, "against": 5}' in data
    assert '{"for": 0.25, "against": 1000}' in data
    assert '"percentage": 12}' in data


@pytest.mark.requirement("import.dates", "order.companies", "format.created-at")
def test_companies_are_ordered_by_listing_date_and_then_by_later_publication(tmp_path):
    bring_companies(
        tmp_path,
        {"company": company("undated-first")},
        {"company": company("march", createdAt="March 2024")},
        {"company": company("march-15", listedAt="2024-03-15", createdAt="January 1999")},
        {"company": company("march-later", createdAt="march 2024")},
        {"company": company("undated-last")},
    )
    assert keys("company") == ["march-15", "march-later", "march", "undated-last", "undated-first"]
    assert document("company", "march-15")["company"]["createdAt"] == "March 2024"
    assert document("company", "march-15")["company"]["listedAt"] == "2024-03-15"
    assert "listedAt" not in document("company", "march")["company"]
    assert "createdAt" not in document("company", "undated-last")["company"]


@pytest.mark.requirement("import.bad-rows")
@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        (b"{\n", "", "is not JSON"),
        (b"[1]\n", "", "must be an object, not a list"),
        (b'{"company": {"id": "x\xff"}}\n', "", "is not UTF-8 (byte 22 is 0xff)"),
        (b'{"company": {"id": "a", "name": "\\ud800"}}\n', "company.name", "contains an unpaired surrogate"),
        (b'{"company": {"id": "a", "name": "a\\u0000b"}}\n', "company.name", "U+0000"),
        (b"[" * 5000 + b"]" * 5000 + b"\n", "", "nested too deeply"),
        (b'{"company": {"id": "a", "name": "A", "teamSize": 1e999}}\n', "", "out of range"),
        ({}, "company", "is missing"),
        ({"company": "acme"}, "company", "must be an object, not text"),
        ({"company": {"name": "A"}}, "company.id", "is missing"),
        ({"company": {"id": "a", "name": " "}}, "company.name", "must not be empty"),
        ({"company": company("a b")}, "company.id", "U+0020"),
        ({"company": company("x" * 201)}, "company.id", "201 characters"),
        ({"company": company("..")}, "company.id", "relative path"),
        ({"company": company("e\u0301")}, "company.id", "normalization form C"),
        (
            {"company": company(status="Active")},
            "company.status",
            "must be one of active, upcoming, inactive, not 'Active'",
        ),
        ({"company": company(teamSize="5")}, "company.teamSize", "must be a whole number from 0"),
        ({"company": company(treasury="a lot")}, "company.treasury", "must be an amount such as $1.2M"),
        ({"company": company(treasury="€5")}, "company.treasury", "must be an amount"),
        ({"company": company(treasury=5)}, "company.treasury", "must be text, not a number"),
        ({"company": company(createdAt="2024-03")}, "company.createdAt", "must be a month and year such as March 2024"),
        ({"company": company(listedAt="2024-02-30")}, "company.listedAt", "must be a date such as 2024-03-31"),
        ({"company": company(listedAt="20240331")}, "company.listedAt", "must be a date such as 2024-03-31"),
        ({"company": company(themes=["a", 1])}, "company.themes[1]", "must be text, not a number"),
        ({"company": company(socials={"github": "a"})}, "company.socials.github", "is not one of email"),
        ({"company": company(address=[{"zip": 5}])}, "company.address[0].zip", "must be text, not a number"),
        ({"company": company(), "positions": {}}, "positions", "must be a list, not an object"),
        ({"company": company(), "positions": [{"person": {}}]}, "positions[0].person.slug", "and so is a name"),
        (
            {"company": company(), "positions": [{"person": {"slug": "ghost"}}]},
            "positions[0].person.slug",
            "no person has the slug",
        ),
        (
            {"company": company(), "proposals": [{"status": "won"}]},
            "proposals[0].status",
            "must be one of active, passed, failed, pending, not 'won'",
        ),
        (
            {"company": company(), "capTable": [{"percentage": True}]},
            "capTable[0].percentage",
            "must be a number, not true",
        ),
        ({"company": company(), "distribution": []}, "distribution", "must be an object, not a list"),
        ({"company": company(), "fundingRounds": [{}, {}]}, "fundingRounds", "more than one open round"),
        ({"company": company(), "updatedAt": "yesterday"}, "updatedAt", "must be an RFC 3339 timestamp"),
    ],
)
def test_a_bad_row_is_reported_with_its_place_and_the_good_ones_are_imported(tmp_path, row, field, reason):
    bad = bring_companies(tmp_path, {"company": company("before")}, row, {"company": company("after")})
    assert [(each.file, each.line, each.field) for each in bad] == [("companies.jsonl", 2, field)]
    assert reason in bad[0].reason
    assert keys("company") == ["after", "before"]


@pytest.mark.requirement("import.bad-rows")
def test_a_slug_twice_in_one_file_is_a_bad_row_that_names_the_first(tmp_path):
    bad = bring_companies(
        tmp_path, {"company": company(description="first")}, {"company": company(description="second")}
    )
    assert str(bad[0]) == "companies.jsonl:2: company.id 'acme' is already in line 1"
    assert document("company", "acme")["company"]["description"] == "first"


def test_a_slug_of_something_gone_is_never_given_again(tmp_path):
    GivenSlug.objects.create(kind="company", slug="gone")
    GivenSlug.objects.create(kind="person", slug="left")
    bad = bring_companies(
        tmp_path,
        {"company": company("gone")},
        {"company": company("here"), "positions": [{"person": {"slug": "left", "name": "Left"}}]},
    )
    assert [(each.line, each.field) for each in bad] == [(1, "company.id"), (2, "positions[0].person.slug")]


@pytest.mark.requirement("import.form")
def test_a_single_file_of_any_name_is_known_by_its_first_good_line(tmp_path):
    bring(lines(tmp_path / "mine.txt", b"broken\n", {"slug": "ada", "name": "Ada"}))
    assert keys("person") == ["ada"]
    with pytest.raises(BadRequest, match="no line that is a company"):
        bring(lines(tmp_path / "other.txt", {"what": 1}))
    with pytest.raises(BadRequest, match=r"none of companies\.jsonl"):
        bring(lines(tmp_path / "empty" / "readme.txt").parent)


@pytest.mark.requirement("import.upsert")
def test_a_second_import_changes_nothing_and_a_changed_row_alone_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_LINES", 2)
    rows = [
        {
            "company": company(
                f"c{n}", treasury="$1.5M", themes=["a"], socials={"email": "a@b.example"}, other={"x": 1.0}
            ),
            "positions": [{"title": "Chair", "person": {"name": f"Person {n}"}}],
            "proposals": [{"id": "1", "votes": {"for": 1.0}}],
            "capTable": [{"percentage": 5.0}],
            "fundingRounds": [{"name": "Seed", "target": "$2M", "opened": "2024-01-01"}],
            "distribution": {"pools": [{"percentage": 20.0}]},
        }
        for n in range(5)
    ]
    bring_companies(tmp_path, *rows)
    feed, entries = changes(), HistoryEntry.objects.count()
    summary = bring(tmp_path)[0]
    assert (summary.counts["companies"].new, summary.counts["companies"].unchanged) == (0, 5)
    assert (changes(), HistoryEntry.objects.count(), Person.objects.count()) == (feed, entries, 5)

    rows[3]["company"]["name"] = "Renamed"
    bring_companies(tmp_path, *rows)
    assert [(kind, key) for kind, key, change in changes()[len(feed) :]] == [("company", "c3"), ("person", "person-3")]
    assert document("person", "person-3")["positions"][0]["company"]["name"] == "Renamed"
    assert HistoryEntry.objects.order_by("-pk")[0].after == {"name": "Renamed"}


def test_parts_that_a_row_leaves_out_stay_and_empty_ones_clear(tmp_path):
    bring_companies(
        tmp_path, {"company": company(), "positions": [{"person": {"name": "Ada"}}], "capTable": [{"name": "x"}]}
    )
    bring_companies(tmp_path, {"company": company(industry="Energy")})
    assert len(document("company", "acme")["positions"]) == 1
    bring_companies(tmp_path, {"company": company(), "positions": [], "capTable": None})
    data = document("company", "acme")
    assert (data["positions"], data["capTable"], "industry" in data["company"]) == ([], [], False)
    assert document("person", "ada") is None
    assert changes()[-1] == ("person", "ada", "unlisted")


@pytest.mark.requirement("import.draft", "reviewed.only", "reviewed.program")
def test_drafts_are_nowhere_public_and_never_write_over_what_is_published(tmp_path):
    lines(tmp_path / "people.jsonl", {"slug": "bo", "name": "Bo"})
    lines(tmp_path / "companies.jsonl", {"company": company(), "positions": [{"person": {"name": "Ada"}}]})
    run_by = {"frameworkId": "p", "frameworkName": "P", "kind": "program", "company": {"id": "acme"}}
    lines(tmp_path / "frameworks.jsonl", {"framework": run_by})
    bring(tmp_path, draft=True)
    assert changes() == []
    assert Company.objects.get().state == "draft"
    bring(tmp_path)
    assert (keys("company"), keys("person"), keys("framework")) == (["acme"], ["ada", "bo"], ["p"])
    lines(tmp_path / "companies.jsonl", {"company": company(description="Unreviewed.")})
    summary, _, warnings = bring(tmp_path, draft=True)
    assert "--draft leaves it unchanged" in warnings[0].reason
    assert summary.counts["companies"].unchanged == 1
    assert "description" not in document("company", "acme")["company"]


@pytest.mark.requirement("import.dry-run")
def test_a_dry_run_reports_the_result_and_writes_nothing(tmp_path):
    lines(tmp_path / "people.jsonl", {"slug": "bo", "name": "Bo"})
    lines(
        tmp_path / "companies.jsonl",
        {"company": company(), "positions": [{"person": {"slug": "bo"}}]},
        {"company": company("bad", status="x")},
    )
    lines(
        tmp_path / "frameworks.jsonl",
        {"framework": {"frameworkId": "p", "frameworkName": "P", "kind": "program", "company": {"id": "acme"}}},
    )
    summary, bad, _ = bring(tmp_path, dry_run=True)
    assert {kind: counts.new for kind, counts in summary.counts.items()} == {
        "people": 1,
        "companies": 1,
        "frameworks": 1,
    }
    assert len(bad) == 1
    assert (Company.objects.count(), Person.objects.count(), changes()) == (0, 0, [])


@pytest.mark.requirement("import.strict")
def test_strict_imports_nothing_when_any_row_is_bad(tmp_path):
    path = lines(tmp_path / "companies.jsonl", {"company": company("good")}, {"company": company("bad", status="x")})
    summary, bad, _ = bring(path, strict=True)
    assert (summary.bad, len(bad), Company.objects.count()) == (1, 1, 0)
    bring(lines(path, {"company": company("good")}), strict=True)
    assert keys("company") == ["good"]


def test_an_import_publishes_a_draft_and_keeps_its_owner(tmp_path):
    me = owner()
    mine = published(me, name="Acme")
    bring_companies(tmp_path, {"company": company(mine.slug, description="Imported.")})
    assert document("company", mine.slug)["company"]["description"] == "Imported."
    assert Company.objects.get(slug=mine.slug).owners.get().pk == me.account_id


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_an_edit_while_a_batch_is_compared_is_not_lost(tmp_path):
    me = owner()
    mine = published(me, description="As it was.")
    edits = []

    def edit():
        try:
            update_company(me, mine.slug, CompanyChange(description="Edited meanwhile."))
        finally:
            connection.close()

    def meanwhile(execute, sql, params, many, context):
        if 'FROM "registry_position"' in sql and not edits:
            edits.append(pool.submit(edit))
            wait(edits, timeout=0.5)
        return execute(sql, params, many, context)

    row = company(mine.slug, name=mine.name, description="As it was.", industry="Water")
    with ThreadPoolExecutor(1) as pool, connection.execute_wrapper(meanwhile):
        assert bring_companies(tmp_path, {"company": row}) == []
        edits[0].result(60)
    stands = Company.objects.get(slug=mine.slug)
    assert (stands.description, stands.industry) == ("Edited meanwhile.", "Water")
    assert document("company", mine.slug)["company"]["description"] == "Edited meanwhile."


def test_people_are_exported_a_stretch_at_a_time_in_the_order_of_their_publication(tmp_path, monkeypatch):
    monkeypatch.setattr(exporter, "CHUNK", 2)
    slugs = ["edda", "bo", "cleo", "aino", "dag"]
    bring(lines(tmp_path / "people.jsonl", *({"slug": slug, "name": slug.title()} for slug in slugs)))
    with CaptureQueriesContext(connection) as asked:
        assert [line["slug"] for line in exporter._people()] == slugs
    assert len(asked) == 4


def test_a_path_that_is_neither_a_folder_nor_a_file_is_refused(tmp_path):
    with pytest.raises(BadRequest):
        bring(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadRequest):
        bring(tmp_path / "empty")


def test_a_database_that_fails_ends_the_import_and_keeps_nothing_of_the_batch(tmp_path, monkeypatch):
    def fail(run, rows):
        import_companies(run, rows)
        raise OperationalError("disk full")

    monkeypatch.setitem(importer._WRITERS, "companies", fail)
    with pytest.raises(OperationalError, match="disk full"):
        bring_companies(tmp_path, {"company": company()})
    assert not Company.objects.exists()


def test_each_import_is_in_the_history_of_its_row(tmp_path):
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada", "bio": "Sails."})
    lines(tmp_path / "companies.jsonl", {"company": company(industry="Energy")})
    lines(tmp_path / "frameworks.jsonl", {"framework": {"frameworkId": "a", "frameworkName": "A", "kind": "score"}})
    bring(tmp_path)
    made = {(entry.company_id, entry.person_id, entry.framework_id) for entry in HistoryEntry.objects.all()}
    keys_ = (Company.objects.get().pk, Person.objects.get().pk, Framework.objects.get().pk)
    assert made == {(keys_[0], None, None), (None, keys_[1], None), (None, None, keys_[2])}
    before = HistoryEntry.objects.count()
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada Moss"})
    lines(tmp_path / "companies.jsonl", {"company": company(industry="Water")})
    lines(tmp_path / "frameworks.jsonl", {"framework": {"frameworkId": "a", "frameworkName": "B", "kind": "score"}})
    bring(tmp_path)
    told = HistoryEntry.objects.order_by("pk")[before:]
    assert {entry.action for entry in told} == {"imported"}
    assert [(entry.before, entry.after) for entry in told] == [
        ({"name": "Ada", "bio": "Sails."}, {"name": "Ada Moss", "bio": None}),
        ({"industry": "Energy"}, {"industry": "Water"}),
        ({"name": "A"}, {"name": "B"}),
    ]


def test_a_changed_listing_is_published_with_what_shows_it_and_nothing_else(tmp_path):
    run_by = {"frameworkId": "p", "frameworkName": "P", "kind": "program", "company": {"id": "acme"}}
    lines(tmp_path / "frameworks.jsonl", {"framework": run_by})
    positions = [{"person": {"slug": "ada", "name": "Ada"}}]
    lines(tmp_path / "companies.jsonl", {"company": company(), "positions": positions}, {"company": company("other")})
    bring(tmp_path)
    (tmp_path / "frameworks.jsonl").unlink()
    for change, affected in (
        ({"industry": "Energy"}, [("company", "acme")]),
        ({"description": "Boats."}, [("company", "acme"), ("framework", "p")]),
        ({"name": "Acme Works"}, [("company", "acme"), ("framework", "p"), ("person", "ada")]),
        ({"positions": []}, [("company", "acme"), ("person", "ada")]),
    ):
        before, moved = len(changes()), {"framework": Framework.objects.get().updated_at}
        members = {"industry": "Energy", **({"description": "Boats."} if "industry" not in change else {})}
        members |= {"name": "Acme Works"} if change.keys() & {"name", "positions"} else {}
        row = {"company": company(**{**members, **{k: v for k, v in change.items() if k != "positions"}})}
        bring(lines(tmp_path / "companies.jsonl", {**row, **({"positions": []} if "positions" in change else {})}))
        assert sorted(each[:2] for each in changes()[before:]) == affected, change
        is_framework_newer = Framework.objects.get().updated_at > moved["framework"]
        assert is_framework_newer is (("framework", "p") in affected), change


def test_drafts_of_people_and_frameworks_do_not_write_over_published_ones(tmp_path):
    def write(name):
        lines(tmp_path / "people.jsonl", *({"slug": slug, "name": name} for slug in ("ada", "bo")))
        rows = ({"frameworkId": slug, "frameworkName": name, "kind": "score"} for slug in ("a", "b"))
        lines(tmp_path / "frameworks.jsonl", *({"framework": row} for row in rows))

    write("Before")
    bring(tmp_path)
    write("After")
    summary, _, warnings = bring(tmp_path, draft=True)
    assert (item("person", "bo")["name"], item("framework", "a")["frameworkName"]) == ("Before", "Before")
    counted = {kind: (counts.new, counts.changed, counts.unchanged) for kind, counts in summary.counts.items()}
    assert counted["people"] == counted["frameworks"] == (0, 0, 2)
    assert len(warnings) == 4


def test_progress_reports_how_far_each_file_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_LINES", 2)
    path = lines(tmp_path / "companies.jsonl", *({"company": company(f"c{n}")} for n in range(3)), b"broken\n")
    told = []
    bring(path, progress=lambda file, read: told.append((file, read)))
    assert {file for file, _ in told} == {path}
    assert len(told) == 3
    assert max(read for _, read in told) == path.stat().st_size


def test_transactions_are_small_while_others_wait_to_write(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_LINES", 3)
    monkeypatch.setattr(importer, "ROWS_BESIDE_OTHERS", 1)
    waits = iter([False, True, True, False])
    monkeypatch.setattr(importer, "_give_way", lambda: next(waits, False))
    path = lines(tmp_path / "companies.jsonl", *({"company": company(f"c{n}")} for n in range(10)))
    ends = list(accumulate(len(line) for line in path.read_bytes().splitlines(keepends=True)))
    read = []
    bring(path, progress=lambda _, size: read.append(ends.index(size) + 1))
    assert read == [3, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("vendor", "error", "lost"),
    [
        ("postgresql", IntegrityError("unique"), True),
        ("postgresql", OperationalError("disk full"), False),
        ("postgresql", caused(OperationalError("deadlock"), "40P01"), True),
        ("postgresql", caused(OperationalError("serialization"), "40001"), True),
        ("postgresql", caused(OperationalError("disk full"), "53100"), False),
        ("sqlite", IntegrityError("unique"), False),
    ],
)
def test_a_batch_that_lost_a_race_is_tried_again(monkeypatch, vendor, error, lost):
    monkeypatch.setattr(importer, "connection", SimpleNamespace(vendor=vendor))
    assert importer._lost_race(error) is lost


@pytest.mark.parametrize("dry", [True, False])
def test_rows_are_locked_only_to_be_written(tmp_path, monkeypatch, dry):
    asked = []
    for module in (companies, people, frameworks):

        def note(model, slugs, *, lock=False):
            asked.append(lock)
            return existing_rows(model, slugs, lock=lock)

        monkeypatch.setattr(module, "existing_rows", note)
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada"})
    lines(tmp_path / "companies.jsonl", {"company": company()})
    lines(tmp_path / "frameworks.jsonl", {"framework": {"frameworkId": "a", "frameworkName": "A", "kind": "score"}})
    bring(tmp_path, dry_run=dry)
    assert asked == [not dry] * 3


def test_an_import_leaves_the_process_as_it_was(tmp_path):
    thresholds = gc.get_threshold()
    with importer._rare_garbage_collections():
        assert gc.get_threshold() == (importer.GC_THRESHOLD, *thresholds[1:])
    assert gc.get_threshold() == thresholds


@pytest.mark.sqlite  # the settings are of SQLite
def test_an_import_leaves_its_connection_as_it_was():
    def pragmas():
        with connection.cursor() as cursor:
            return [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("cache_size", "wal_autocheckpoint")]

    before = pragmas()
    with bulk_writes.bulk_write_settings(connection):
        assert pragmas() == [-bulk_writes.PAGE_CACHE_KIB, bulk_writes.CHECKPOINT_PAGES]
    assert pragmas() == before


@pytest.mark.sqlite  # on PostgreSQL each node has an index of its own
def test_an_import_leaves_the_search_index_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(text_index, "FEW", 0)
    bring_companies(tmp_path, {"company": company("acme")})
    bring_companies(tmp_path, {"company": company("other")})
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT segid) FROM published_text_company_idx")
        assert cursor.fetchone() == (1,)
    assert keys("company") == ["other", "acme"]
