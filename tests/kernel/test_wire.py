"""Money, dates and moments as the contract shows them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kernel.wire import (
    MAX_MINOR_UNITS,
    UNSET,
    format_money,
    format_price,
    number,
    parse_amount,
    parse_money,
    parse_timestamp,
    timestamp,
)


@pytest.mark.requirement("format.treasury")
@pytest.mark.parametrize(
    ("minor_units", "shown"),
    [
        (0, "$0"),
        (1, "$0"),
        (5, "$0.1"),
        (99_900, "$999"),
        (99_994, "$999.9"),
        (99_995, "$1K"),
        (100_000, "$1K"),
        (125_000, "$1.3K"),
        (124_900, "$1.2K"),
        (120_000_000, "$1.2M"),
        (99_995_000, "$1M"),
        (99_994_999, "$999.9K"),
        (100_000_000_000, "$1B"),
        (100_000_000_000_000, "$1T"),
        (MAX_MINOR_UNITS, "$1000T"),
    ],
)
def test_an_amount_is_shown_with_one_decimal_half_up_and_promoted_at_a_thousand(minor_units, shown):
    assert format_money(minor_units) == shown


@pytest.mark.requirement("format.treasury")
def test_the_currency_of_the_instance_precedes_the_amount():
    assert [format_money(120_000_000, code) for code in ("EUR", "CHF", "SEK")] == ["€1.2M", "CHF 1.2M", "SEK 1.2M"]


@pytest.mark.requirement("import.treasury-parsed")
@pytest.mark.parametrize(
    ("text", "minor_units"),
    [
        ("$1.2M", 120_000_000),
        ("$0", 0),
        ("1,200,000", 120_000_000),
        ("USD 1.2 million", 120_000_000),
        ("1.2m USD", 120_000_000),
        (" $ 3bn ", 300_000_000_000),
        (".5K", 50_000),
        ("$0.005", 1),
    ],
)
def test_an_amount_is_read_as_people_write_it(text, minor_units):
    assert parse_money(text) == minor_units


@pytest.mark.requirement("import.treasury-parsed")
@pytest.mark.parametrize("text", ["", "a lot", "€5", "-5", "1e9", "1,20", "$1.2X", "$10000000T", "1 2"])
def test_a_text_that_is_not_an_amount_is_refused(text):
    with pytest.raises(ValueError, match="is "):
        parse_money(text)


@pytest.mark.parametrize("parse", [parse_money, parse_amount, parse_timestamp])
@pytest.mark.parametrize("text", ["$" + "9" * 10**6, "9" * 10**6, f"2026-11-21T10:00:00.{'0' * 10**6}Z"], ids=len)
def test_a_text_of_a_million_digits_is_refused_unread(parse, text):
    with pytest.raises(ValueError, match=" a"):
        parse(text)


@given(st.integers(0, MAX_MINOR_UNITS))
def test_a_shown_amount_reads_back_to_within_a_half_of_its_last_digit(minor_units):
    shown = format_money(minor_units)
    assert abs(parse_money(shown) - minor_units) <= max(minor_units // 20, 5)
    assert format_money(parse_money(shown)) == shown


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda moment: moment.year < 9999))
def test_a_moment_round_trips_exactly_and_sorts_as_text(moment):
    shown = timestamp(moment)
    assert parse_timestamp(shown) == moment
    assert (shown < timestamp(moment + timedelta(microseconds=1))) is True


def test_a_moment_is_shown_in_utc():
    moment = datetime(2026, 11, 21, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(moment) == "2026-11-21T10:00:00.000000Z"
    assert parse_timestamp("2026-11-21t10:00:00z") == moment.astimezone(UTC)


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-21", "2026-11-21T10:00:00", "yesterday", "2026-13-21T10:00:00Z"]
    + ["2026-02-31T10:00:00Z", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"],
)
def test_a_text_that_is_not_a_moment_is_refused(text):
    with pytest.raises(ValueError, match="is not an RFC 3339 date and time"):
        parse_timestamp(text)


def test_a_whole_number_is_written_without_its_fraction():
    assert [repr(number(value)) for value in (5.0, 5, 5.5, 1e300)] == ["5", "5", "5.5", "1e+300"]


def test_unset_differs_from_none_and_counts_as_nothing():
    assert UNSET is not None
    assert not UNSET


@pytest.mark.parametrize(
    ("minor_units", "currency", "shown"),
    [
        (900, "USD", "$9.00"),
        (123456789, "EUR", "€1,234,567.89"),
        (5, "GBP", "£0.05"),
        (900, "JPY", "¥900"),
        (12345, "KWD", "KWD 12.345"),
    ],
)
def test_a_price_is_shown_to_its_last_minor_unit(minor_units, currency, shown):
    assert format_price(minor_units, currency) == shown
