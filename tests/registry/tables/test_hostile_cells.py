"""Cells that are made to keep a program busy: each is read within a second, whatever the column and the heading."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.fields import PEOPLE_FIELD, Column, fields_of
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import match
from muniment.registry.tables.mapping import FileMapping, TableMapping
from muniment.registry.tables.persons import LAST_FIRST, full_name
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.reading import name_in
from muniment.registry.tables.records import KnownRows, records_of
from muniment.registry.tables.values import Lost, code_of_country, people_in, split, value_of

SIZE = 50_000
HOSTILE = {
    "letters": "a" * SIZE,
    "digits": "1" * SIZE,
    "digits and a letter": "1" * SIZE + "!",
    "capitals": "T" * SIZE + "!",
    "blanks": "a" + " " * SIZE + "b",
    "blanks after a number": "12345" + " " * SIZE + "1",
    "a range of blanks": "5-" + " " * SIZE + "abcdefgh",
    "a formula": "=" + "a" * SIZE,
    "brackets": "(" * SIZE,
    "names and brackets": "Ada Lott & Bo Reef, " + "(" * SIZE,
    "commas": "," * SIZE,
    "semicolons": "a;" * (SIZE // 2),
    "at signs": "<" + "a@" * (SIZE // 2),
    "dots": "a." * (SIZE // 2) + "!",
    "dashes": "a - " * (SIZE // 4),
    "colons": "a: " * (SIZE // 3),
    "quotes": "'" * SIZE,
    "in in": "in " * (SIZE // 3) + "\n.",
    "wide digits": "\uff11" * SIZE,
}
HEADINGS = (
    *("Name", "Website", "Email", "Phone", "Founded", "Treasury", "Employees", "Country", "ZIP", "City", "Address"),
    *("CEO", "First name", "Last name", "Themes", "Status", "LEI", "LinkedIn", "Description", "Slug", "Zzyzx"),
)


@contextmanager
def within(cpu_s: float) -> Iterator[None]:
    """Fail if the block takes more CPU time; regular expressions ask for signals, so that it does not hang."""

    def end(*_: object) -> None:
        pytest.fail(f"takes more than {cpu_s:g} s of CPU")

    former = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_mapping_is_proposed_whatever_cells_hold(text: str) -> None:
    sheet = Sheet("t.csv", [list(HEADINGS), *([text] * len(HEADINGS) for _ in range(3))])
    with within(3):
        proposed = propose([sheet], "t.csv")
    assert [each.heading for each in proposed.table[0].column] == list(HEADINGS)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_mapping_is_proposed_whatever_headings_are(text: str) -> None:
    with within(3):
        proposed = propose([Sheet("t.csv", [["Name", text], ["Quillmere", "1"]])], "t.csv")
    assert proposed.table[0].column[0].field == "name"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_cell_is_a_value_or_lost_in_time_for_every_field(text: str) -> None:
    columns = [Column("x", each, decimal=".", separator=",") for each in {*fields_of(COMPANIES), *fields_of(PEOPLE)}]
    columns += [Column("x", "listedAt", order=each) for each in ("DMY", "EXCEL", "UNIX", "?")]
    for column in columns:
        with within(2):
            value_of(column, text, "EUR")
    for separator in (",", ";", " und ", "", "?"):
        with within(2):
            people_in(Column("x", PEOPLE_FIELD, separator=separator), text)
    with within(2):
        full_name(text, LAST_FIRST)


@pytest.mark.parametrize("text", ["9" * 40, "9" * 5_000, "1" * 13 + " Mrd", "9,99" + "9" * 30])
def test_a_number_of_many_digits_is_lost_with_a_reason(text: str) -> None:
    for field in ("treasury", "teamSize"):
        found = value_of(Column("x", field, decimal=",", currency="EUR"), text, "EUR")
        assert isinstance(found, Lost) or len(str(found)) <= 18, found
    assert propose([Sheet("t.csv", [["Name", "Founded"], ["Quillmere", text]])], "t.csv").table[0].column


def test_long_texts_are_not_kept_in_memory() -> None:
    from muniment.registry.tables import headings, values

    before = values._code_of.cache_info().currsize, headings._match.cache_info().currsize
    for n in range(50):
        assert not code_of_country(f"{n}" * 1_000)
        assert not match(f"{n}" * 1_000, COMPANIES).fields
    assert (values._code_of.cache_info().currsize, headings._match.cache_info().currsize) == before
    assert values._code_of.cache_info().maxsize


def test_a_separator_in_brackets_parts_nothing() -> None:
    assert split("Ada (Chair, founder), Bo [a, b], Cy）, D", ",") == ["Ada (Chair, founder)", "Bo [a, b], Cy）", "D"]
    assert split("a, (b, c", ",") == ["a", "(b", "c"]


@pytest.mark.whole(keeps=0)
def test_rows_of_one_name_take_time_in_proportion() -> None:
    """Each is a company, a person or an address of its own: none is compared with all before it."""

    def seconds(n: int, field: str) -> float:
        columns = [Column("Name", "name"), Column("Of row", field, title="CEO" if field == PEOPLE_FIELD else "")]
        rows = [["Name", "Of row"], *(["Quillmere", f"Ada Number{k:x}"] for k in range(n))]
        combine = "yes" if field == "address.city" else ""
        mapping = FileMapping([TableMapping("t.csv", COMPANIES, 1, columns, combine=combine)])
        began = time.process_time()
        found = records_of([Sheet("t.csv", rows)], mapping, KnownRows(), "EUR")
        took = time.process_time() - began
        assert len(found.companies) == (n if field == "type" else 1)
        assert len({line["company"]["id"] for _, line in found.companies}) == len(found.companies)
        if combine:
            assert len(found.companies[0][1]["company"]["address"]) == n
        return took

    for field in ("type", PEOPLE_FIELD, "address.city"):
        small = max(seconds(1_000, field), 0.005)
        with within(60):
            assert seconds(8_000, field) < 32 * small, field
    with within(20):  # compared with all before it, 32,000 addresses take 45 s instead of 2
        seconds(32_000, "address.city")


def test_the_name_of_a_file_at_an_address_has_no_sign_that_ends_the_import() -> None:
    assert name_in("https://host.example/a%00b%0a.csv") == "ab.csv"
    assert name_in("https://host.example/..%2f..%2fetc%2fpasswd") == "passwd"
    assert name_in("https://host.example/") == "table"
