"""A country is derived where state and postal code leave no other."""

import pytest

from muniment.schema.places import derived_country, state_key, state_of


@pytest.mark.parametrize(
    ("state", "postal_code", "country"),
    [
        ("CA", "94105", "US"),
        ("ca ", "94105-1234", "US"),
        ("California", "941051234", "US"),
        ("US-CA", "94105", "US"),
        ("DC", "20515", "US"),
        ("PR", "00901", "US"),
        ("ON", "K1A 0B1", "CA"),
        ("Québec", "h2x1y4", "CA"),
        ("NSW", "2000", "AU"),
        ("WA", "6000", "AU"),
        ("WA", "98101", "US"),
        ("Bayern", "80331", "DE"),
        ("Bavaria", "80331", "DE"),
        ("BY", "80331", "DE"),
        # Cádiz, Varese, Milan and Rieti have such codes too, and postal codes of five digits.
        ("CA", "11001", ""),
        ("VA", "21100", ""),
        ("MI", "20121", ""),
        ("RI", "02100", ""),
        # Memphis and Trento, Hobart and Nelson: the name of the state decides, or a postal code of one alone.
        ("TN", "38122", ""),
        ("TN", "38103", "US"),
        ("Tennessee", "38122", "US"),
        ("TAS", "7010", ""),
        ("TAS", "7000", "AU"),
        ("Tasmania", "7010", "AU"),
        # Neither alone is enough, nor are two that do not belong together.
        ("CA", None, ""),
        (None, "94105", ""),
        ("TX", "94105", ""),
        ("TX", "7500", ""),
        ("Bayern", "10115", ""),
        ("ON", "V5K 0A1", ""),
        ("somewhere", "94105", ""),
    ],
)
def test_state_and_postal_code_prove_a_country_or_none(state, postal_code, country):
    assert derived_country({"state": state, "zip": postal_code}) == country


def test_a_country_that_an_address_names_is_not_derived():
    assert derived_country({"state": "CA", "zip": "94105", "country": "US"}) == ""


@pytest.mark.parametrize(
    ("text", "country", "state"),
    [
        ("CA", "US", ("US-CA", "California")),
        ("california", "US", ("US-CA", "California")),
        ("Ile de France", "FR", ("FR-IDF", "Île-de-France")),
        ("Lower Saxony", "DE", ("DE-NI", "Niedersachsen")),
        ("California", "", ("US-CA", "California")),
        ("Limburg", "BE", ("BE-VLI", "Limburg")),
        ("Limburg", "", None),  # also of the Netherlands
        ("CA", "", None),
        ("nowhere", "US", None),
        (None, "US", None),
    ],
)
def test_a_state_is_known_by_name_or_code(text, country, state):
    assert state_of({"state": text}, country) == state


@pytest.mark.parametrize(
    ("text", "key"), [("ca", "CA"), (" us-ca", "US-CA"), ("Iowa", "Iowa"), ("Uri", "URI"), ("New South Wales",) * 2]
)
def test_a_filter_takes_names_and_codes_of_any_case(text, key):
    assert state_key(text) == key


@pytest.mark.parametrize("text", ["", "  ", "x" * 201])
def test_a_filter_refuses_what_no_state_can_be(text):
    with pytest.raises(ValueError, match=r"^$"):
        state_key(text)
