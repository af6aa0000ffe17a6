"""The values of filters and bounds, as every surface reads them."""

import pytest

from muniment.schema.filters import ReversedRange
from muniment.schema.objects import registry_schema
from muniment.store.lists.finding import COLUMNS
from muniment.store.queries import SORTS

LISTINGS = registry_schema("EUR").listings
COMPANY = LISTINGS["company"].criteria


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
def test_every_example_works_and_is_written_so_that_it_reads_the_same(listing):
    for each in listing.criteria.values():
        value = each.parse(each.example)
        assert each.parse(each.write(value)) == value
        assert each.help
        assert each.rule


def test_every_order_and_range_has_a_column():
    for listing in LISTINGS.values():
        assert set(listing.sorts) <= set(SORTS)
        assert set(listing.ranges) <= {*COLUMNS, "listed"}


@pytest.mark.parametrize(
    ("text", "minor"),
    [
        ("1.5M", 150_000_000),
        ("$2,000,000", 200_000_000),
        ("€ 2 million", 200_000_000),
        ("1500000", 150_000_000),
        ("0", 0),
        ("9" * 25, 10**17),
    ],
)
def test_amounts(text, minor):
    assert COMPANY["treasuryMin"].parse(text) == minor


def test_a_day_and_a_moment_are_read_alike():
    parse = COMPANY["listedFrom"].parse
    assert parse("2024-03-31") == parse("2024-03-31T23:00:00Z") == parse("2024-04-01T00:30:00 02:00")
    since = COMPANY["updatedSince"].parse
    assert since("2024-03-31") == since("2024-03-31T00:00:00Z")


@pytest.mark.parametrize(("given", "code"), [("fr", "FR"), ("France", "FR"), ("turkiye", "TR"), ("Nowhere", "Nowhere")])
def test_a_country_is_given_by_its_letters_or_name(given, code):
    assert COMPANY["country"].parse(given) == code


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("treasuryMin", "much"),
        ("treasuryMin", "-1"),
        ("teamMin", "1.5"),
        ("teamMin", "99999999999"),
        ("listedFrom", "31.03.2024"),
        ("listedFrom", "2024-02-31"),
        ("updatedSince", "yesterday"),
        ("status", "Active"),
        ("hasToken", "yes"),
        ("type", " "),
        ("type", "x" * 201),
        ("country", ""),
    ],
)
def test_a_value_that_is_none_is_refused(name, text):
    with pytest.raises(ValueError):
        COMPANY[name].parse(text)


def test_a_reversed_range_names_both_bounds():
    with pytest.raises(ReversedRange, match="teamMin is greater than teamMax"):
        LISTINGS["company"].select({"teamMin": 5, "teamMax": 4})
