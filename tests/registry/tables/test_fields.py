"""The fields of a table are those of the schema: one that is declared there is imported, by page and by command."""

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner

import muniment
from make.accounts import account, signed_in
from make.imports import upload, work
from make.pages import fields_of as form_fields
from make.registry import document
from muniment.cli import main
from muniment.registry.exchange.importer import ImportOptions
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.fields import fields_of
from muniment.registry.tables.headings import field_of
from muniment.registry.tables.operations import import_table, prepare
from muniment.schema import company
from muniment.schema.kinds import DATE, Boolean, Choice, Kind, Number, Text
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field

pytestmark = pytest.mark.django_db
TABLE = "Company;Charter number;Website\nAlder House;AB  12;alder.example\nBirch House;;\n"
SOURCE = Path(muniment.__file__).parent
OF_TABLES = ("registry/tables/", "registry/exchange/", "registry/imports/", "web/views/operate/imports", "cli/tables")
FOREIGN = "registry/tables/presets.py"
"""It has the columns of public formats, and which field each is."""


@pytest.fixture
def declare(monkeypatch, settings):
    """Declare a field of companies in the schema, which is stored in the column of the subtype."""

    def declare(name: str, kind: Kind, label: str) -> None:
        declared = [field for field in company._fields("USD") if field.name != "orgKind"]
        declared.append(Field(name, kind, label, column="org_kind"))
        monkeypatch.setattr(company, "_fields", lambda _currency: tuple(declared))
        settings.SCHEMA = registry_schema("USD")

    return declare


def test_a_field_of_the_schema_is_imported_by_page(declare):
    declare("charterNumber", Text(40, strip=True, line=True), "Charter number")
    browser = signed_in(account("operator@harbour.example", "operator"))
    here = upload(browser, TABLE)
    html = browser.get(here).content.decode()
    assert form_fields(html)["t0-c1"] == "charterNumber"
    assert '<option value="charterNumber" selected>Charter number</option>' in html
    assert "orgKind" not in html
    browser.post(here, {**form_fields(html), "do": "preview"})
    work()
    browser.post(here, {"do": "import"})
    work()
    assert document("company", "alder-house")["company"]["charterNumber"] == "AB 12"


def test_a_field_of_the_schema_is_imported_by_command(declare, tmp_path):
    declare("charterNumber", Text(40, strip=True, line=True), "Charter number")
    (tmp_path / "members.csv").write_text(TABLE)
    done = CliRunner().invoke(main, ["import", str(tmp_path / "members.csv")])
    assert done.exit_code == 0, done.output
    assert 'field = "charterNumber"' in done.output
    assert document("company", "alder-house")["company"]["charterNumber"] == "AB 12"


def test_a_mapping_that_a_person_wrote_names_a_field_of_the_schema(declare, tmp_path):
    declare("charterNumber", Text(40, strip=True, line=True), "Charter number")
    (tmp_path / "members.csv").write_text(TABLE.replace("Charter number", "Urkunde"))
    mapping = prepare(tmp_path / "members.csv").mapping_text()
    mapping = mapping.replace('field = ""', 'field = "charterNumber"')
    assert import_table(prepare(tmp_path / "members.csv", mapping)).losses == []
    assert document("company", "alder-house")["company"]["charterNumber"] == "AB 12"


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [
        (Text(200, lines=4), '"one\ntwo  three"', "one\ntwo  three"),
        (Choice(("red", "green")), "GREEN", "green"),
        (Number(), '"1,200.5"', 1200.5),
        (Boolean(), "Ja", True),
        (Boolean(), "no", False),
        (DATE, "31.12.1999", "1999-12-31"),
    ],
    ids=["text", "choice", "number", "yes", "no", "date"],
)
def test_a_field_is_read_by_its_kind(declare, tmp_path, kind, cell, value):
    declare("charter", kind, "Charter")
    (tmp_path / "members.csv").write_text(f"Company,Charter\nAlder House,{cell}\n")
    ((_, line),) = import_table(prepare(tmp_path / "members.csv"), ImportOptions(dry_run=True)).records.companies
    assert line["company"]["charter"] == value


def test_a_cell_that_is_neither_yes_nor_no_is_lost(declare, tmp_path):
    declare("charter", Boolean(), "Charter")
    (tmp_path / "members.csv").write_text("Company,Charter\nAlder House,perhaps\n")
    (loss,) = import_table(prepare(tmp_path / "members.csv"), ImportOptions(dry_run=True)).losses
    assert loss.reason == "is neither yes nor no"


def test_an_additional_member_gives_way_to_a_field_of_its_name(declare):
    assert field_of("Company number", COMPANIES) == "extra:registrationNumber"
    assert field_of("Registered number", COMPANIES) == field_of("Company number", COMPANIES)
    declare("registrationNumber", Text(40, line=True), "Registration number")
    assert field_of("Company number", COMPANIES) == "registrationNumber"
    assert "extra:registrationNumber" not in fields_of(COMPANIES)


def test_members_that_no_cell_can_give_are_no_fields_of_tables():
    assert {"treasuryAmount", "updatedAt", "formerNames", "logo"}.isdisjoint(fields_of(COMPANIES))
    assert {"documentId", "updatedAt", "positions"}.isdisjoint(fields_of(PEOPLE))


def test_every_imported_field_of_the_schema_is_a_field_of_tables_or_of_no_kind_that_a_cell_has():
    schema = registry_schema("USD")
    offered = {name.partition(".")[0] for name in (*fields_of(COMPANIES), *fields_of(PEOPLE))}
    imported = {*schema.company.imported, *schema.person.imported}
    assert imported - offered == {"treasuryAmount", "updatedAt", "reviewedAt", "formerNames", "documentId"}


def strings_in(node: ast.AST) -> set[str]:
    """Return the texts of a literal collection, with those of the collections in it."""
    values = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {value for value in values if isinstance(value, str)}


def test_no_module_of_tables_repeats_the_list_of_fields():
    schema = registry_schema("USD")
    names = {field.name for record in (schema.company, schema.person) for field in record.fields}
    repeated = []
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if name == FOREIGN or not name.startswith(OF_TABLES):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_collection = isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)
            if is_collection and len(names & strings_in(node)) > 5:
                repeated.append(f"{name}:{node.lineno}")
    assert repeated == []


def test_fields_keep_the_words_of_the_catalogue_when_others_are_declared(declare):
    before = {heading: field_of(heading, COMPANIES) for heading in ("Firma", "Branche", "Logo", "Slug", "Gründung")}
    declare("charterNumber", Text(40), "Charter number")
    assert {heading: field_of(heading, COMPANIES) for heading in before} == before
    assert all(before.values())
