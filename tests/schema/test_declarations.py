"""Declarations of fields: what is refused, the presets, and what removing or changing one does."""

import re
from pathlib import Path

import pytest

import muniment
from muniment.schema.declared.declarations import declare, field_of, read_declarations
from muniment.schema.declared.faults import FieldsError
from muniment.schema.declared.presets import PRESETS
from muniment.schema.objects import registry_schema
from muniment.schema.validation import Validation

SCHEMA = registry_schema("USD")
TEXT = {"key": "berth", "label": "Berth", "kind": "text"}


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (7, "field 1: must be a table, not 7"),
        ({**TEXT, "colour": "red"}, "field 1 (berth): colour is not one of preset, of, key"),
        ({"preset": "fax"}, "preset must be one of lei, tokenContract"),
        ({**TEXT, "of": "framework"}, "of must be company or person, not 'framework'"),
        ({**TEXT, "label": 5}, "label must be text, not 5"),
        ({**TEXT, "label": " "}, "label is missing"),
        ({**TEXT, "label": "x" * 61}, "label has 61 characters; at most 60 are allowed"),
        ({**TEXT, "label": "a\nb"}, "label contains the control character U+000A"),
        ({**TEXT, "key": "Berth no"}, "key must be 2 to 40 letters and digits that begin with a small letter"),
        (
            {**TEXT, "kind": "colour"},
            "kind must be one of text, number, money, date, choice, link, identifier, country",
        ),
        ({**TEXT, "kind": "phone number that is long"}, "kind has 25 characters"),
        ({**TEXT, "retired": "yes"}, "retired must be true or false, not 'yes'"),
        ({**TEXT, "choices": ["a"]}, "choices is only for the kind choice"),
        ({**TEXT, "min": 1}, "min is only for the kind number"),
        ({**TEXT, "max": 2_001}, "max of a text must be a whole number from 1 to 2,000, not 2001"),
        ({**TEXT, "kind": "choice"}, "choices must be a list of 1 to 100 texts"),
        ({**TEXT, "kind": "choice", "choices": [""]}, "choices must be texts of one line and at most 100 characters"),
        ({**TEXT, "kind": "choice", "choices": ["a", "A"]}, "choices has a text twice"),
        ({**TEXT, "kind": "identifier", "check": "vat"}, "check must be one of lei, isin, evm, contract, not 'vat'"),
        ({**TEXT, "kind": "number", "min": "1"}, "min and max must be numbers"),
        ({**TEXT, "kind": "number", "min": 2, "max": 1}, "min is greater than max"),
        ({**TEXT, "key": "industry"}, "industry: the name industry is taken by a built-in field or parameter"),
        ({**TEXT, "key": "teamMin"}, "the name teamMin is taken"),
        ({**TEXT, "key": "pageSize"}, "the name pageSize is taken"),
        ({**TEXT, "key": "treasury", "kind": "money"}, "the name treasury is taken"),
        ({**TEXT, "key": "csrfMiddlewareToken"}, "the name csrfMiddlewareToken is taken"),
    ],
)
def test_a_faulty_declaration_is_refused_and_says_why(table, fault):
    with pytest.raises(FieldsError) as refusal:
        read_declarations([table], SCHEMA)
    assert any(fault in each for each in refusal.value.faults), refusal.value.faults


def is_taken(name):
    try:
        read_declarations([{**TEXT, "key": name}], SCHEMA)
    except FieldsError as refused:
        return "is taken" in str(refused.faults)
    return False


OF_EVERY_OBJECT = (
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"),
    "valueOf",
)
"""Members of `Object.prototype` that a key could be called."""


@pytest.mark.parametrize("name", [*OF_EVERY_OBJECT, "prototype", "then", "toJSON"])
def test_no_field_has_the_name_of_what_every_object_of_a_script_has(name):
    assert is_taken(name)


def test_no_field_has_the_name_of_what_scripts_ask_forms_for():
    scripts = Path(muniment.__file__).with_name("web").joinpath("static", "web").glob("*.js")
    used = re.compile(r"(?<!\")\bform\.(\w+)")
    asked = {name for each in scripts for name in used.findall(each.read_text())} - {"everything"}
    assert {"dataset", "elements", "requestSubmit"} <= asked
    assert [name for name in sorted(asked) if not is_taken(name)] == []


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        ("berth", 'fields must be tables that begin with "[[fields]]"'),
        ([TEXT, TEXT], "berth: a field of a company with the name berth is declared already"),
        (
            [{**TEXT, "kind": "link"}, {**TEXT, "key": "hasBerth"}],
            "hasBerth: a field of a company with the name hasBerth is declared already",
        ),
        (
            [TEXT, {**TEXT, "of": "person", "kind": "number"}],
            "berth: the fields of this name of companies and people must be of the same kind",
        ),
        ([{**TEXT, "key": f"berth{n}"} for n in range(51)], "there are 51 fields of a company; at most 50 are allowed"),
    ],
)
def test_declarations_that_clash_are_refused(tables, fault):
    with pytest.raises(FieldsError) as refusal:
        read_declarations(tables, SCHEMA)
    assert fault in refusal.value.faults


def test_every_preset_can_be_declared_and_relabelled():
    tables = [{"preset": name} for name in PRESETS]
    tables[0] |= {"label": "Legal entity", "in_lists": False}
    found = read_declarations(tables, SCHEMA)
    assert [each.key for each in found] == [*PRESETS]
    field = declare(SCHEMA, found, "USD").company.by_name["lei"]
    assert (field.label, field.summary) == ("Legal entity", "item")


@pytest.mark.parametrize(
    ("check", "given", "is_valid"),
    [
        ("lei", "5299000example000096", True),
        ("lei", "5299000EXAMPLE000069", False),
        ("isin", " xx000exampl0 ", True),
        ("isin", "XX000EXAMPL2", False),
        ("isin", "XX000EXAMPL", False),
        ("evm", "0x" + "aB" * 20, True),
        ("evm", "0x" + "g" * 40, False),
        ("contract", "0x" + "aB" * 20, True),
        ("contract", "0x0" + "49" * 31, True),
        ("contract", "So" + "1" * 30, True),
        ("contract", "token.near", True),
        ("contract", "0x" + "aB" * 19, False),
        ("contract", "0x" + "zz" * 20, False),
        ("", "HRB 12345 B", True),
        ("", "<b>", False),
    ],
)
def test_an_identifier_is_checked(check, given, is_valid):
    table = {**TEXT, "kind": "identifier", **({"check": check} if check else {})}
    (declared,) = read_declarations([table], SCHEMA)
    validation = Validation(change=True)
    stored = validation.read(field_of(declared, "USD").kind, given)
    assert (not validation.faults) is is_valid
    assert stored == (given.strip().upper() if check in {"lei", "isin"} else given)


def test_without_declared_fields_the_schema_is_the_built_in_one():
    assert declare(SCHEMA, (), "USD") is SCHEMA
