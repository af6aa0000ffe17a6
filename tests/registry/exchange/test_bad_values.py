"""Imported values that cannot be true are left out and reported; their rows are kept, and what is stored stays."""

from typing import Any

import pytest
from click.testing import CliRunner

from make.registry import document, lines
from muniment.cli import main
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.models import CapTableEntry, Company, HistoryEntry, Person, Proposal
from muniment.registry.publishing.publisher import AffectedRows, publish
from services.items import without_ids

pytestmark = pytest.mark.django_db

LINE: dict[str, Any] = {
    "company": {
        "id": "tidal",
        "name": "Tidal",
        "website": "javascript:alert(1)",
        "themes": ["a", "b", "a", ""],
        "socials": {"email": "nope", "twitter": "@tidal"},
        "odd": [[[[[[[["deep"]]]]]]]],
    },
    "distribution": {"method": "vote", "pools": [{"name": "A", "percentage": -1}, {"name": "B", "percentage": 20}]},
    "positions": [
        {"title": "Chair\u202e", "person": {"name": "Ada Moss"}},
        {"title": "Smith", "person": {"name": "Bo\nReef"}},
        {"title": "Mate", "person": {"name": "Cy Sand"}},
    ],
    "proposals": [
        {"id": "1", "title": "Piers", "votes": {"for": -5, "against": 2}, "endDate": "next week"},
        {"id": "1", "title": "Dykes"},
    ],
    "capTable": [{"name": "Whale", "tokens": "7", "percentage": 70}, {"name": "Shoal", "percentage": 60}],
    "fundingRounds": [{"name": "Seed", "opened": "0001-01-01", "closed": "2024-01-01"}],
}
BROKEN = [
    *("company.website", "company.themes[2]", "company.themes[3]", "company.socials.email", "company.odd"),
    *("distribution.pools[0].percentage", "positions[0].title", "positions[1].person.name"),
    *("proposals[0].votes.for", "proposals[0].endDate", "proposals[1].id", "capTable", "fundingRounds[0].opened"),
]


def bring(folder, *rows, file="companies", **options):
    told, warned = [], []
    path = lines(folder / f"{file}.jsonl", *rows)
    summary = import_registry(path, ImportOptions(**options), tell=told.append, warn=warned.append)
    return summary, told, warned


def test_every_bad_value_is_left_out_and_reported_and_the_row_is_kept(tmp_path):
    summary, told, _ = bring(tmp_path, LINE)
    assert [(each.line, each.field) for each in told] == [(1, field) for field in BROKEN]
    assert all(each.reason.endswith("; left out") for each in told)
    assert (summary.counts["companies"].new, summary.bad, summary.dropped) == (1, 0, len(BROKEN))
    assert str(summary).endswith("no invalid rows; 13 invalid values left out")
    found = document("company", "tidal")
    company = found["company"]
    assert (company["themes"], company["socials"]["twitter"], company["socials"]["email"]) == (
        ["a", "b"],
        "@tidal",
        None,
    )
    assert not {"website", "odd"} & company.keys()
    assert without_ids(found["distribution"]["pools"]) == [{"name": "A"}, {"name": "B", "percentage": 20}]
    assert [(each.get("title"), each["person"]["name"]) for each in found["positions"]] == [
        (None, "Ada Moss"),
        ("Mate", "Cy Sand"),
    ]
    assert without_ids(found["capTable"]) == [{"name": "Whale", "tokens": "7"}, {"name": "Shoal"}]
    rows = document("company", "tidal")["proposals"]
    assert rows[0] == {"id": "1", "title": "Piers", "votes": {"against": 2}}
    assert rows[1]["title"] == "Dykes"
    assert rows[1]["id"] not in {"", "1"}


def test_the_same_file_again_changes_nothing_and_reports_the_same(tmp_path):
    _, first, _ = bring(tmp_path, LINE)
    entries, before = HistoryEntry.objects.count(), document("company", "tidal")
    summary, again, _ = bring(tmp_path, LINE)
    assert (summary.counts["companies"].unchanged, again) == (1, first)
    assert (HistoryEntry.objects.count(), document("company", "tidal")) == (entries, before)


def test_strict_imports_nothing_and_a_dry_run_says_what_would_be_left_out(tmp_path):
    good = {"company": {"id": "good", "name": "Good"}}
    summary, told, _ = bring(tmp_path, LINE, good, strict=True)
    assert (summary.dropped, len(told), Company.objects.count()) == (len(BROKEN), len(BROKEN), 0)
    summary, told, _ = bring(tmp_path, LINE, good, dry_run=True)
    assert (summary.dropped, Company.objects.count()) == (len(BROKEN), 0)


def test_the_command_ends_with_a_failure_and_says_how_many_values_were_left_out(tmp_path):
    lines(tmp_path / "companies.jsonl", LINE)
    told = CliRunner().invoke(main, ["import", str(tmp_path), "--strict"])
    assert (told.exit_code, "Nothing imported" in told.output) == (1, True)
    told = CliRunner().invoke(main, ["import", str(tmp_path)])
    assert told.exit_code == 1
    assert "13 invalid values left out" in told.output


def store_as_before_the_rules(line):
    """Store the bad values of a line, as a version without the rules did."""
    company = Company.objects.get(slug="tidal")
    facts = line["company"]
    everything = dict.fromkeys(("phone_number", "facebook", "instagram", "tiktok", "linkedin", "youtube"))
    pools = [
        {**was, **row} for was, row in zip(company.distribution["pools"], line["distribution"]["pools"], strict=True)
    ]
    Company.objects.filter(pk=company.pk).update(
        website=facts["website"],
        themes=facts["themes"],
        socials={**everything, **facts["socials"]},
        extra={"odd": facts["odd"]},
        distribution={"method": "vote", "pools": pools},
    )
    for table, name in ((Proposal, "proposals"), (CapTableEntry, "capTable")):
        for row, given in zip(table.objects.filter(company=company).order_by("rank"), line[name], strict=True):
            table.objects.filter(pk=row.pk).update(document={**row.document, **given})
    company.positions.filter(title=None).update(title="Chair\u202e")
    publish(AffectedRows().company(company.pk))


def test_a_bad_value_that_is_stored_already_is_reported_and_stays(tmp_path):
    line = {**LINE, "positions": LINE["positions"][:1], "fundingRounds": []}
    bring(tmp_path, line)
    store_as_before_the_rules(line)
    before, entries = document("company", "tidal"), HistoryEntry.objects.count()
    summary, told, warned = bring(tmp_path, line)
    assert (told, summary.dropped, summary.counts["companies"].unchanged) == ([], 0, 1)
    expected = [field for field in BROKEN if field not in {"positions[1].person.name", "fundingRounds[0].opened"}]
    assert [each.field for each in warned] == expected
    assert all(each.reason.endswith("; it stays, since it is stored already") for each in warned)
    assert (document("company", "tidal"), HistoryEntry.objects.count()) == (before, entries)
    summary, told, _ = bring(tmp_path, line, strict=True)
    assert (told, document("company", "tidal")) == ([], before)


def test_a_bad_value_does_not_replace_a_stored_one(tmp_path):
    good = {"company": {"id": "tidal", "name": "Tidal", "website": "https://tidal.example", "status": "active"}}
    holders = [{"address": "0x1", "percentage": 40}, {"address": "0x2", "percentage": 50}]
    bring(tmp_path, {**good, "capTable": holders})
    bad = {"company": {**good["company"], "name": "Ti\x07dal", "website": "tidal", "status": "inactive"}}
    worse = [{"address": "0x1", "percentage": 90}, {"address": "0x2", "percentage": 50}, {"address": "0x3"}]
    summary, told, _ = bring(tmp_path, {**bad, "capTable": worse})
    assert ([each.field for each in told], summary.dropped) == (["company.name", "company.website", "capTable"], 3)
    found = document("company", "tidal")
    assert [found["company"][name] for name in ("name", "website", "status")] == [
        *("Tidal", "https://tidal.example", "inactive")
    ]
    assert without_ids(found["capTable"]) == [*holders, {"address": "0x3"}]


def test_a_new_row_whose_name_cannot_be_is_refused(tmp_path):
    summary, told, _ = bring(tmp_path, {"company": {"id": "tidal", "name": "Ti\u202edal", "website": "x"}})
    assert (summary.bad, summary.dropped, Company.objects.count()) == (1, 0, 0)
    assert [str(each) for each in told] == [
        "companies.jsonl:1: company.name contains the bidirectional character U+202E"
    ]


def test_a_position_of_a_known_person_keeps_its_row_without_the_bad_name(tmp_path):
    bring(tmp_path, {"slug": "ada", "name": "Ada Moss"}, file="people")
    position = {"title": "Chair", "person": {"slug": "ada", "name": "Ada\u202e"}}
    bring(tmp_path, {"company": {"id": "tidal", "name": "Tidal"}, "positions": [position]})
    assert without_ids(document("company", "tidal")["positions"]) == [
        {"title": "Chair", "person": {"name": "Ada Moss", "slug": "ada"}}
    ]


def test_a_person_goes_without_bad_values_and_a_new_one_needs_a_name(tmp_path):
    deep = [[[[[[[["deep"]]]]]]]]
    summary, told, _ = bring(tmp_path, {"slug": "ada", "name": "Ada", "odd": deep}, file="people")
    assert ([each.field for each in told], summary.dropped) == (["odd"], 1)
    summary, told, _ = bring(tmp_path, {"slug": "bo", "name": "Bo\u202e"}, file="people")
    assert (summary.bad, Person.objects.filter(slug="bo").exists()) == (1, False)
    summary, told, _ = bring(tmp_path, {"slug": "ada", "name": "Ada\n", "bio": "Builds."}, file="people")
    assert (summary.dropped, summary.counts["people"].changed) == (1, 1)
    assert (Person.objects.get(slug="ada").name, Person.objects.get(slug="ada").bio) == ("Ada", "Builds.")
    Person.objects.filter(slug="ada").update(name="Ada\n")
    summary, told, warned = bring(tmp_path, {"slug": "ada", "name": "Ada\n", "bio": "Builds."}, file="people")
    assert (told, len(warned), summary.counts["people"].unchanged) == ([], 1, 1)


def test_an_import_may_hold_more_than_an_owner_may_add(tmp_path):
    rows = [{"title": f"Vote {n}"} for n in range(2_001)]
    rows[0]["text"] = "x" * 5_000
    line = {"company": {"id": "tidal", "name": "Tidal", "notes": "x" * (300 << 10)}, "proposals": rows}
    summary, told, warned = bring(tmp_path, line)
    assert (told, summary.dropped, summary.counts["companies"].new) == ([], 0, 1)
    assert [each.field for each in warned] == ["proposals", "proposals[0]", "company"]
    assert len(document("company", "tidal")["proposals"]) == 2_001


def test_a_row_with_thousands_of_bad_values_is_reported_by_the_first(tmp_path):
    rows = [{"title": f"Vote {n}", "endDate": "soon"} for n in range(1_000)]
    _, told, _ = bring(tmp_path, {"company": {"id": "tidal", "name": "Tidal"}, "proposals": rows})
    assert (len(told), told[0].field, told[-1].reason) == (
        51,
        "proposals[0].endDate",
        "has 950 more bad values; left out",
    )
    assert all("endDate" not in row for row in document("company", "tidal")["proposals"])


def test_an_entry_that_breaks_two_rules_is_left_out_once(tmp_path):
    themes = ["a", "x\u202ey", "b", "x\u202ey"]
    bring(tmp_path, {"company": {"id": "acme", "name": "Acme", "themes": themes}})
    assert document("company", "acme")["company"]["themes"] == ["a", "b"]
