"""Tables out of spreadsheets: their cells, their headings and their numbers."""

import pytest

from muniment.web.row_lists import DISTRIBUTED, HOLDERS, PLACES, TEAM
from muniment.web.views.authoring.pasted import cells_by_column, plain_numbers, read_table


def read(text, rows=HOLDERS, chosen=None):
    table = read_table(text, rows, chosen)
    return cells_by_column(table, rows.columns)


@pytest.mark.parametrize("sign", ["\t", ";", "|", ","], ids=["tabs", "semicolons", "bars", "commas"])
def test_cells_are_separated_as_the_first_line_says(sign):
    text = f"Holder{sign}Share\r\nTreasury{sign}60\r\nFounders{sign}40\r\n\r\n"
    assert read(text) == [{"name": "Treasury", "percentage": "60"}, {"name": "Founders", "percentage": "40"}]


def test_a_quoted_cell_may_have_separators_and_line_breaks():
    assert read('Name\tPosition\n"Ada\nReef"\t"Chair, acting"', TEAM) == [
        {"name": "Ada\nReef", "title": "Chair, acting"}
    ]
    assert read('Name\tPosition\n"Ada\tChair', TEAM)[0]["name"].startswith("Ada")


@pytest.mark.parametrize(
    ("headings", "columns"),
    [
        ("Shareholder\tWallet address\tNumber of shares\t%", ["name", "address", "tokens", "percentage"]),
        ("% \tNOMBRE\tnotes", ["percentage", "name", ""]),
        ("Stake\tOwnership\tInhaber", ["percentage", "", "name"]),
        ("Aktionär\tAnteil", ["name", "percentage"]),
    ],
)
def test_columns_are_recognized_by_their_headings(headings, columns):
    assert read_table(f"{headings}\na\tb\tc\td", HOLDERS).columns[: len(columns)] == columns


@pytest.mark.parametrize(
    ("line", "rows", "columns"),
    [
        ("Treasury\t60%", HOLDERS, ["name", "percentage"]),
        ("Treasury\t500000", HOLDERS, ["name", "tokens"]),
        ("Treasury\t500000\t60", HOLDERS, ["name", "tokens", "percentage"]),
        ("Treasury\t0x1\t500000\t60", HOLDERS, ["name", "address", "tokens", "percentage"]),
        ("Ada Reef\tChair", TEAM, ["name", "title"]),
        ("Members\t60", DISTRIBUTED, ["name", "percentage"]),
    ],
)
def test_without_headings_the_order_says_what_the_columns_are(line, rows, columns):
    table = read_table(line, rows)
    assert (table.columns, table.first_line, len(table.rows)) == (columns, 1, 1)


def test_a_person_says_what_a_column_is():
    assert read("x\ty\nTreasury\t60", chosen={0: "", 1: "name", 9: "tokens"}) == [{"name": "y"}, {"name": "60"}]
    assert read("Name\tName\na\tb") == [{"name": "a"}]
    assert read("Name\tShare\na\tb", chosen={1: "no such column"}) == [{"name": "a", "percentage": "b"}]


def test_a_table_has_as_many_columns_as_its_longest_line():
    assert read("Name\tTokens\nTreasury\nFund\t5\textra") == [
        {"name": "Treasury", "tokens": ""},
        {"name": "Fund", "tokens": "5"},
    ]
    assert read("") == read(" \n\t\n") == []
    assert read("Street\tOrt\tPLZ\nNet Lane\tPort Ansel\t0042", PLACES) == [
        {"address_1": "Net Lane", "city": "Port Ansel", "zip": "0042"}
    ]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["12,5 %", "1.250,75", "3"], ["12.5%", "1250.75", "3"]),
        (["1,250", "2,000.50"], ["1,250", "2,000.50"]),
        (["12 500", "12\u202f500,5"], ["12500", "12500.5"]),
        (["1'250", "half"], ["1250", "half"]),
    ],
    ids=["decimal commas", "thousands", "spaces", "apostrophes"],
)
def test_whether_a_comma_is_decimal_is_decided_for_the_whole_column(cells, numbers):
    assert plain_numbers(cells) == numbers


def test_many_blanks_in_a_cell_are_read_at_once():
    assert plain_numbers(["1 % ", "1" + " " * 500_000 + "2"])[0] == "1%"  # a search at each blank would take minutes
