"""Columns without a field: each is proposed as a declared field of the kind of its values, and kept all at once."""

import pytest

from make.registry import document
from muniment import config, declared_fields
from muniment.config import Config
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest
from muniment.registry.imports.undoing import undo_import
from muniment.registry.publishing.upgrade import bring_up_to_date
from muniment.registry.settings.versions import latest_version
from muniment.registry.tables.fields import Column
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.keeping import declaration_of, declare_kept, keep_all, key_of, propose_kind
from muniment.registry.tables.mapping import FileMapping, TableMapping, read_mapping, write_mapping
from muniment.registry.tables.operations import convert, import_table, prepare
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.records import KnownRows, records_of
from muniment.registry.tables.values import value_of
from muniment.schema.declared.declarations import declare
from muniment.schema.objects import registry_schema


def kind(*values):
    column = Column("x")
    propose_kind(column, values)
    return column.kind


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["yes", "no", "Yes"], "yesno"),
        (["1,200", "12", "7.5"], "number"),
        (["007", "012"], "text"),
        (["31.12.2024", "01.02.2023"], "date"),
        (["https://a.example/x", "b.example"], "link"),
        (["oak; elm", "elm", "oak; fir", "fir; elm"], "list"),
        (["north", "south"] * 5, "choice"),
        (["north", "south", "east"], "text"),
        (["north"] * 10, "text"),
        (["A sentence, with a comma", "Another one, too"], "text"),
        (["Salem, Oregon", "Portland, Oregon", "Salem, Oregon", "Portland, Oregon"], "text"),
        (["oak, elm", "elm, oak", "oak, elm", "elm, oak"], "list"),
        ([], ""),
    ],
)
def test_the_kind_is_that_of_the_values(values, expected):
    assert kind(*values) == expected


@pytest.mark.parametrize(
    ("heading", "values", "expected"),
    [
        ("agency_number", ["1024", "17"], "text"),
        ("SIRET", ["81223113200026", "67895644300011"], "text"),
        ("constituentid", ["9", "12"], "text"),
        ("code_region", ["53", "28"], "text"),
        ("Population", ["1024", "17"], "number"),
        ("beginyear", ["1923", "1906"], "text"),
        ("Called", ["21/11/2018 first"] * 9 + ["21/11//2018 first"] * 9, "text"),
        ("Setting", ["x", "(x)", "x?"], "text"),
        ("Setting", ["x", "X"], "yesno"),
        ("Rent", ["1923.50", "1906"], "number"),
        ("life", ["Danish, 1923 - 2013", "Danish, 1906 - 2005", "Swiss, 1906 - 2005", "Swiss, 1923 - 2013"], "text"),
        ("change", ["up 23,7 %", "up 2,7 %", "down 23,7 %", "down 2,7 %"], "text"),
        ("address_complete", ["1 Elm Hall, Oslo", "1 Elm Hall, Rome", "2 Oak Hall, Oslo", "2 Oak Hall, Rome"], "text"),
        ("Anschrift", ["Elmweg 1\n04157 Leipzig", "Oakweg 2\n04157 Leipzig"], "text"),
        ("trees", ["oak, elm", "elm, oak", "oak, fir", "fir, elm"], "list"),
    ],
)
def test_identifiers_years_and_parts_of_one_value_are_texts(heading, values, expected):
    column = Column(heading)
    propose_kind(column, values)
    assert column.kind == expected


@pytest.mark.parametrize(
    ("heading", "key"),
    [
        ("Number of exhibits", "numberOfExhibits"),
        ("index-entry-number", "indexEntryNumber"),
        ("Größe (m²)", "groeM2"),
        ("役割", "field"),
        ("What were you hoping to do or see at the retreat?", "whatWereYouHopingToDoOrSeeAtTheRetreat"),
        ("7", "field7"),
    ],
)
def test_keys_are_made_of_the_first_words_of_a_heading(heading, key):
    found = key_of(heading)
    assert found[:3] == key[:3]
    assert len(found) <= 40


def test_names_are_kept_apart():
    columns = [Column("Link", kind="link"), Column("link", kind="text"), Column("page", kind="text"), Column("Gone")]
    mapping = FileMapping([TableMapping("t", "companies", 1, columns)])
    assert keep_all(mapping) == 3
    names = [each.field for each in columns]
    assert names[0] == "extra:link"
    assert len({*names[:3]}) == 3
    assert names[2] != "extra:page"  # a parameter of lists has that name
    assert names[3] == ""


def kept(*headings, kind="text", of="companies"):
    columns = [Column(heading, kind=kind) for heading in headings]
    keep_all(FileMapping([TableMapping("t", of, 1, columns)]))
    return [each.field.removeprefix("extra:") for each in columns]


def test_a_heading_without_latin_letters_gives_the_number_of_its_column():
    assert kept("設立の目的", "Категория", "Member (会員)", "نوع العضوية") == [
        "column1",
        "column2",
        "member",
        "column4",
    ]
    assert kept("名前", "column1", "2019", "2019 ") == ["column1", "column1x2", "field2019", "field2019x2"]


def test_the_number_is_that_of_the_file_whatever_the_order_of_the_mapping():
    sheet = Sheet("t", [["Company", "名前", "Website", "説明文"], ["Alder Trust", "a", "alder.example", "b"]])
    mapping = read_mapping(write_mapping(propose([sheet], "t.csv"), [sheet]))
    assert [each.heading for each in mapping.table[0].column][:2] == ["名前", "説明文"]
    keep_all(mapping, [sheet])
    assert [each.field for each in mapping.table[0].column][:2] == ["extra:column2", "extra:column4"]


def test_a_mapping_is_written_with_the_letters_of_the_file_and_read_as_it_was():
    headings = ["Straße", "Größe 🌳", 'Q"u\\ote', "a\x7fb"]
    column = [Column(heading, f"extra:c{n}") for n, heading in enumerate(headings)]
    written = write_mapping(FileMapping([TableMapping("Bäume", "companies", 1, column)]))
    assert 'name = "Bäume"' in written
    assert 'heading = "Größe 🌳"' in written
    assert [each.heading for each in read_mapping(written).table[0].column] == headings


def test_a_key_is_no_parameter_of_another_field():
    """Fields of numbers are filtered by priceMin and hasPrice, which columns of these names would have as their key."""
    names = kept("Price", "Price min", "Price max", "Has price", "PRICE", kind="number")
    assert names == ["price", "priceMin2", "priceMax2", "hasPrice2", "price3"]
    assert kept("Has price", "Price", kind="number") == ["hasPrice", "price2"]


def test_the_keys_of_declared_fields_are_not_given_again(settings):
    declared = {"label": "Rooms", "kind": "number"}
    tables = [{"of": "company", "key": "rooms", **declared}, {"of": "person", "key": "desk", **declared}]
    settings.DECLARED_FIELDS = declared_fields.read(tables)
    assert kept("Rooms", "Desk") == ["rooms2", "desk2"]  # what companies and people have is of one kind
    assert kept("Desk", kind="number") == ["desk"]


def test_a_column_can_be_kept_under_the_name_that_its_report_gives():
    rows = [["Alder Trust", "Ida Alder", "a", "b"], ["Birch Club", "Tom Birch", "c", "d"]]
    sheet = Sheet("t", [["Company Name", "Name", "名前", "説明文"], *rows])
    mapping = propose([sheet], "t.csv")
    losses = records_of([sheet], mapping, KnownRows(), "USD").losses
    fields = [str(loss.fix).rpartition('field = "')[2].removesuffix('".') for loss in losses]
    assert fields == ["extra:name2", "extra:column3", "extra:column4"]
    for column, field in zip(mapping.table[0].column[1:], fields, strict=True):
        column.field = field
    mapping = read_mapping(write_mapping(mapping, [sheet]))
    assert records_of([sheet], mapping, KnownRows(), "USD").losses == []


@pytest.mark.parametrize(
    ("heading", "values", "label", "numbers"),
    [
        ("Fund", ["$1,234.50", "$100.00"], "Fund ($)", [1234.5, 100]),
        ("Fund", ["$5", "5 $"], "Fund ($)", [5, 5]),
        ("Fund", ["USD 5M", "USD 0.5M"], "Fund (USD)", [5_000_000, 500_000]),
        ("Fund", ["C$5", "C$7"], "Fund (CAD)", [5, 7]),
        ("Budget", ["€ 1.234", "€ 99"], "Budget (EUR)", [1234, 99]),
        ("Budget", ["1,5 Mio. €", "2 Mio. €"], "Budget (EUR)", [1_500_000, 2_000_000]),
        ("Budget in EUR", ["€ 1.5", "€ 2"], "Budget in EUR", [1.5, 2]),
        ("Result", ["-$1,234.50", "$55.00", "−$ 2"], "Result ($)", [-1234.5, 55, -2]),
        ("Rent", ["¥500", "¥600"], "Rent (¥)", [500, 600]),
        ("Levy", ["12,5 %", "7 %"], "Levy (%)", [12.5, 7]),
        ("x" * 70, ["€ 5", "€ 6"], f"{'x' * 54} (EUR)", [5, 6]),
    ],
)
def test_amounts_of_one_currency_are_numbers_whose_label_names_it(heading, values, label, numbers):
    column = proposed(heading, values)
    assert (column.kind, column.label) == ("number", label)
    column.field = "extra:sum"
    assert [value_of(column, value, "USD") for value in values] == numbers
    assert declaration_of(column, "company")["label"] == label


@pytest.mark.parametrize(
    ("heading", "values"),
    [
        ("Fund", ["$5", "€6"]),
        ("Fund", ["€5", "about €6"]),
        ("Fund", ["€5", "6"]),
        ("Fund (USD)", ["€5", "€6"]),
        ("Fund (k€)", ["€5", "€6"]),
        ("Fund", ["€5-6", "€7"]),
        ("Levy", ["5%", "6"]),
    ],
)
def test_amounts_without_one_unit_stay_as_they_are_written(heading, values):
    assert proposed(heading, values).kind == "text"


def proposed(heading, values):
    sheet = Sheet("t", [["Company", heading], *([f"Alder {n} Trust", value] for n, value in enumerate(values))])
    return propose([sheet], "t.csv").table[0].column[1]


def test_amounts_in_another_currency_than_that_of_the_label_are_told(settings):
    table = {"of": "company", "key": "budget", "label": "Budget (EUR)", "kind": "number"}
    declarations = declared_fields.read([table, {**table, "key": "fees", "label": "Fees"}])
    settings.DECLARED_FIELDS, settings.SCHEMA = declarations, declare(registry_schema("USD"), declarations, "USD")
    cells = ["€ 12", "12", "EUR 12k", "$ 12", "twelve"]
    found = [value_of(Column("Budget", "budget"), cell, "USD") for cell in cells]
    assert found[:3] == [12, 12, 12_000]
    assert [each.reason for each in found[3:]] == ["is in USD; the field is in EUR", "is not a number"]
    assert "names no currency" in value_of(Column("Fees", "fees"), "€ 12", "USD").reason
    assert "another unit" in value_of(Column("Fees (k€)", "extra:x", kind="number"), "€ 12", "USD").reason


@pytest.mark.django_db
def test_fields_that_cannot_be_declared_are_refused_in_a_sentence(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    columns = [Column("Company", "name"), Column("A", "extra:price", kind="number"), Column("B", "extra:priceMin")]
    columns[2].kind = "number"
    with pytest.raises(BadRequest, match="priceMin") as refusal:
        declare_kept(COMMAND, FileMapping([TableMapping("t", "companies", 1, columns)]), "t.csv")
    assert "another key" in refusal.value.hint


def test_what_is_private_is_never_proposed():
    sheet = Sheet("t", [["Company", "Date of birth", "Exhibits"], ["Alder Trust", "1.2.1970", "12"]])
    [table] = propose([sheet], "t.csv").table
    assert [each.kind for each in table.column] == ["", "", "number"]


def test_the_currency_of_amounts_is_proposed_beside_them():
    sheet = Sheet("t", [["Company", "Sum", "Währung"], ["Alder Trust", "12", "EUR"], ["Birch Trust", "14", "USD"]])
    [table] = propose([sheet], "t.csv").table
    assert [each.kind for each in table.column] == ["", "number", "text"]


TABLE = """Company,Exhibits,Opened on,Rooms,Free entry,Season
Alder Museum,"1,200",2001-02-03,oak|elm,yes,north
Birch Museum,12,2002-03-04,elm,no,south
Cedar Museum,40,2003-04-05,oak|fir,yes,north
"""


@pytest.mark.django_db
def test_kept_columns_become_declared_fields_with_typed_values(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    file = tmp_path / "museums.csv"
    file.write_text(TABLE)
    prepared = prepare(file)
    assert keep_all(prepared.mapping) >= 4
    prepared.mapping = read_mapping(write_mapping(prepared.mapping, prepared.sheets))
    dry = [line["company"] for _, line in convert(prepared).companies]
    made = declare_kept(COMMAND, prepared.mapping, "museums.csv")
    assert {"exhibits", "rooms", "freeEntry"} <= {*made}
    bring_up_to_date()
    assert {each["key"]: each["kind"] for each in latest_version().settings.fields}["rooms"] == "list"
    found = [line["company"] for _, line in convert(prepared).companies]
    assert [(each["exhibits"], each["rooms"], each["freeEntry"]) for each in found] == [
        (1200, ["oak", "elm"], True),
        (12, ["elm"], False),
        (40, ["oak", "fir"], True),
    ]
    assert [each["rooms"] for each in dry] == [each["rooms"] for each in found]
    assert import_table(prepared).losses == []
    assert declare_kept(COMMAND, prepared.mapping, "museums.csv") == []


@pytest.mark.django_db
def test_declared_fields_are_added_changed_and_restored_by_later_imports(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    file = tmp_path / "museums.csv"

    def bring(text):
        file.write_text(text)
        prepared = prepare(file)
        keep_all(prepared.mapping)
        declare_kept(COMMAND, prepared.mapping, file.name)
        bring_up_to_date()
        return import_table(prepared).summary

    # The companies are stored before the field of a column of theirs is declared.
    file.write_text(TABLE)
    import_table(prepare(file))
    added = bring(TABLE)
    assert (added.counts["companies"].changed, added.counts["companies"].unchanged) == (3, 0)
    assert document("company", "alder-museum")["company"]["exhibits"] == 1200
    undo_import(COMMAND, added.import_run)
    assert "exhibits" not in document("company", "alder-museum")["company"]
    counts = bring(TABLE).counts["companies"]
    assert (counts.changed, counts.unchanged) == (3, 0)
    changed = bring(TABLE.replace("oak|elm", "oak|yew").replace("40,2003", "41,2003"))
    counts = changed.counts["companies"]
    assert (counts.changed, counts.unchanged) == (2, 1)
    assert document("company", "alder-museum")["company"]["rooms"] == ["oak", "yew"]
    assert document("company", "cedar-museum")["company"]["exhibits"] == 41
    undo_import(COMMAND, changed.import_run)
    assert document("company", "alder-museum")["company"]["rooms"] == ["oak", "elm"]
    assert document("company", "cedar-museum")["company"]["exhibits"] == 40
    # A cell without a value says nothing of the stored one.
    counts = bring(TABLE.replace('"1,200"', "")).counts["companies"]
    assert (counts.changed, counts.unchanged) == (0, 3)


@pytest.mark.django_db
def test_declared_fields_of_people_are_changed_by_later_imports(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    file = tmp_path / "people.csv"
    mapping = """
        [[table]]
        name = "people"
        kind = "people"
        header = 1
        [[table.column]]
        heading = "Name"
        field = "name"
        [[table.column]]
        heading = "Seat"
        field = "extra:seat"
        kind = "text"
    """
    for seat, changed in (("North Bay", 0), ("North Bay", 0), ("East Bay", 1)):
        file.write_text(f"Name,Seat\nIda Alder,{seat}\n")
        prepared = prepare(file, mapping)
        declare_kept(COMMAND, prepared.mapping, file.name)
        bring_up_to_date()
        summary = import_table(prepared).summary
        assert summary.counts["people"].changed == changed
    assert document("person", "ida-alder")["seat"] == "East Bay"
    undo_import(COMMAND, summary.import_run)
    assert document("person", "ida-alder")["seat"] == "North Bay"
