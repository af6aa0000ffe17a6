"""Columns of tables hold declared fields: recognized by heading, read by their kind, every loss reported."""

import pytest

from make.registry import document
from muniment import config
from muniment.config import Config
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest
from muniment.registry.declared.current import refresh
from muniment.registry.models import Company, Person
from muniment.registry.publishing.upgrade import bring_up_to_date
from muniment.registry.settings.versions import apply_settings, follow
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.headings import field_of
from muniment.registry.tables.mapping import write_mapping
from muniment.registry.tables.operations import import_table, prepare
from muniment.registry_toml.document import RegistrySettings
from muniment.schema.declared.presets import PRESETS, SYNONYMS
from muniment.schema.objects import registry_schema

pytestmark = pytest.mark.django_db
TABLES = (
    {"key": "exhibits", "label": "Objects on display", "kind": "number", "min": 0, "max": 5_000_000},
    {"key": "budget", "label": "Annual budget", "kind": "money"},
    {"preset": "foundedOn"},
    {"key": "form", "label": "Legal form", "kind": "choice", "choices": ["e.V.", "gGmbH"]},
    {"key": "shop", "label": "Shop", "kind": "link"},
    {"preset": "lei"},
    {"key": "origin", "label": "Origin", "kind": "country"},
    {"key": "motto", "label": "Motto", "kind": "text", "max": 12},
    {"of": "person", "key": "born", "label": "Born", "kind": "date"},
)


@pytest.fixture(autouse=True)
def declared(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({"MUNIMENT_CURRENCY": "EUR"}, data=tmp_path))
    settings.CURRENCY = "EUR"
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("EUR")

    def declare(*tables):
        apply_settings(COMMAND, RegistrySettings(fields=tables))
        follow()
        refresh()
        bring_up_to_date()

    declare(*TABLES)
    return declare


def prepared(tmp_path, text, name="museums.csv", mapping=""):
    file = tmp_path / name
    file.write_text(text)
    return prepare(file, mapping)


HEAD = "Name;Objects on display;Annual budget (EUR);Gegründet am;Legal form;Shop;LEI-Code;Origin;Motto\n"
GOOD = "Harbour Museum;1.200,5;2.500.000;31.12.1999;E.V.;shop.example;5299 000e xample000096;Norwegen;Sea\n"
BAD = "Mole Museum;many;2 Mio. USD;1999;AG;none of it;5299000EXAMPLE000097;Atlantis;Much too long a motto\n"


def test_columns_are_recognized_and_read_by_the_kind_of_the_field(tmp_path):
    found = prepared(tmp_path, HEAD + GOOD + GOOD.replace("Harbour", "Quay").replace("1.200,5", "7"))
    fields = {column.heading: column.field for column in found.mapping.table[0].column}
    assert list(fields.values()) == [
        "name",
        "exhibits",
        "budget",
        "foundedOn",
        "form",
        "shop",
        "lei",
        "origin",
        "motto",
    ]
    result = import_table(found)
    assert result.losses == []
    assert Company.objects.get(slug="harbour-museum").extra == {
        "exhibits": 1200.5,
        "budget": "€2.5M",
        "foundedOn": "1999-12-31",
        "form": "e.V.",
        "shop": "https://shop.example",
        "lei": "5299000EXAMPLE000096",
        "origin": "NO",
        "motto": "Sea",
    }
    assert document("company", "harbour-museum")["company"]["exhibits"] == 1200.5


def test_every_value_that_is_left_out_is_reported_with_its_reason(tmp_path):
    result = import_table(prepared(tmp_path, HEAD + GOOD + GOOD.replace("Harbour", "Quay") + BAD))
    assert Company.objects.get(slug="mole-museum").extra == {}
    assert {each.column: each.reason for each in result.losses} == {
        "Objects on display": "is not a number",
        "Annual budget (EUR)": "is in USD; this registry uses EUR",
        "Gegründet am": "names no day",
        "Legal form": '"AG" is none of the choices',
        "Shop": "is not a web address",
        "LEI-Code": "must be an LEI: 20 letters and digits, the last two are check digits, not '5299000EXAMPLE000097'",
        "Origin": "is not a known country",
        "Motto": "has 21 characters; at most 12 are allowed",
    }
    assert {each.row for each in result.losses} == {4}


def test_a_number_beyond_the_limits_of_its_field_is_left_out(tmp_path):
    result = import_table(prepared(tmp_path, "Name,Objects on display\nHarbour Museum,9000000\nMole Museum,3\n"))
    assert [each.reason for each in result.losses] == ["must be at most 5,000,000, not 9000000"]
    assert Company.objects.get(slug="mole-museum").extra == {"exhibits": 3}


def test_an_unclear_order_of_dates_and_a_missing_currency_are_asked_for(tmp_path):
    found = prepared(tmp_path, "Name,Founded,Annual budget\nHarbour Museum,03/04/1999,1200\n")
    questions = found.mapping.questions()
    assert [each.split(": choose ")[1].split(" = ")[0] for each in questions] == ["order", "currency"]
    with pytest.raises(BadRequest):
        import_table(found)


def test_words_of_the_mapping_give_choices(tmp_path):
    text = "Name,Legal form\nHarbour Museum,Verein\nMole Museum,?\n"
    mapping = write_mapping(prepared(tmp_path, text).mapping).replace(
        'field = "form"', 'field = "form"\nwords = { "verein" = "e.V." }'
    )
    assert import_table(prepared(tmp_path, text, mapping=mapping)).losses == []
    assert Company.objects.get(slug="harbour-museum").extra == {"form": "e.V."}


def test_people_have_declared_fields_too(tmp_path):
    text = "First name,Last name,Born,Role,Company\nAda,Moor,29.02.1980,Chair,\n"
    import_table(prepared(tmp_path, text, "people.csv"))
    assert Person.objects.get(name="Ada Moor").extra == {"born": "1980-02-29"}


def test_an_additional_member_with_the_name_of_a_field_is_read_as_the_field(tmp_path):
    text = 'Name,Number\nHarbour Museum,"1,200"\n'
    mapping = write_mapping(prepared(tmp_path, text).mapping).replace('field = ""', 'field = "extra:exhibits"')
    assert import_table(prepared(tmp_path, text, mapping=mapping)).losses == []
    assert Company.objects.get(slug="harbour-museum").extra == {"exhibits": 1200}


def test_a_mapping_that_names_a_removed_field_says_how_to_keep_the_column(tmp_path, declared):
    text = HEAD + GOOD
    mapping = write_mapping(prepared(tmp_path, text).mapping)
    assert "#   exhibits, budget" in mapping or "exhibits" in mapping
    declared(*TABLES[1:])
    with pytest.raises(BadRequest) as refusal:
        prepared(tmp_path, text, mapping=mapping)
    assert "there is no field 'exhibits' of companies; to keep the column as an additional member" in str(refusal.value)


def test_a_retired_field_is_not_offered(declared):
    declared({**TABLES[0], "retired": True})
    assert field_of("Objects on display", COMPANIES) == ""


@pytest.mark.parametrize("preset", PRESETS)
def test_headings_mean_the_fields_of_presets(preset, declared):
    declared({"preset": preset}, {"preset": preset, "of": "person"})
    for word in (preset, PRESETS[preset]["label"], *SYNONYMS[preset].split()):
        assert field_of(word, COMPANIES) == field_of(word, PEOPLE) == preset, word
