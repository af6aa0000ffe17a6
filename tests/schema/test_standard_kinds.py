"""Kinds of values that standards define: exact amounts, and countries."""

import pytest

from muniment.schema.kinds import CHANGE, CONTRACT, Amount, Country, Profile, country_names
from muniment.schema.validation import Validation


def read(kind, value):
    validation = Validation(change=True)
    found = validation.read(kind, value)
    return found, [f"{fault.field} {fault.reason}".strip() for fault in validation.faults]


@pytest.mark.parametrize(
    ("given", "minor_units"),
    [
        ({"amount": "1249999.99", "currency": "USD"}, 124_999_999),
        ({"amount": "1249999.9"}, 124_999_990),
        ({"amount": "0"}, 0),
        ({"amount": "1000000000000000.00"}, 10**17),
    ],
)
def test_an_amount_is_read_to_its_minor_unit(given, minor_units):
    assert read(Amount("USD"), given) == (minor_units, [])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("1.00", "must be an object, not text"),
        ({}, "amount must be a decimal number in text such as 1249999.99, not null"),
        ({"amount": 5.0}, "amount must be a decimal number in text such as 1249999.99, not 5.0"),
        ({"amount": "-1"}, "amount must be a decimal number in text such as 1249999.99, not '-1'"),
        ({"amount": "1.001"}, "amount must be a decimal number in text such as 1249999.99, not '1.001'"),
        ({"amount": "१"}, "amount must be a decimal number in text such as 1249999.99, not '१'"),
        (
            {"amount": "1000000000000000.01"},
            "amount must be at most 1000000000000000, the largest amount allowed, not '1000000000000000.01'",
        ),
        ({"amount": "1", "currency": "EUR"}, "currency must be USD, not 'EUR'"),
        ({"amount": "1", "minor": 100}, "minor is not one of amount, currency"),
    ],
)
def test_what_is_no_amount_is_refused_with_its_member(given, fault):
    assert read(Amount("USD"), given)[1] == [fault]


def test_an_amount_is_written_with_two_decimals():
    kind = Amount("USD")
    assert kind.wire(124_999_999) == {"amount": "1249999.99", "currency": "USD"}
    assert kind.wire(5) == {"amount": "0.05", "currency": "USD"}
    assert kind.wire(None) is None
    assert kind.schema(CONTRACT)["required"] == ["amount", "currency"]
    assert "required" not in kind.schema(CHANGE)


def test_a_country_is_a_code_of_two_letters():
    assert read(Country(), "fr") == ("FR", [])
    assert read(Country(), "") == (None, [])
    assert read(Country(), 33)[1] == ["must be text, not a number"]
    for wrong in ("France", "FRA", "XX", "UK", "f"):
        assert read(Country(), wrong)[1] == [f"must be a country by its two letters such as FR, not {wrong!r}"]


def test_countries_have_the_names_that_people_use_in_their_order():
    names = country_names()
    assert (len(names), names["BO"], names["CI"], names["TW"]) == (249, "Bolivia", "Côte d'Ivoire", "Taiwan")
    assert list(names)[:3] == ["AF", "AX", "AL"]


@pytest.mark.parametrize("text", ["tidal works", " no\u00a0name ", "see our website"])
def test_a_profile_with_spaces_is_refused_in_a_change_and_only_told_by_an_import(text):
    rule = "must be a web address such as https://example.org or the name of a profile, not "
    assert read(Profile(300), text) == (text, [f"{rule}{text.strip()!r}"])
    imported = Validation(change=False)
    assert imported.read(Profile(300), text) == text
    assert (imported.faults, [each.reason for each in imported.warnings]) == ([], [f"{rule}{text.strip()!r}"])
    assert list(Profile(300).breaches(text, (), text)) == []


@pytest.mark.parametrize("text", ["@tidal", " tidal ", "linkedin.com/company/tidal", "https://tidal.example/x"])
def test_a_profile_is_an_address_or_a_name(text):
    assert read(Profile(300), text) == (text, [])
