"""Habits of real tables: grants with projects, names in parts, titles between rows, cells that slipped, free texts."""

import pytest

from muniment.registry.tables.fields import Column
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.keeping import propose_kind
from muniment.registry.tables.persons import person_in
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.records import KnownRows, grouped, records_of
from muniment.registry.tables.values import is_link

NUMBERS = ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def proposed(*rows, delimiter="", name="t.csv"):
    sheet = Sheet("t", [list(row) for row in rows], delimiter=delimiter)
    mapping = propose([sheet], name)
    return sheet, mapping


def columns(*rows, **options):
    _, mapping = proposed(*rows, **options)
    return {column.heading: (column.field, column.check) for column in mapping.table[0].column}


def converted(sheet, mapping):
    return records_of([sheet], mapping, KnownRows(), "USD")


# ---------------------------------------------------------------------- who has a grant, and for what


@pytest.mark.parametrize(
    ("who", "what"),
    [
        *(("Gesuchsteller", "Projekt"), ("Beneficiário", "Projeto"), ("Bénéficiaire", "Projet")),
        *(("Recipient", "Project"), ("Beneficiario", "Proyecto"), ("Applicant", "Project name")),
    ],
)
def test_a_grant_is_of_the_one_who_has_it(who, what):
    rows = [(f"Verein {n}", f"Concert {n} in the yard") for n in NUMBERS]
    found = columns((who, what), *rows)
    assert (found[who], found[what][0]) == (("name", False), "")


def test_without_an_applicant_the_project_is_the_name():
    assert columns(("Project", "City"), ("Alder Mill", "Oslo"), ("Birch Yard", "Rome"))["Project"] == ("name", False)


@pytest.mark.parametrize("heading", ["Project description", "Projektbeschreibung", "Descrição do projeto"])
def test_what_a_project_is_about_is_asked_beside_an_organization(heading):
    text = "Repair of the two bells in the tower"
    assert columns(("Organization", heading), ("Alder House", text), ("Birch House", text))[heading] == (
        "description",
        True,
    )
    assert columns(("Project", heading), ("Alder Mill", text), ("Birch Yard", text))[heading][1] is False


# ---------------------------------------------------------------------- companies or people


def test_contacts_in_some_rows_do_not_make_people_of_rows():
    rows = [("Alder University" if n % 2 else "Birch School", "Ida Larch" if n == 1 else "") for n in range(12)]
    _, mapping = proposed(("name", "person"), *rows)
    assert mapping.table[0].kind == "companies"


def test_first_and_last_names_beside_few_employers_are_people():
    names = [("Ida", "Alder"), ("Joe", "Birch"), ("Kim", "Cedar"), ("Lia", "Elm"), ("Max", "Fir"), ("Ben", "Oak")]
    rows = [(first, last, ("Larch Labs", "Moss Institute")[n % 2], "1") for n, (first, last) in enumerate(names)]
    _, mapping = proposed(("Firstname", "Lastname", "Institution", "Safety"), *rows)
    assert mapping.table[0].kind == "people"


def test_a_heading_of_persons_alone_makes_people():
    _, mapping = proposed(("議員氏名", "会派"), ("赤木　一", "杉"), ("青木　二", "松"), ("白木　三", "杉"))
    assert (mapping.table[0].kind, mapping.table[0].check) == ("people", [])


def test_a_few_names_of_persons_do_not():
    rows = [("Safety", "Ida Alder"), ("Dose", ""), ("Design", ""), ("Ethics", "")]
    _, mapping = proposed(("Topics", "Team Member 1"), *rows)
    assert mapping.table[0].kind != "people"


@pytest.mark.parametrize(("further", "kind"), [("role", "people"), ("area", "companies")])
def test_names_in_the_form_of_persons_that_no_list_has_are_asked(further, kind):
    names = [
        f"{first} {last}" for first in ("Gaurika", "Tamish", "Ruvaj", "Shanvi") for last in ("Ashal", "Elmik", "Oaka")
    ]
    _, mapping = proposed(("id", "name_en", further), *[(f"P{n}", name, "Speaker") for n, name in enumerate(names)])
    assert (mapping.table[0].kind, mapping.table[0].check) == (kind, ["kind"])
    # A heading of organizations says it, and so does a name that no person has.
    for heading, ends in (("Company", ""), ("name_en", " Foundation")):
        rows = [(f"P{n}", f"{name}{ends}", "North") for n, name in enumerate(names)]
        _, mapping = proposed(("id", heading, "area"), *rows)
        assert (mapping.table[0].kind, mapping.table[0].check) == ("companies", [])


def test_notes_beside_a_table_are_left_out_and_told():
    names = Sheet("Companies", [["Company", "Country"], ["Alder House", "Norway"], ["Birch House", "Italy"]])
    notes = Sheet("Notes", [["Issue checked", "Result"], ["Duplicate rule", "Kept one"], ["Old ticker", "Removed"]])
    mapping = propose([names, notes], "companies.xlsx")
    assert [table.kind for table in mapping.table] == ["companies", "skip"]
    found = records_of([names, notes], mapping, KnownRows(), "USD")
    assert len(found.companies) == 2
    assert [str(loss.reason) for loss in found.losses] == ["is left out: no column is the name of a row"]
    # Alone, it is the table that a person wants to import: its name is asked.
    assert propose([notes], "notes.xlsx").table[0].kind == "companies"


# ---------------------------------------------------------------------- names in parts, titles between rows


REGISTER = (
    ("Suppliers 2014",) * 6,
    ("First quarter",) * 6,
    *(("Company name",) * 3 + ("Address",) * 3,),
    ("First name(s)", "Last name", "Apellido materno", "Street", "Interior", "Postal code"),
    ("Ida", "Alder", "Birch", "Elm Road", "X", "8500"),
    ("Cedar S.A.",) * 3 + ("Oak Road", "2", "8501"),
    ("Second quarter",) * 6,
    ("Company name",) * 3 + ("Address",) * 3,
    ("First name(s)", "Last name", "Apellido materno", "Street", "Interior", "Postal code"),
    ("Joe", "Elm", "Fir", "Ash Road", "X", "8502"),
    ("", "", "") + ("Office of Information",) * 3,
)


def test_parts_of_a_name_under_a_group_are_one_name_and_titles_between_rows_are_told():
    sheet, mapping = proposed(*REGISTER)
    assert mapping.table[0].kind == "companies"
    found = converted(sheet, mapping)
    assert [line["company"]["name"] for _, line in found.companies] == ["Ida Alder Birch", "Cedar S.A.", "Joe Elm Fir"]
    told = {loss.row: str(loss.reason) for loss in found.losses if loss.row}
    assert told[7] == told[11] == "is one text over several columns, and is left out"
    assert told[8] == told[9] == "repeats the headings, and is left out"
    assert {1, 2} <= told.keys()


def test_a_group_alone_does_not_say_what_its_columns_are():
    _, mapping = proposed(*REGISTER)
    fields = {column.heading: column.field for column in mapping.table[0].column}
    assert (fields["Address / Street"], fields["Address / Interior"]) == ("address.address_1", "")


def test_last_names_alone_under_a_group_do_not_replace_the_name():
    groups, parts = ("Organization", "Company name", "Company name"), ("Name", "Last name", "Apellido materno")
    rows = [("Alder House Ltd", "Alder", "Birch"), ("Cedar House Ltd", "Cedar", "Elm"), ("Fir Ltd", "Fir", "Gorse")]
    sheet, mapping = proposed(groups, parts, *rows)
    assert [line["company"]["name"] for _, line in converted(sheet, mapping).companies] == [row[0] for row in rows]


def test_two_last_names_are_one():
    sheet, mapping = proposed(
        ("Nombre", "Apellido paterno", "Apellido materno", "Cargo"),
        *[("Ida", "Alder", "Birch", "Vocal"), ("Joe", "Cedar", "", "Vocal"), ("Lia", "Elm", "Elm", "Vocal")],
        name="people.csv",
    )
    assert mapping.table[0].kind == "people"
    names = [line["name"] for _, line in converted(sheet, mapping).people]
    assert names == ["Ida Alder Birch", "Joe Cedar", "Lia Elm Elm"]


@pytest.mark.parametrize(
    ("headings", "rows"),
    [
        (("Nom", "Prénom"), [("Alder", "Ida"), ("von Birch", "Joe"), ("Elm", "Lia")]),
        (("Name", "Vorname"), [("Alder", "Ida"), ("von Birch", "Joe"), ("Elm", "Lia")]),
        (("Nombre", "Apellidos"), [("Ida", "Alder"), ("Joe", "von Birch"), ("Lia", "Elm")]),
        (("Nome", "Cognome"), [("Ida", "Alder"), ("Joe", "von Birch"), ("Lia", "Elm")]),
        (("Name", "Last name"), [("Ida Alder", "Alder"), ("Joe von Birch", "von Birch"), ("Lia Elm", "Elm")]),
        (("Name", "First name"), [("Alder, Ida", "Ida"), ("von Birch, Joe", "Joe"), ("Elm, Lia", "Lia")]),
    ],
)
def test_a_general_heading_beside_one_part_of_a_name_is_the_other_part(headings, rows):
    rows = [(*row, "Vorstand") for row in rows]
    sheet, mapping = proposed((*headings, "Funktion"), *rows, name="people.csv")
    assert mapping.table[0].kind == "people"
    assert [line["name"] for _, line in converted(sheet, mapping).people] == ["Ida Alder", "Joe von Birch", "Lia Elm"]


# ---------------------------------------------------------------------- cells that slipped


def test_rows_with_more_cells_than_headings_are_asked_and_named():
    rows = [("Company", "Amount", "", ""), ("Alder House", "12", "", ""), ("Birch House", "100", "50", "direct")]
    sheet, mapping = proposed(*rows, delimiter=",")
    assert mapping.table[0].check == ["cells"]
    assert "more cells than there are headings" in str(mapping.doubts()[0])
    [line] = [str(group) for group in grouped(converted(sheet, mapping).losses) if "more cells" in str(group)]
    assert "(1 row: 3)" in line
    assert '"50 · direct"' in line


@pytest.mark.parametrize(
    ("rows", "delimiter"),
    [
        ([("Company", "Amount"), ("Alder House", "12")], ","),
        ([("Company", "Amount", ""), ("Alder House", "12", "remark beside the table")], ""),
        ([("Company", "", "Amount"), ("Alder House", "x", "12")], ","),
    ],
)
def test_remarks_beside_a_sheet_and_columns_without_a_heading_are_no_slipped_cells(rows, delimiter):
    _, mapping = proposed(*rows, delimiter=delimiter)
    assert mapping.table[0].check == []


# ---------------------------------------------------------------------- what values are


@pytest.mark.parametrize("name", ["alder.jpg", "Alder-House.PNG", "map.pdf", "Magik Theatre.png", "list.xlsx"])
def test_names_of_files_are_no_links(name):
    assert not is_link(name)
    assert is_link(f"https://alder.example/{name.replace(' ', '-')}")


def test_shares_that_are_mostly_1_are_numbers():
    column = Column("Share")
    propose_kind(column, ["1"] * 50 + ["97.38"])
    assert column.kind == "number"
    propose_kind(column, ["1"] * 50 + ["0"])
    assert column.kind == "yesno"


def test_free_texts_are_asked_before_they_become_a_vocabulary():
    rows = [(f"Company {n}", f"Repairs of clocks in set {n}") for n in range(30)]
    assert columns(("Company", "Industry"), *rows)["Industry"][1] is True
    rows = [(f"Company {n}", ("Timber", "Boats", "Mills")[n % 3]) for n in range(30)]
    assert columns(("Company", "Industry"), *rows)["Industry"] == ("industry", False)


def test_a_column_that_a_field_cannot_hold_is_kept_whole():
    long = "Repairs of clocks and bells in towers of towns by the northern lakes, and of the roofs above them, for all"
    rows = [(f"Company {n}", long if n < 2 else "Timber") for n in range(20)]
    assert columns(("Company", "Industry"), *rows)["Industry"][0] == ""
    rows = [(f"Company {n}", long if n < 1 else "Timber") for n in range(20)]
    assert columns(("Company", "Industry"), *rows)["Industry"][0] == "industry"


def test_who_owns_an_organization_is_no_sure_status():
    rows = [("Alder", "Public"), ("Birch", "Private"), ("Cedar", "Acquired"), ("Elm", "Active")]
    assert columns(("Company", "Listing status"), *rows[:3])["Listing status"] == ("status", True)
    assert columns(("Company", "Status"), rows[3], rows[3])["Status"] == ("status", False)


def test_capitals_that_mean_no_value_in_a_language_are_a_code_among_codes():
    codes = ["NC", "UML", "RSP", "NC", "UML", "RSP", "NC", "UML", "RSP", "UML", "RSP", "UML", "RSP", "UML", "RSP"]
    rows = [(f"Company {n}", code, "Paris" if n else "NC") for n, code in enumerate(codes)]
    sheet, mapping = proposed(("Company", "Party code", "City"), *rows)
    column = mapping.table[0].column[1]
    assert (column.kind, column.choices) == ("choice", ["NC", "RSP", "UML"])
    column.field = "extra:partyCode"
    lines = [line["company"] for _, line in converted(sheet, mapping).companies]
    assert [line.get("partyCode") for line in lines] == codes
    words = ["Nord", "Sud", "NC", "Nord", "Sud", "Nord", "Sud", "Nord", "Sud", "Nord", "Sud"]
    _, mapping = proposed(("Company", "Zone"), *[(f"Company {n}", word) for n, word in enumerate(words)])
    assert mapping.table[0].column[1].choices == ["Nord", "Sud"]


def test_a_few_long_texts_do_not_keep_what_differs_from_being_a_list():
    projects = [f"Concert {n} in the yard" for n in range(39)]
    rows = [("Alder House", project) for project in projects]
    _, mapping = proposed(("Recipient", "Project"), *rows, ("Alder House", "A long title " * 12))
    assert mapping.table[0].column[1].kind == "list"
    _, mapping = proposed(("Recipient", "Project"), *rows[:5], ("Alder House", "A long title " * 12))
    assert mapping.table[0].column[1].kind == "text"


def test_what_becomes_a_list_is_parted_as_the_next_import_parts_it():
    rows = [("Alder House", "oak; elm"), ("Alder House", "fir"), ("Birch House", "oak; yew"), ("Birch House", "oak")]
    _, mapping = proposed(("Recipient", "Timber"), *rows, *rows)
    assert (mapping.table[0].column[1].kind, mapping.table[0].column[1].separator) == ("list", ";")


def test_money_that_was_raised_is_proposed_as_a_field_of_its_own_and_private_columns_are_not():
    rows = [("Alder", "1,200.00", "1.2.1970"), ("Birch", "90.00", "3.4.1980")]
    _, mapping = proposed(("Company", "Total raised (USD)", "Date of birth"), *rows)
    assert [column.kind for column in mapping.table[0].column] == ["", "number", ""]


def test_addresses_of_people_are_not_proposed_to_be_public():
    rows = [("Ida Alder", "ida@alder.example", "+49 30 1234567"), ("Joe Birch", "joe@birch.example", "+49 30 1234568")]
    _, mapping = proposed(("Full name", "Email", "Phone line"), *rows, name="people.csv")
    assert [(column.field, column.kind) for column in mapping.table[0].column[1:]] == [("", ""), ("", "")]


def test_contact_name_is_a_person_to_check_and_other_role_is_asked():
    rows = [("Alder House", "Ida Larch"), ("Birch House", "Joe Moss")]
    assert columns(("nombre", "contacto_nombre"), *rows)["contacto_nombre"] == ("people", True)
    rows = [("Ida Alder", "Alder House", "founder"), ("Joe Birch", "Alder House", "advisor")]
    found = columns(("FullName", "Affiliation", "OtherRole"), *rows, name="people.csv")
    assert found["OtherRole"] == ("position.title", True)


@pytest.mark.parametrize(
    ("cell", "title"),
    [
        ("Ida Alder (Lima, Peru)", "CEO (Lima, Peru)"),
        ("Ida Alder (since 2001)", "CEO (since 2001)"),
        ("Ida Alder (Chair)", "Chair"),
        ("Ida Alder (Core developer)", "Core developer"),
        ("Ida Alder", "CEO"),
    ],
)
def test_a_place_or_a_time_in_brackets_is_beside_the_position(cell, title):
    assert person_in(cell, "CEO") == ("Ida Alder", title, "")


# ---------------------------------------------------------------------- what looks like such a habit, and is none


def test_two_persons_of_a_row_in_parts_are_not_made_one():
    groups = ("", "", "", "Director", "Director", "Secretary", "Secretary")
    parts = ("Organization", "Website", "Industry", "First name", "Last name", "First name", "Last name")
    rows = []
    for name in NUMBERS:
        rows.append((f"{name} House Ltd", f"https://{name}.example".lower(), "Boats", "Ida", "Cedar", "Kim", "Elm"))
    sheet, mapping = proposed(groups, parts, *rows)
    found = converted(sheet, mapping)
    assert len(found.companies) == len(NUMBERS)
    people = {str(position["person"]["name"]) for _, line in found.companies for position in line["positions"]}
    assert people == {"Ida Cedar"}
    assert any("Secretary" in str(group) for group in grouped(found.losses)), "who is left out is told"


def test_a_row_of_a_text_with_one_value_in_several_columns_is_a_row():
    rows = [("Company", "Legal name", "Short name", "City"), ("Alder", "Alder Ltd", "Al", "Oslo"), ("Elm",) * 3 + ("",)]
    sheet, mapping = proposed(*rows, delimiter=",")
    assert len(converted(sheet, mapping).companies) == 2


def test_a_column_whose_heading_is_in_the_row_of_groups_has_a_heading():
    groups = ("Company", "Address", "Address", "Website")
    parts = ("Name", "Street", "City", "")
    rows = [(f"{name} House", "Elm Road 1", "Oslo", f"https://{name}.example".lower()) for name in NUMBERS]
    sheet, mapping = proposed(groups, parts, *rows, delimiter=",")
    assert "cells" not in mapping.table[0].check
    assert not any("more cells" in str(loss.reason) for loss in converted(sheet, mapping).losses)


def test_one_word_among_many_answers_does_not_make_them_numbers():
    column = Column("Listed")
    propose_kind(column, ["1", "0"] * 20 + ["unknown"])
    assert column.kind == "yesno"


def test_a_table_whose_headings_a_person_chose_is_not_skipped():
    names = Sheet("Companies", [["Company", "Country"], ["Alder House", "Norway"], ["Birch House", "Italy"]])
    notes = Sheet("Notes", [["Issue checked", "Result"], ["Duplicate rule", "Kept one"], ["Old ticker", "Removed"]])
    mapping = propose([names, notes], "companies.xlsx", {"Notes": 1})
    assert mapping.table[1].kind == "companies"
