"""Cells: what is decided by column, what a cell gives, and that nothing is invented."""

import pytest

from muniment.kernel.problems import BadRequest
from muniment.registry.tables.amounts import decimal_sign
from muniment.registry.tables.dates import order_of_dates
from muniment.registry.tables.fields import ASK, Column
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.mapping import FileMapping, TableMapping, read_mapping
from muniment.registry.tables.persons import LAST_FIRST, separator_of_people
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.values import Lost, Noted, address_of, addresses_in, code_of_country, people_in, value_of

NO_TIME = "To keep the time, map the column to an additional field of text."


def value(field: str, text: str, /, **options: object) -> object:
    found = value_of(Column("c", field, **options), text, "EUR")
    return "lost: " + found.reason if isinstance(found, Lost) else found


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["03.09.1998", "31.12.2004"], "DMY"),
        (["03/09/1998", "12/31/2004"], "MDY"),
        (["1998/09/03", "2004/12/31"], "YMD"),
        (["03/09/1998", "04/05/2001"], ASK),
        (["05/05/1998"], "DMY"),
        (["1998-09-03"], ""),
        (["September 1998"], ""),
    ],
)
def test_the_order_of_dates_is_decided_by_the_column(cells, order):
    assert order_of_dates(cells) == order


@pytest.mark.parametrize(
    ("text", "order", "found"),
    [
        ("03.09.1998", "DMY", "1998-09-03"),
        ("03.09.1998", "MDY", "1998-03-09"),
        ("1998-09-03T00:00:00Z", "DMY", "1998-09-03"),
        ("19980903", "DMY", "1998-09-03"),
        ("3. März 2001", "DMY", "2001-03-03"),
        ("March 3rd, 2001", "DMY", "2001-03-03"),
        ("31.02.2001", "DMY", "lost: is not a date"),
        ("03.09.98", "DMY", "lost: is not a date"),
        ("1998", "DMY", "lost: names no day"),
        ("09/1998", "DMY", "lost: names no day"),
        ("03/04/2001", ASK, "lost: has a date whose order is unclear"),
        ("n/a", "DMY", "lost: stands for a missing value"),
    ],
)
def test_days(text, order, found):
    assert value("listedAt", text, order=order) == found


@pytest.mark.parametrize(
    ("text", "order", "is_told"),
    [
        ("04.03.2021 08:00", "DMY", True),
        ("2021-03-04 13:45", "YMD", True),
        ("2021-03-04T13:45+02:00 (CEST)", "YMD", True),
        ("March 4, 2021 1:45 PM", "MDY", True),
        ("2021-03-04T00:00:30", "YMD", True),
        ("04.03.2021 12:00 PM", "DMY", True),
        ("44259.5", "EXCEL", True),
        ("1614865500", "UNIX", True),
        ("2021-03-04 00:00", "YMD", False),
        ("2021-03-04T00:00:00.000Z", "YMD", False),
        ("04.03.2021 12:00 AM", "DMY", False),
        ("44259.0", "EXCEL", False),
        ("44259", "EXCEL", False),
        ("1614816000", "UNIX", False),
        ("1614816000000", "UNIX", False),
        ("04.03.2021", "DMY", False),
    ],
)
def test_a_time_after_a_date_is_told(text, order, is_told):
    told = Noted("2021-03-04", "is imported without the time of day", NO_TIME)
    assert value("listedAt", text, order=order) == (told if is_told else "2021-03-04")
    assert value("extra:founded", text, order=order) == (told if is_told else "2021-03-04")


def test_founding_dates_keep_what_they_have():
    given = ["1998", "2001-05", "05/2001", "Mai 2001", "03.09.1998"]
    assert [value("extra:founded", each, order="DMY") for each in given] == [
        "1998",
        "2001-05",
        "2001-05",
        "2001-05",
        "1998-09-03",
    ]
    assert value("createdAt", "Mai 2001") == value("createdAt", "Mai 2001".rjust(100)) == "May 2001"
    assert value("createdAt", "Mai 2001".rjust(101)) == "lost: is not a month and a year"
    assert value("createdAt", "soon") == "lost: is not a month and a year"
    assert value("createdAt", f"Mai{' ' * 93}2001") == "May 2001"
    assert value("createdAt", f"Mai{' ' * 94}2001") == "lost: is not a month and a year"


@pytest.mark.parametrize(
    ("cells", "sign"), [(["1.250,50", "3"], ","), (["1,250.50"], "."), (["1.200", "3"], ASK), (["12", "3"], ".")]
)
def test_the_decimal_sign_is_decided_by_the_column(cells, sign):
    assert decimal_sign(cells) == sign


def test_counts_are_whole():
    assert decimal_sign(["1.200", "3"], is_count=True) == ","
    assert value("teamSize", "1.200", decimal=",") == 1200
    assert value("teamSize", "12.0", decimal=".") == 12
    assert value("teamSize", "10-49") == "lost: is a range, not one number"
    assert value("teamSize", "about 12") == "lost: is not a whole number"
    assert value("teamSize", "12 500,00 x", decimal=",") == "lost: is not a whole number"


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("€1.2M", {"decimal": "."}, "1200000.00"),
        ("1.250.000,50 €", {"decimal": ","}, "1250000.50"),
        ("EUR 3 Mio.", {"decimal": ","}, "3000000.00"),
        ("12'500.-", {"decimal": ".", "currency": "EUR"}, "12500.00"),
        ("12", {"decimal": ".", "currency": "EUR", "unit": 1000}, "12000.00"),
        ("12 apples", {"decimal": ".", "currency": "EUR"}, "lost: is not an amount"),
        ("12", {"decimal": "."}, "lost: has no currency"),
        ("$12", {"decimal": "."}, "lost: is in USD; this registry uses EUR"),
        ("€-5", {"decimal": "."}, "lost: is negative"),
        ("€1.234", {"decimal": "."}, "lost: has more than two decimals"),
        ("a lot", {"decimal": "."}, "lost: is not an amount"),
        ("-€5", {"decimal": "."}, "lost: is negative"),
        ("--€5", {"decimal": "."}, "lost: is not an amount"),
        ("-€-5", {"decimal": "."}, "lost: is not an amount"),
        ("€5 EUR", {"decimal": "."}, "5.00"),
        ("€5", {"decimal": ".", "unit": 0}, "5.00"),
        ("€5 USD", {"decimal": "."}, "lost: is not an amount"),
    ],
)
def test_amounts(text, options, found):
    given = value("treasury", text, **options)
    assert given == (found if found.startswith("lost") else {"amount": found, "currency": "EUR"})


def test_links_addresses_and_words():
    assert value("website", "example.org/a") == "https://example.org/a"
    assert value("website", "[Acme](https://a.example)") == "https://a.example"
    assert value("website", "see below") == "lost: is not a web address"
    for cell in (
        "a.example; b.example/x",
        "https://a.example b.example",
        "a.example, https://b.example",
        "a.example / b.example",
    ):
        found = value("website", cell)
        assert isinstance(found, Noted)
        assert found.value == "https://a.example"
    assert value("website", "a.example; a.example") == "https://a.example"
    assert value("website", "a.example or b.example") == "lost: is not a web address"
    assert value("socials.email", "Office <o@a.example>") == "o@a.example"
    assert value("socials.email", "a@a.example, or call") == "lost: is not one email address"
    assert value("status", "Aufgelöst") == "inactive"
    assert value("status", "Paused", words={"paused": "inactive"}) == "inactive"
    assert value("status", "Paused") == 'lost: "Paused" is not a known status'
    assert value("name", "=cmd|'/c calc'!A0") == "lost: is a formula, not a value"
    assert value("description", "a\x07b") == "ab"
    assert value("name", "Gr\ufffd\ufffde GmbH") == "lost: has characters that could not be read"
    assert people_in(Column("Board", "people"), "Ida \ufffdlder").reason == "has characters that could not be read"
    assert value("address.country", "Vereinigtes Königreich") == "GB"
    assert value("address.country", "Narnia") == "lost: is not a known country"
    assert [code_of_country(each) for each in ("Deutschland", "DEU", "de", "Holland", "")] == [
        "DE",
        "DE",
        "DE",
        "NL",
        "",
    ]


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a@x.example; b@x.example", ["a@x.example", "b@x.example"]),
        ("a@x.example, b@y.example", ["a@x.example", "b@y.example"]),
        ("a@x.example / b@y.example", ["a@x.example", "b@y.example"]),
        ("a@x.example b@y.example", ["a@x.example", "b@y.example"]),
        ("a@x.example\nb@y.example", ["a@x.example", "b@y.example"]),
        ("a@x.example und b(at)y.example", ["a@x.example", "b@y.example"]),
        ("A <a@x.example>; B, C <b@y.example>", ["a@x.example", "b@y.example"]),
        ("Alder, Ida <a@x.example>", ["a@x.example"]),
        ("a@x.example; a@x.example;", ["a@x.example"]),
        ("mailto:a@x.example, mailto:b@x.example", ["a@x.example", "b@x.example"]),
        ("not a@x.example but b@x.example", []),
        ("old: a@x.example, new: b@x.example", []),
        ("a@x.example, " * 80, []),
    ],
)
def test_several_addresses_of_mail_in_a_cell(text, addresses):
    assert addresses_in(text) == addresses
    found = value("socials.email", text)
    if len(addresses) > 1:
        assert isinstance(found, Noted)
        assert found.value == addresses[0]
    else:
        assert found == (addresses[0] if addresses else "lost: is not one email address")


def test_an_address_in_one_cell_keeps_every_word():
    assert address_of("Uferweg 3, 50667 Köln, Germany") == {
        "address_1": "Uferweg 3",
        "zip": "50667",
        "city": "Köln",
        "country": "DE",
    }
    assert address_of("1 Main St, Springfield, IL 62701") == {"address_1": "1 Main St, Springfield, IL 62701"}
    assert address_of("A, B, FR") == {"address_1": "A, B", "country": "FR"}


def test_people_in_a_cell():
    def people(text: str, **options: str) -> object:
        found = people_in(Column("Board", "people", title="Board", **options), text)
        return found if isinstance(found, Lost | None) else [each[:2] for each in found]

    assert separator_of_people(["Ada Fluss, Ben Damm"]) == ","
    assert separator_of_people(["Fluss, Ada"]) == ""
    assert separator_of_people(["Fluss, Ada", "Ada Fluss, Ben Damm"]) == ASK
    assert people("Ada Fluss und Ben Damm") == [("Ada Fluss", "Board"), ("Ben Damm", "Board")]
    assert people("Bob Ray & Cy Do; Ida Alder", separator=";") == [
        (name, "Board") for name in ("Bob Ray", "Cy Do", "Ida Alder")
    ]
    assert people("José Ortega y Gasset") == [("José Ortega y Gasset", "Board")]
    assert people("Fluss, Ada; Damm, Ben (Chair)", separator=";", order=LAST_FIRST) == [
        ("Ada Fluss", "Board"),
        ("Ben Damm", "Chair"),
    ]
    assert people("CEO: Ada Fluss") == [("Ada Fluss", "CEO")]
    assert people("Ada Fluss, Jr.") == [("Ada Fluss, Jr.", "Board")]
    assert people("-") is None
    assert isinstance(people("Ada, Ben", separator=ASK), Lost)
    assert isinstance(people("office@a.example"), Lost)
    assert isinstance(people("=SUM(A1)"), Lost)


def test_a_column_whose_values_do_not_fit_is_left_out():
    rows = [["Name", "Website", "E-Mail", "Joined"], ["Acme", "yes", "call us", "often"]]
    (table,) = propose([Sheet("t", rows)], "t.csv").table
    assert [each.field for each in table.column] == ["name", "", "", ""]


def test_questions_are_asked_for_what_the_column_does_not_decide():
    rows = [["Name", "Joined", "Treasury"], ["Acme", "03/04/2001", "1.200"], ["Bcme", "05/06/2001", "3"]]
    mapping = propose([Sheet("t", rows)], "t.csv")
    assert [each.split(": choose ")[1].split(" =")[0] for each in mapping.questions()] == [
        "order",
        "decimal",
        "currency",
    ]
    mapping.settle_questions()
    assert mapping.questions() == []


@pytest.mark.parametrize(
    ("heading", "unit"), [("Treasury (EUR)", 1), ("Treasury (k€)", 1000), ("Treasury (M EUR)", 10**6)]
)
def test_the_unit_of_amounts_is_that_of_their_heading(heading, unit):
    mapping = propose([Sheet("t", [["Company", heading], ["Acme Trust", "5"], ["Birch Trust", "6"]])], "t.csv")
    assert (mapping.table[0].column[1].unit, mapping.questions()) == (unit, [])


def test_a_letter_that_may_be_a_unit_of_amounts_is_asked():
    mapping = propose(
        [Sheet("t", [["Company", "Treasury (M)"], ["Acme Trust", "5 €"], ["Birch Trust", "6 €"]])], "t.csv"
    )
    assert mapping.questions() == ["t: Treasury (M): choose unit = 1, 1000 or 1000000"]
    mapping.settle_questions()
    assert mapping.table[0].column[1].unit == 1


@pytest.mark.parametrize(("choice", "settled"), [(ASK, "no"), ("no", "no"), ("", ""), ("yes", "yes")])
def test_a_preview_combines_rows_as_the_mapping_says(choice, settled):
    mapping = FileMapping([TableMapping("t", "companies", 1, combine=choice)])
    mapping.settle_questions()
    assert mapping.table[0].combine == settled


@pytest.mark.parametrize(
    "text",
    [
        "[[table]",
        "unknown = 1\n[[table]]\nname = 1",
        '[[table]]\nname = "t"\nkind = "frogs"\nheader = 1',
        '[[table]]\nname = "t"\nkind = "companies"\nheader = 1\n[[table.column]]\nheading = "a"\nfield = "frog"',
        '[[table]]\nname = "t"\nkind = "companies"\nheader = 1\n[[table.column]]\nheading = "a"\nfield = "extra:name"',
        '[[table]]\nname = "t"\nkind = "companies"\nheader = 1\n[[table.column]]\nheading = "a"\norder = "XYZ"',
        '[[table]]\nname = "t"\nkind = "companies"\nheader = 1\n[[table.column]]\nheading = "a"\ndecimal = "x"',
    ],
)
def test_a_wrong_mapping_is_refused(text):
    with pytest.raises(BadRequest, match="The mapping is invalid"):
        read_mapping(text)
