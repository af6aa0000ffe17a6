"""Import of a table: what is stored, what stays, what is matched, what is reported."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from make.registry import document, owner, published, reviewer
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange import importer
from muniment.registry.exchange.importer import ImportOptions
from muniment.registry.models import Company, HistoryEntry, ImportRun, Person
from muniment.registry.tables.fields import Column
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.mapping import FileMapping, TableMapping
from muniment.registry.tables.operations import TableImport, import_table, is_table, prepare
from muniment.registry.tables.records import KnownRows, Loss, common_reason, grouped, records_of

pytestmark = pytest.mark.django_db


def bring(folder: Path, text: str, name: str = "members.csv", mapping: str = "", **options: Any) -> TableImport:
    file = folder / name
    file.write_text(text, "utf-8")
    return import_table(prepare(file, mapping), ImportOptions(**options))


def reasons(found: TableImport) -> list[str]:
    return [str(each) for each in grouped(found.losses)]


def test_a_table_is_imported_and_again_changes_nothing(tmp_path):
    text = "Company,Website,Founders\nAlder House,alder.example,Ida Alder\nBirch House,,Ida Alder; Joe Birch\n"
    found = bring(tmp_path, text)
    assert str(found.summary) == (
        "people: 2 new, 0 changed, 0 unchanged; companies: 2 new, 0 changed, 0 unchanged; no invalid rows"
    )
    assert document("company", "alder-house")["company"]["website"] == "https://alder.example"
    places = {each["company"]["id"] for each in document("person", "ida-alder")["positions"]}
    assert places == {"alder-house", "birch-house"}
    run = ImportRun.objects.get(pk=found.summary.import_run)
    assert (run.files, run.result) == (["members.csv"], str(found.summary))
    assert HistoryEntry.objects.filter(import_run=run).count() == 4
    again = bring(tmp_path, text)
    assert str(again.summary) == "companies: 0 new, 0 changed, 2 unchanged; no invalid rows"


def test_what_a_table_does_not_have_stays_as_it_is_stored(tmp_path):
    bring(tmp_path, "Name,Website,Email,City,CEO,Registry Code\nAlder,a.example,o@a.example,Rome,Ida Alder,7\n")
    mapping = '[[table]]\nname = "x"\nkind = "companies"\nheader = 1\n' + "".join(
        f'[[table.column]]\nheading = "{heading}"\nfield = "{field}"\n'
        for heading, field in (("Name", "name"), ("Phone", "socials.phone_number"), ("CFO", "people"), ("N", "extra:n"))
    )
    found = bring(tmp_path, "Name,Phone,CFO,N\nALDER,+39 06 1,Joe Birch,1\n", mapping=mapping)
    assert found.summary.counts["companies"].changed == 1
    shown = document("company", "alder")
    assert shown["company"]["name"] == "ALDER"
    assert shown["company"]["website"] == "https://a.example"
    assert shown["company"]["socials"]["email"] == "o@a.example"
    assert shown["company"]["socials"]["phone_number"] == "+39 06 1"
    assert shown["company"]["address"][0]["city"] == "Rome"
    assert shown["company"]["n"] == "1"
    assert [each["person"]["name"] for each in shown["positions"]] == ["Ida Alder", "Joe Birch"]
    bring(tmp_path, "Name,M\nAlder,2\n", mapping=mapping.replace('"N"', '"M"').replace("extra:n", "extra:m"))
    assert {"n": "1", "m": "2"}.items() <= document("company", "alder")["company"].items()


def test_what_an_owner_changed_stays_and_is_reported(tmp_path):
    bring(tmp_path, "Name,Description,Website\nAlder,From the table,a.example\n")
    update_company(reviewer(), "alder", CompanyChange(description="From a person"))
    found = bring(tmp_path, "Name,Website\nAlder,b.example\n")
    assert found.losses == []
    found = bring(tmp_path, "Name,Description\nAlder,Another\n")
    assert "was changed here since the last import and is kept" in reasons(found)[0]
    assert document("company", "alder")["company"]["description"] == "From a person"
    assert document("company", "alder")["company"]["website"] == "https://b.example"


def test_rows_of_one_company_are_one_line_and_others_of_its_name_are_apart(tmp_path):
    text = "Company,City,Director\nAlder,Rome,Ida Alder\nAlder,Rome,Joe Birch\nAlder,Oslo,Kim Cedar\n,Bonn,\nTotal,,\n"
    with pytest.raises(BadRequest, match="several rows have the same name"):
        bring(tmp_path, text)
    asked = prepare(tmp_path / "members.csv").mapping_text()
    found = bring(tmp_path, text, mapping=asked.replace('combine = "?"', 'combine = "no"'))
    assert list(Company.objects.order_by("pk").values_list("slug", flat=True)) == ["alder", "alder-2"]
    assert [each["person"]["name"] for each in document("company", "alder")["positions"]] == ["Ida Alder", "Joe Birch"]
    assert [each.split(": ", 1)[1] for each in reasons(found)] == [
        'is about the company of an earlier row, and is combined with it, for example "Alder" (1 row: 3).',
        'has the name of another row but other values, and is a company of its own, for example "Alder" (1 row: 4).',
        "has no name and is left out (1 row: 5). Add the name.",
        "is a total, and is left out (1 row: 6).",
    ]


def test_people_are_matched_by_name_but_never_to_a_profile_of_an_account_nor_to_one_of_several(tmp_path):
    bring(tmp_path, "Name,CEO\nAlder,Ida Alder\n")
    bring(tmp_path, "Name,CEO\nBirch,Ida Alder\n")
    assert Person.objects.count() == 1
    Person.objects.create(slug="ida-alder-2", name="Ida Alder")
    found = bring(tmp_path, "Name,CEO\nCedar,Ida Alder\n")
    assert "is the name of several people in the registry" in reasons(found)[0]
    apart = "same_name_is_same_person = false\n" + prepare(tmp_path / "members.csv").mapping_text().split("\n\n", 1)[1]
    found = bring(
        tmp_path,
        "Name,CEO\nDogwood,Max Fir\nElder,Max Fir\n",
        mapping=apart.replace("same_name_is_same_person = true", ""),
    )
    assert list(Person.objects.filter(name="Max Fir").values_list("slug", flat=True)) == ["max-fir", "max-fir-2"]


def test_a_profile_of_an_account_is_not_matched(tmp_path):
    bring(tmp_path, "Name,CEO\nAlder,Ida Alder\n")
    Person.objects.filter(slug="ida-alder").update(account=owner().account_id)
    bring(tmp_path, "Name,CEO\nAlder,Ida Alder\nBirch,Ida Alder\n")
    assert document("company", "alder")["positions"][0]["person"]["slug"] == "ida-alder"
    assert document("company", "birch")["positions"][0]["person"]["slug"] == "ida-alder-2"


def test_a_table_of_people_needs_their_companies(tmp_path):
    published(owner(), name="Harbour")
    text = "First name,Last name,Company,Position,Biography\nIda,Alder,Harbour,Chair,Text\nJoe,Birch,Nowhere,Chair,\n"
    found = bring(tmp_path, text + "Kim,Cedar,,Clerk,\n,,Harbour,Chair,\n", "people.csv")
    slug = Company.objects.get(name="Harbour").slug
    assert [each["person"]["slug"] for each in document("company", slug)["positions"]] == ["ida-alder"]
    assert document("person", "ida-alder")["bio"] == "Text"
    assert len(reasons(found)) == 3
    assert any("is not in the registry" in each for each in reasons(found))


def test_invalid_values_are_grouped_with_their_rows_and_a_dry_run_writes_nothing(tmp_path):
    text = "Name,Email\nAlder,no@mail@at.all\nBirch,b@b\nCedar,c@c\nDogwood,d@d.example\n"
    found = bring(tmp_path, text, dry_run=True)
    assert not Company.objects.exists()
    assert found.summary.import_run is None
    assert not ImportRun.objects.exists()
    assert any("(2 rows: 3, 4)" in each for each in reasons(found))


def test_a_mapping_with_an_open_question_imports_nothing(tmp_path):
    with pytest.raises(BadRequest, match="needs 1 choice"):
        bring(tmp_path, "Name,Joined\nAlder,03/04/2001\n")
    assert not Company.objects.exists()


def test_a_file_without_names_gives_nothing(tmp_path):
    found = bring(tmp_path, "Colour,Size\nred,7\n")
    assert "no column is the name of a row" in reasons(found)[0]
    found = bring(tmp_path, "Name,City\n")
    assert (found.records.companies, found.losses) == ([], [])


def test_tables_are_told_from_registry_files(tmp_path):
    def told(name: str, text: str) -> bool:
        (tmp_path / name).write_text(text)
        return is_table(tmp_path / name)

    assert told("members.csv", "Name\n")
    assert told("companies.csv", "Name\n")
    assert told("members.json", '[{"name": "Acme"}]')
    assert told("members.jsonl", '{"name": "Acme"}')
    assert not told("companies.jsonl", '{"name": "Acme"}')
    assert not told("export.jsonl", '{"company": {"id": "acme", "name": "Acme"}}')
    assert not told("p.jsonl", '{"slug": "ada", "name": "Ada"}')
    assert not is_table(tmp_path)


def test_groups_name_rows_once_and_hide_long_examples():
    losses = [Loss("t", n, "C", "is wrong", "x" * 100, "Fix it.") for n in (2, 2, 3, 4, 5, 6, 7)]
    (group,) = grouped(losses)
    assert str(group) == f't: C: is wrong, for example "{"x" * 59}…" (6 rows: 2, 3, 4, 5, 6, …). Fix it.'
    texts = [Phrase("must be {rule}, not {value}", rule=Phrase("a day"), value=value) for value in ("'a'", "'b'")]
    assert len({common_reason(text) for text in texts}) == 1
    assert common_reason(Phrase("must be {rule}, not {value}", rule=Phrase("a month"), value="'a'")) != texts[0]


def test_many_rows_need_few_queries(tmp_path, django_assert_max_num_queries):
    together = importer.ROWS_BESIDE_OTHERS  # the rows of the first transaction
    for first in (0, together):
        rows = "".join(f"Company {n},c{n}.example\n" for n in range(first, first + together))
        with django_assert_max_num_queries(65):  # 10 of them are the memory of the source, of 10 rows as of 100
            bring(tmp_path, f"Name,Website\n{rows}")
    assert connection.vendor
    assert Company.objects.count() == 2 * together


def losses_of(*rows, **fields):
    sheet = Sheet("t", [[*fields], *[list(row) for row in rows]])
    columns = [Column(heading, field) for heading, field in fields.items()]
    mapping = FileMapping([TableMapping("t", "companies", 1, columns)])
    return [
        (each.row, each.column, each.reason) for each in records_of([sheet], mapping, KnownRows.read(), "EUR").losses
    ]


def test_a_team_size_that_listed_people_hide_is_reported():
    said = "is stored, but pages show the number of listed people as the team size"
    rows = [
        ("Alder", "40", "Ida Alder"),
        ("Birch", "40", ""),
        ("Cedar", "1", "Kim Cedar"),
        ("Dogwood", "", "Joe Dogwood"),
    ]
    assert losses_of(*rows, Company="name", Staff="teamSize", Contact="people") == [(2, "Staff", said)]


def test_a_second_column_of_a_field_is_reported_where_it_says_something_else():
    said = "is left out: another column of the same field has a value in this row"
    rows = [("Alder", "Rome", "Bari"), ("Birch", "Rome", "Rome"), ("Cedar", "", "Bari")]
    assert losses_of(*rows, Company="name", Seat="address.city", Office="address.city") == [(2, "Office", said)]


def test_a_row_whose_letters_cannot_be_read_is_named_and_not_published(tmp_path):
    file = tmp_path / "members.csv"
    rows = "".join(f"Müller Söhne {n} GmbH,Köln\n" for n in range(20))
    file.write_bytes(f"Company,City\n{rows}".encode() + "Größe GmbH,Düren\nAlder Trust,Düren\n".encode("cp1252"))
    found = import_table(prepare(file), ImportOptions(dry_run=True))
    assert found.summary.counts["companies"].new == 21
    assert [(each.row, each.column) for each in found.losses if "could not be read" in each.reason] == [
        (22, "Company"),
        (22, "City"),
        (23, "City"),
    ]
