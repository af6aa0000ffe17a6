"""The kinds of values: what each accepts, what it stores, how it is written back, and what is said of the rest."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.schema.kinds import (
    ANSWER,
    CHANGE,
    DATE,
    MOMENT,
    MONTH,
    Anything,
    Boolean,
    Choice,
    Integer,
    Items,
    Link,
    Money,
    Number,
    Slug,
    Text,
    month_and_year,
    parse_month_and_year,
)
from muniment.schema.objects import registry_schema
from muniment.schema.validation import Validation

MONEY = Money(12, "USD")
ADDRESSES = {"icon", "picture", "website", "dao_website", "link", "logo_url"}
"""Names of texts that lead to another site; `url` is that of a page of this one."""


def read(kind, value, *, change=True):
    validation = Validation(change=change)
    found = validation.read(kind, value)
    return found, [fault.reason for fault in validation.faults]


@pytest.mark.parametrize(
    ("kind", "value", "stored", "written"),
    [
        (Text(5), "abcde", "abcde", "abcde"),
        (Text(5), " a ", " a ", " a "),
        (Text(5, strip=True), "  abcde  ", "abcde", "abcde"),
        (Text(), "", "", None),
        (Link(40), "https://example.org/a", "https://example.org/a", "https://example.org/a"),
        (Link(40), "", "", None),
        (Slug(), "夜明け", "夜明け", "夜明け"),
        (Slug(), "", None, None),
        (Choice(("a", "b")), "b", "b", "b"),
        (Choice(("a", "b")), "", None, None),
        (DATE, "2024-02-29", date(2024, 2, 29), "2024-02-29"),
        (DATE, "", None, None),
        (MONTH, "march 2024", date(2024, 3, 1), "March 2024"),
        (MOMENT, "2024-03-01T00:00:00+01:00", datetime(2024, 2, 29, 23, tzinfo=UTC), "2024-02-29T23:00:00.000000Z"),
        (MONEY, "USD 1.2M", 120_000_000, "$1.2M"),
        (MONEY, "1,249,999.99", 124_999_999, "$1249999.99"),
        (MONEY, "", None, None),
        (Integer(), 5.0, 5, 5),
        (Integer(), 0, 0, 0),
        (Integer(9), 9, 9, 9),
        (Number(), 12.0, 12, 12),
        (Number(), 0.25, 0.25, 0.25),
        pytest.param(Number(), 10**400, 10**400, 10**400, id="a number beyond any float"),
        (Boolean(), False, False, False),
        (Items(Text(3), 2), ["a", "b"], ["a", "b"], ["a", "b"]),
        (Anything(), {"a": 1}, {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_that_fits_is_stored_and_written_back(kind, value, stored, written):
    assert read(kind, value) == (stored, [])
    assert type(read(kind, value)[0]) is type(stored)
    assert kind.wire(stored) == written


def test_an_amount_is_published_rounded_and_kept_exact():
    assert MONEY.show(124_999_999) == "$1.2M"
    assert MONEY.show(None) is None
    assert MONEY.show(0) == "$0"


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (Text(5), 5, "must be text, not a number"),
        (Text(5), None, "must be text, not null"),
        (Text(5), "abcdef", "has 6 characters; at most 5 are allowed"),
        (Link(9), "https://example.org", "has 19 characters; at most 9 are allowed"),
        (Link(), "example.org", "must be a web address such as https://example.org, not 'example.org'"),
        (Link(), "ftp://example.org", "must be a web address such as https://example.org, not 'ftp://example.org'"),
        (Link(), "https://a b.org", "must be a web address such as https://example.org, not 'https://a b.org'"),
        (Link(), "https://[", "must be a web address such as https://example.org, not 'https://['"),
        (Slug(), "a/b", "contains the character U+002F, which is not allowed in a URL"),
        (Slug(), ["a"], "must be text, not a list"),
        (Choice(("a", "b")), "A", "must be one of a, b, not 'A'"),
        (Choice(("a", "b")), True, "must be one of a, b, not true"),
        (Choice(("a", "b")), {}, "must be one of a, b, not an object"),
        (DATE, "2024-2-1", "must be a date such as 2024-03-31, not '2024-2-1'"),
        (DATE, "20240201", "must be a date such as 2024-03-31, not '20240201'"),
        (DATE, 2024, "must be text, not a number"),
        (MONTH, "2024-03", "must be a month and year such as March 2024, not '2024-03'"),
        (MOMENT, "today", "must be an RFC 3339 timestamp such as 2026-11-21T10:00:00Z, not 'today'"),
        (MONEY, "a lot", "must be an amount such as $1.2M, of at most $1000T, not 'a lot'"),
        (MONEY, 5, "must be text, not a number"),
        (MONEY, "$1.00000000M", None),
        (MONEY, "$1.000000000M", "has 13 characters; at most 12 are allowed"),
        (Integer(), 1.5, "must be a whole number from 0 to 2,147,483,647, not 1.5"),
        (Integer(), -1, "must be a whole number from 0 to 2,147,483,647, not -1"),
        (Integer(), 2**31, "must be a whole number from 0 to 2,147,483,647, not 2147483648"),
        (Integer(), True, "must be a whole number from 0 to 2,147,483,647, not true"),
        (Integer(), "5", "must be a whole number from 0 to 2,147,483,647, not '5'"),
        (Number(), float("nan"), "must be a number, not nan"),
        (Number(), True, "must be a number, not true"),
        (Number(), "5", "must be a number, not '5'"),
        (Boolean(), 1, "must be true or false, not 1"),
        (Items(Text()), "a", "must be a list, not text"),
        (Items(Text(), 1), ["a", "b"], "has 2 entries; at most 1 are allowed"),
        (Anything(), [], "must be an object, not a list"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_rule(kind, value, reason):
    assert read(kind, value)[1] == ([reason] if reason else [])


def test_a_long_value_is_shown_by_its_beginning():
    assert read(DATE, "x" * 500)[1] == [f"must be a date such as 2024-03-31, not '{'x' * 79}…'"]
    assert read(Integer(9), int("9" * 500))[1] == [f"must be a whole number from 0 to 9, not {'9' * 79}…"]


def test_an_import_keeps_white_space_so_that_an_export_round_trips():
    assert read(Text(9, strip=True), " a ", change=False) == (" a ", [])


def test_a_change_is_described_with_its_limits_and_an_answer_without():
    kinds = (Text(5), Integer(), Items(Text(3), 2), MONEY)
    assert [kind.schema(CHANGE) for kind in kinds] == [
        {"type": "string", "maxLength": 5},
        {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2},
        {"type": "string", "maxLength": 12},
    ]
    assert [kind.schema(ANSWER) for kind in kinds] == [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
    ]


def test_every_declared_address_is_judged_by_one_rule():
    """Texts named so are links: a page or a client follows them."""
    schema = registry_schema("USD")
    fields = {}

    def walk(kind, path):
        for each in getattr(kind, "fields", ()):
            fields[f"{path}.{each.name}"] = each.kind
            walk(each.kind, f"{path}.{each.name}")
        of = getattr(kind, "of", None)
        if of is not None:
            walk(of, path)

    for record in (schema.bundle, schema.person, schema.framework):
        walk(record, "")
    addresses = {path: kind for path, kind in fields.items() if path.rpartition(".")[2] in ADDRESSES}
    assert {path for path, kind in addresses.items() if not isinstance(kind, Link)} == set()
    assert {".company.icon", ".company.website", ".company.dao_website"} <= addresses.keys()
    for kind in addresses.values():
        for value in ("javascript:alert(1)", "drive.example/x", "//x.example/a", "https://", 'https://x.example/"a'):
            assert [str(breach.reason) for breach in kind.breaches(value, ("a",))] == [
                f"must be a web address such as https://example.org, not {value!r}"
            ]
        assert list(kind.breaches("https://x.example/a?b=c#d", ("a",))) == []


@pytest.mark.requirement("format.created-at")
def test_a_listing_date_is_shown_as_month_and_year():
    assert month_and_year(date(2024, 3, 31)) == "March 2024"


@given(st.dates(date(1000, 1, 1), date(2999, 12, 31)))
def test_month_and_year_reads_back_as_the_first_of_that_month(day):
    assert parse_month_and_year(month_and_year(day)) == day.replace(day=1)


@pytest.mark.parametrize("text", ["", "2024", "Marsh 2024", "March 24", "March 20244", "March  ", "3 2024"])
def test_a_text_that_is_not_a_month_and_year_is_refused(text):
    with pytest.raises(ValueError, match="is not a month and year"):
        parse_month_and_year(text)
