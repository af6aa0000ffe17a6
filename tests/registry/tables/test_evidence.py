"""A column is what its heading *and* its values say; rows are what their names show; nothing is decided in silence."""

import unicodedata

import pytest

from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import HeaderRow, header_row, kind_of_table
from muniment.registry.tables.keeping import keep_all
from muniment.registry.tables.persons import (
    LAST_FIRST,
    are_organizations,
    are_persons,
    full_name,
    is_one_person,
    person_in,
)
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.records import KnownRows, grouped, records_of
from muniment.registry.tables.values import address_of, end_of_addresses

PERSONS = ["Ida Alder", "Tom Birch", "Anna Cedar", "Marco Damm", "Raphael Elm, CFA", "Petra Fir"]
FIRMS = ["Alder Trust", "Birch Club", "Cedar Society", "Damm GmbH", "Elm Museum", "Fir Foundation"]


def table(headings, *rows, name="t"):
    width = len(headings)
    return Sheet(name, [list(headings), *([*row, *[""] * (width - len(row))] for row in rows)])


def mapped(sheet):
    [found] = propose([sheet], "t.csv").table
    return found


def fields(headings, *rows):
    return {each.heading: each.field for each in mapped(table(headings, *rows)).column}


def converted(sheet):
    mapping = propose([sheet], "t.csv")
    mapping.confirm_guesses()
    return records_of([sheet], mapping, KnownRows(), "USD")


def with_names(names, *columns):
    return [[name, *(column[n % len(column)] for column in columns)] for n, name in enumerate(names)]


# ---------------------------------------------------------------------- headings and values


def test_an_exact_heading_wins_over_a_near_one():
    found = fields(["shortName", "name"], ["AGA", "Alder Garden Association"], ["BBB", "Birch Boat Builders"])
    assert (found["name"], found["shortName"]) == ("name", "")


def test_a_name_beside_the_name_of_the_company_gives_way():
    found = fields(["Name", "Company Name"], *with_names(PERSONS, FIRMS))
    assert found["Company Name"] != ""
    assert found["Name"] != found["Company Name"]


def test_a_heading_whose_values_contradict_the_field_cannot_win():
    places = [["Alder Trust", "California", "Napa County"], ["Birch Club", "Texas", "Travis County"]]
    found = fields(["name", "state", "county"], *places)
    assert (found["state"], found["county"]) == ("address.state", "")
    found = fields(["name", "state"], ["Alder Trust", "active"], ["Birch Club", "inactive"])
    assert found["state"] == "status"


@pytest.mark.parametrize(
    ("heading", "values"),
    [
        ("Status", ["needs review", "fuzzy"]),
        ("region", ["europe", "asia"]),
        ("District", ["OH-12", "AZ-08"]),
        ("Category", ["D", "X", "A", "C", "B"]),
        ("Registration number", ["1", "2"]),
        ("Team", ["AE", "AF"]),
        ("Twitter", ["we post a lot", "not yet there"]),
    ],
)
def test_values_that_the_field_cannot_have_leave_the_column_without_it(heading, values):
    rows = [[f"{name} House", value] for name, value in zip(FIRMS, values * 3, strict=False)]
    assert fields(["Company", heading], *rows)[heading] == ""


def test_addresses_of_mail_under_contact_are_addresses_and_no_people():
    found = mapped(
        table(["Verein", "Kontakt"], ["Alder e.V.", "info(at)alder.example"], ["Birch e.V.", "a@birch.example"])
    )
    assert found.column[1].field in {"", "socials.email"}
    assert found.column[1].field == "" or found.column[1].check


def test_words_of_types_under_kind_are_the_type():
    rows = [[name, ("Nonprofit", "Charity")[n % 2]] for n, name in enumerate(FIRMS)]
    found = mapped(table(["Company", "Kind"], *rows)).column[1]
    assert (found.field, found.check) == ("type", False)


def test_a_type_without_a_known_word_is_asked():
    rows = [[name, ("approved", "declined")[n % 2]] for n, name in enumerate(FIRMS)]
    assert mapped(table(["Organisation", "Typ"], *rows)).column[1].check
    rows = [[name, ("Verein", "Stiftung")[n % 2]] for n, name in enumerate(FIRMS)]
    assert not mapped(table(["Organisation", "Typ"], *rows)).column[1].check


@pytest.mark.parametrize("address", ["ida.alder@alder.example", "tom@birch.example", "alderhouse@gmail.com"])
def test_an_address_that_looks_like_a_persons_is_asked(address):
    rows = [["Alder Trust", "office@alder.example"], ["Birch Club", address]]
    assert mapped(table(["Company", "E-mail"], *rows)).column[1].check


def test_a_contact_person_is_asked():
    [_, contact] = mapped(table(["Company", "Contact person"], *with_names(FIRMS, PERSONS))).column
    assert (contact.field, contact.check) == ("people", True)


# ---------------------------------------------------------------------- the kind of the rows


def test_names_of_persons_make_rows_people():
    found = mapped(table(["name", "affiliation", "homepage"], *with_names(PERSONS, FIRMS, ["https://x.example/a"])))
    assert (found.kind, found.check) == (PEOPLE, [])
    assert [each.field for each in found.column] == ["name", "position.company", ""]


def test_people_by_slug_roles_and_organizations_are_people():
    rows = [[f"p-{n}", name, "", "Chair", "Alder Trust", "", ""] for n, name in enumerate(PERSONS)]
    headings = ["slug", "name", "summary", "roles", "organizations", "locations", "tags"]
    found = mapped(table(headings, *rows))
    assert (found.kind, found.header) == (PEOPLE, 1)
    by_heading = {each.heading: each.field for each in found.column}
    assert (by_heading["roles"], by_heading["organizations"]) == ("position.title", "position.company")


def test_persons_and_organizations_in_one_column_are_asked():
    found = mapped(table(["name"], *([each] for each in [*PERSONS, *FIRMS])))
    assert found.check == ["kind"]


def test_persons_under_headings_of_companies_are_asked():
    found = mapped(table(["Name", "Ticker"], *with_names(PERSONS, ["ALD", "BIR"])))
    assert found.check == ["kind"]


@pytest.mark.parametrize(
    "headings",
    [
        ["slug", "name", "summary", "roles", "organizations", "tags"],
        ["id", "name", "email", "title", "company", "city"],
    ],
)
def test_names_that_no_list_has_with_positions_at_organizations_are_asked(headings):
    """Nothing but the positions says that they are persons: as companies, their addresses would be public at once."""
    names = ["Xylo Qwert", "Bnmp Lkjh", "Zxcv Asdf"]
    others = ["x@alder.example", "b@alder.example", "z@birch.example"]
    if "summary" in headings:
        others = ["Does things for the town.", "Does other things too.", "Grows many trees."]
    titles, companies = ["Chair", "Member", "Gardener"], ["Alder Trust", "Alder Trust", "Birch Club"]
    rows = [[f"p{n}", *row, "a"] for n, row in enumerate(zip(names, others, titles, companies, strict=True))]
    found = mapped(table(headings, *rows))
    assert (found.kind, found.check) == (PEOPLE, ["kind"])


@pytest.mark.parametrize(("titles", "kind"), [(["Chair", "Pilot", "Clerk"], PEOPLE), (["Chair", "Pilot"], COMPANIES)])
def test_names_are_persons_by_their_positions_only_if_half_of_them_have_one(titles, kind):
    names = ["Xylo Qwert", "Bnmp Lkjh", "Zxcv Asdf", "Qwer Tyui", "Hjkl Poiu"]
    rows = []
    for n, name in enumerate(names):
        title = titles[n] if n < len(titles) else ""
        rows.append([f"p{n}", name, f"x{n}@alder.example", title, FIRMS[n // 2], "Rome"])
    assert mapped(table(["id", "name", "email", "title", "company", "city"], *rows)).kind == kind


@pytest.mark.parametrize(
    ("headings", "kind"),
    [
        (["First name", "Last name", "Website", "Industry"], PEOPLE),
        (["First name", "Last name", "Website", "City", "Industry"], COMPANIES),
    ],
)
def test_columns_of_companies_outweigh_names_in_parts_if_they_are_more(headings, kind):
    assert kind_of_table(headings, "t.csv") == kind


def test_companies_with_their_contacts_and_positions_stay_companies():
    rows = with_names(FIRMS, PERSONS, ["Chair", "Director"], ["https://a.example"])
    found = mapped(table(["Organization", "Contact name", "Position", "Website"], *rows))
    assert (found.kind, found.column[0].field) == (COMPANIES, "name")


def test_companies_with_their_contacts_stay_companies():
    found = mapped(table(["Organization", "Name", "Website"], *with_names(FIRMS, PERSONS, ["https://a.example"])))
    assert (found.kind, found.column[0].field) == (COMPANIES, "name")


def test_the_evidence_of_names():
    assert are_persons(PERSONS)
    assert are_persons(["Alder, Ida", "Birch, Tom"])
    assert are_persons(["Ida Alder, PhD", "Tom Birch, MBA, CFA"])
    assert not are_persons(FIRMS)
    assert are_organizations(FIRMS)
    assert not are_organizations(PERSONS)
    assert not are_persons([])


def test_words_of_organizations_are_found_within_names_of_korea_too():
    decomposed = [unicodedata.normalize("NFD", name) for name in ("행복재단", "서울연구소")]
    for names in (["幸福財団", "東京大学"], ["행복재단", "서울연구소"], decomposed):
        assert are_organizations(names), names
    assert not are_organizations(["김민수", "이서연"])


@pytest.mark.parametrize(
    "names",
    [
        ["Ida", "Tom", "Anna"],
        ["Ida Alder Birch Cedar Damm Elm Fir", "Tom Alder Birch Cedar Damm Elm Fir"],
        ["Alder, Ida, Rome", "Birch, Tom, Oslo"],
        ["Ida Alder 1", "Tom Birch 2"],
    ],
)
def test_what_begins_with_given_names_in_another_form_is_no_column_of_persons(names):
    assert not are_persons(names)


# ---------------------------------------------------------------------- the row of the headings


def test_the_first_row_has_the_headings_though_a_later_one_has_known_words():
    rows = [["Wer", "Was", "Bei"], ["Ida Alder", "Secretary", "Alder"], ["Tom Birch", "Member", "Birch"]]
    assert header_row(rows) == HeaderRow(0)


def test_titles_above_the_headings_are_passed_and_reported():
    sheet = Sheet("t", [["Members of 2024", ""], ["Company", "City"], ["Alder Trust", "Rome"]])
    assert header_row(sheet.rows) == HeaderRow(1)
    [told] = [each for each in converted(sheet).losses if "above the headings" in each.reason]
    assert (told.row, told.example) == (1, "Members of 2024")


def test_rows_above_the_headings_that_look_like_data_are_asked():
    rows = [["Alder", "blue"], ["Birch", "green"], ["Company", "City"], ["Cedar Trust", "Rome"]]
    assert header_row(rows) == HeaderRow(2, is_guess=True)
    assert mapped(Sheet("t", rows)).check == ["header"]


def test_a_table_without_headings_loses_no_row():
    rows = [["AD", "Alder University", "http://alder.example/"], ["AE", "Birch College", "http://birch.example/"]]
    sheet = Sheet("t", rows)
    assert header_row(rows) == HeaderRow(-1)
    found = mapped(sheet)
    assert (found.header, [each.heading for each in found.column]) == (0, ["Column 1", "Column 2", "Column 3"])
    assert [line["company"]["name"] for _, line in converted(sheet).companies] == ["Alder University", "Birch College"]


def test_years_over_figures_are_headings():
    assert header_row([["Company", "2023"], ["Alder", "12"], ["Birch", "40"]]) == HeaderRow(0)


def test_columns_without_a_heading_have_their_number():
    found = mapped(table(["Company", "", ""], ["Alder Trust", "blue", ""], ["Birch Club", "green", ""]))
    assert [each.heading for each in found.column] == ["Company", "Column 2", ""]


# ---------------------------------------------------------------------- names of persons


def test_last_and_first_names_are_turned_only_where_the_column_has_that_form():
    rows = [[name] for name in PERSONS]
    assert converted(table(["Person"], *rows)).people[4][1]["name"] == "Raphael Elm, CFA"
    turned = table(["name"], ["Alder, Ida"], ["Birch, Tom"], ["Elm, Raphael, CFA"], ["Cher Fir"])
    assert mapped(turned).column[0].order == LAST_FIRST
    names = [line["name"] for _, line in converted(turned).people]
    assert names == ["Ida Alder", "Tom Birch", "Raphael Elm, CFA", "Cher Fir"]
    assert full_name("Alder, Ida") == "Alder, Ida"
    assert full_name("Alder, PhD", LAST_FIRST) == "Alder, PhD"


@pytest.mark.parametrize(
    "text",
    [
        "(suggested by Ida?)",
        "Emma or Joe",
        "Chair",
        "info(at)alder",
        "12",
        "Alder GmbH",
        "Bob & Cy Do",
        "Ida and Joe Birch",
        "Maria del Carmen Ortega y Gasset de Elm Fir",
    ],
)
def test_what_is_no_name_of_one_person(text):
    assert not is_one_person(text)


@pytest.mark.parametrize(
    "text",
    [
        *("Ida Alder", "Ludwig van der Elm", "José Ortega y Gasset", "山田 太郎", "Cher"),
        "Maria del Carmen Ortega y Gasset de Elm",
    ],
)
def test_names_of_one_person(text):
    assert is_one_person(text)


# ---------------------------------------------------------------------- rows


@pytest.mark.django_db
def test_one_row_is_one_person_whatever_its_columns():
    sheet = Sheet(
        "t",
        [
            ["slug", "name", "position", "organization"],
            ["ida-the-first", "Ida Alder", "Chair", "Alder Trust"],
            ["tb", "Tom Birch", "Clerk", "Alder Trust"],
        ],
    )
    mapping = propose([sheet], "people.csv")
    known = KnownRows()
    known.companies["aldertrust"].append("alder-trust")
    known.names["alder-trust"] = "Alder Trust"
    found = records_of([sheet], mapping, known, "USD")
    assert [line["slug"] for _, line in found.people] == ["ida-the-first", "tb"]
    [(_, company)] = found.companies
    slugs = [each["person"]["slug"] for each in company["positions"]]
    assert slugs == ["ida-the-first", "tb"]


def test_a_person_at_several_organizations_has_a_position_at_each():
    people = [["Ida Alder", "Alder Trust|Birch Club", "Chair|Clerk"], ["Tom Birch", "Birch Club", "Chair; Clerk"]]
    people += [["Anna Cedar", "Alder Trust|Birch Club", "A|B|C"], ["Marco Damm", "", "Chair"]]
    sheets = [table(["Company", "City"], ["Alder Trust", "Rome"], ["Birch Club", "Oslo"], name="firms")]
    sheets.append(table(["Person", "Organization", "Position"], *people, name="people"))
    mapping = propose(sheets, "t.xlsx")
    mapping.confirm_guesses()
    found = records_of(sheets, mapping, KnownRows(), "USD")
    said = {
        line["company"]["name"]: [(each["person"]["name"], each.get("title")) for each in line.get("positions", [])]
        for _, line in found.companies
    }
    assert said["Alder Trust"] == [("Ida Alder", "Chair"), ("Anna Cedar", None)]
    assert said["Birch Club"] == [("Ida Alder", "Clerk"), ("Tom Birch", "Chair; Clerk"), ("Anna Cedar", None)]
    assert {each.column for each in found.losses} == {"Position"}
    assert len(found.losses) == 2


def test_values_that_a_spreadsheet_changed_and_words_for_unknown_are_told():
    rows = [["Alder Trust", "4.42079E+11", "NC"], ["Birch Club", "########", "[nicht dokumentiert]"]]
    rows.append(["Cedar Society", "+44 20 0000", "(unknown)"])
    found = converted(table(["Company", "Phone", "State"], *rows))
    said = {(each.column, each.row): each.reason for each in found.losses}
    assert said["Phone", 2] == said["Phone", 3] == "was changed by a spreadsheet program"
    assert said["State", 3] == said["State", 4] == "stands for a missing value"
    states = [line["company"].get("address") for _, line in found.companies]
    assert states == [[{"state": "NC"}], None, None]


def test_words_of_a_vocabulary_are_written_as_they_are_in_use():
    rows = [[name, ("Nonprofit", "non profit", "non-profit")[n % 3]] for n, name in enumerate(FIRMS)]
    found = converted(table(["Company", "Type"], *rows))
    assert {line["company"]["type"] for _, line in found.companies} == {"Nonprofit"}
    assert sum(each.column == "Type" for each in found.losses) == 4


def test_a_state_is_no_country():
    cells = ["Atlanta, Georgia", "Austin, Texas"]
    assert end_of_addresses(cells) == "state"
    assert address_of(cells[0], "state") == {"city": "Atlanta", "state": "Georgia"}
    assert address_of(cells[0]) == {"address_1": "Atlanta, Georgia"}
    assert end_of_addresses(["Tbilisi, Georgia", "Paris, France"]) == "country"
    assert address_of("Tbilisi, Georgia", "country") == {"address_1": "Tbilisi", "country": "GE"}
    assert end_of_addresses(["1 Elm St, Chicago, IL 60601", "2 Fir St, Atlanta, GA 30301"]) == "state"
    whole = address_of("1 Elm St, Chicago, IL 60601", "state")
    assert whole == {"address_1": "1 Elm St", "city": "Chicago", "state": "IL", "zip": "60601"}
    assert address_of("1 Elm St, Chicago, IL") == {"address_1": "1 Elm St, Chicago, IL"}


def test_companies_with_only_a_name_are_rows_and_a_sentence_is_a_note():
    full = [[name, "Rome", "https://a.example", "1"] for name in FIRMS]
    rows = [*full, [""], ["Gorse Club"], ["Heath Club"], [""], ["Source: the office of the register, as of 2024"]]
    found = converted(table(["Company", "City", "Website", "Staff"], *rows))
    names = [line["company"]["name"] for _, line in found.companies]
    assert names == [*FIRMS, "Gorse Club", "Heath Club"]
    [told] = [each for each in found.losses if "note" in each.reason]
    assert told.example.startswith("Source:")


@pytest.mark.parametrize(("width", "is_note"), [(2, False), (3, True)])
def test_a_sentence_is_a_note_below_rows_of_three_cells_and_may_be_a_name_below_shorter_ones(width, is_note):
    rows = [[name, "Rome", "https://a.example"][:width] for name in FIRMS]
    found = converted(table(["Company", "City", "Website"][:width], *rows, [""], ["Alder: friends of trees"]))
    assert [loss.row for loss in found.losses if "note" in loss.reason] == [9] * is_note
    assert len(found.companies) == len(FIRMS) + (not is_note)


def test_pages_of_a_profile_in_another_country_are_profiles():
    rows = [[name, f"https://{'de' if n % 2 else 'fr'}.linkedin.com/company/c{n}"] for n, name in enumerate(FIRMS)]
    assert fields(["Company", "Column"], *rows)["Column"] == "socials.linkedin"


def test_the_name_of_a_company_keeps_its_comma():
    found = mapped(table(["Company", "City"], ["Alder, Ida", "Rome"], ["Birch, Tom", "Oslo"]))
    assert (found.kind, found.column[0].order) == (COMPANIES, "")


def test_rows_that_are_no_companies_are_left_out_and_told_as_whole_rows():
    headings = ["Company", "City", "Website", "Staff"]
    full = [[name, "Rome", "https://a.example", "1"] for name in FIRMS]
    after = [["Total", "", "", "6"], headings, ["Northern members"] * 4, [""], ["Source: the register, as of 2024"]]
    found = converted(table(headings, *full, *after))
    assert [line["company"]["name"] for _, line in found.companies] == FIRMS
    assert [(loss.row, str(loss.reason).partition(",")[0], loss.is_whole) for loss in found.losses] == [
        (8, "is a total", True),
        (9, "repeats the headings", True),
        (10, "is one text over several columns", True),
        (12, "is a note below the table", True),
    ]


def test_rows_that_are_combined_are_told():
    found = converted(table(["Company", "City"], ["Alder Trust", "Rome"], ["Alder Trust", "Rome"]))
    assert [each.row for each in found.losses] == [3]
    assert len(found.companies) == 1


def test_an_address_of_mail_with_a_semicolon_is_read():
    found = converted(
        table(["Company", "E-mail"], ["Alder Trust", "office@alder.example;"], ["B Club", "b(at)b.example"])
    )
    assert [line["company"]["socials"]["email"] for _, line in found.companies] == [
        "office@alder.example",
        "b@b.example",
    ]


SITES = [["Alder Trust", "Rome", "a@alder.example", "north"], ["Alder Trust", "Oslo", "b@alder.example", "south"]]
SITES += [["Birch Club", "Bern", "", "north"], ["Cedar Society", "Lima", "", "west"], ["Damm GmbH", "Kyiv", "", "east"]]


def test_whether_rows_of_one_name_are_one_organization_is_asked():
    sheet = table(["Company", "City", "E-mail", "Depot"], *SITES)
    mapping = propose([sheet], "t.csv")
    assert mapping.table[0].combine == "?"
    assert [each for each in mapping.questions() if "same name" in each] != []
    mapping.confirm_guesses()
    mapping.settle_questions()
    apart = records_of([sheet], mapping, KnownRows(), "USD")
    assert len(apart.companies) == 5
    mapping.table[0].combine = "yes"
    keep_all(mapping)
    found = records_of([sheet], mapping, KnownRows(), "USD")
    assert len(found.companies) == 4
    company = found.companies[0][1]["company"]
    assert company["address"] == [{"city": "Rome"}, {"city": "Oslo"}]
    assert company["depot"] == ["north", "south"]
    assert company["socials"] == {"email": "a@alder.example"}
    told = [(each.column, each.example) for each in found.losses if "differs" in each.reason]
    assert told == [("E-mail", "b@alder.example")]


def test_rows_that_agree_or_repeat_seldom_are_not_asked():
    assert mapped(table(["Company", "City"], *([name, "Rome"] for name in FIRMS))).combine == ""
    assert mapped(table(["Company", "City"], *([name, "Rome"] for name in [*FIRMS, *FIRMS]))).combine == ""


def test_rows_that_differ_only_in_their_people_are_not_asked():
    rows = [[name, "Rome", person] for name in FIRMS for person in ("Ida Alder", "Joe Birch")]
    assert mapped(table(["Company", "City", "Director"], *rows)).combine == ""
    rows = [[name, "Rome", *person] for name in FIRMS for person in (("Ida", "Alder"), ("Joe", "Birch"))]
    assert mapped(table(["Company", "City", "First name", "Last name"], *rows)).combine == ""


# ---------------------------------------------------------------------- what further real tables have


def kind_and_doubts(sheet):
    found = mapped(sheet)
    return found.kind, found.check, {each.heading: each.field for each in found.column}


def test_names_behind_a_public_office_are_persons_and_their_party_is_no_company():
    names = [f"Councillor {name}" for name in PERSONS]
    rows = with_names(names, ["Green Party", "Labour Party"], ["Oakward", "Elmward", "Firward"])
    kind, check, found = kind_and_doubts(table(["Name", "Party", "Ward"], *rows))
    assert (kind, check, found["Name"], found["Party"]) == (PEOPLE, ["kind"], "name", "")


LIKE_PERSONS = ["Amber Bakery", "Iris Ferry", "Rose Forge", "Grace Orchard", "Victor Press", "Max Quay"]


@pytest.mark.parametrize(
    ("headings", "kind"),
    [
        (["Name", "Remarkable"], PEOPLE),
        (["Organisation (as painted)", "Remarkable"], COMPANIES),
        (["Name", "Legal form"], COMPANIES),
    ],
)
def test_names_that_begin_like_persons_are_organizations_where_the_table_says_so(headings, kind):
    forms = ["non-profit", "cooperative", "foundation"] if headings[1] == "Legal form" else ["red", "green", "blue"]
    found = mapped(table(headings, *with_names(LIKE_PERSONS, forms)))
    assert found.kind == kind
    assert found.column[0].field == "name"


def test_a_legal_form_of_persons_does_not_make_them_organizations():
    sheet = table(["Name", "Legal form"], *with_names(PERSONS, ["individual", "natural person"]))
    assert mapped(sheet).kind == PEOPLE


def test_a_word_for_the_purpose_of_an_association_or_of_a_grant_is_asked():
    rows = with_names(FIRMS, ["Aide à l'embauche de trois apprentis"], ["1200"])
    column = mapped(table(["Bénéficiaire", "Objet", "Montant"], *rows)).column[1]
    assert (column.field, column.check) == ("description", True)


@pytest.mark.parametrize(
    "headings",
    [
        ["Org. (full name)", "w3", "what kind?", "Based in", "up since", "Who runs it", "What they do"],
        ["Org. (voller Name)", "w3", "was für eine?", "Sitz in", "Besteht seit", "Wer leitet", "Was sie tun"],
    ],
)
def test_headings_as_people_say_them_are_read(headings):
    values = [
        "www.quay.example",
        "non-profit",
        "Tarnwick",
        "1999-02-03",
        "Ida Alder",
        "They mend boats for neighbours.",
    ]
    found = mapped(table(headings, *([name, *values] for name in LIKE_PERSONS)))
    fields = ["name", "website", "type", "address.city", "extra:founded", "people", "description"]
    assert (found.kind, found.check, [each.field for each in found.column]) == (COMPANIES, [], fields)


def test_a_name_only_above_several_rows_is_that_of_a_group():
    rows = [[FIRMS[n // 3] if n % 3 == 0 else "", name, "Damm GmbH"] for n, name in enumerate(PERSONS)]
    kind, check, found = kind_and_doubts(table(["Project", "Maintainer Name", "Company"], *rows))
    assert (kind, check) == (PEOPLE, ["kind"])
    assert (found["Maintainer Name"], found["Company"]) == ("name", "position.company")


def test_last_names_alone_are_no_names_and_organizations_among_persons_are_asked():
    names = [["Ida", "Tom", "Anna", "Marco", "Petra", "Paul", "Maria", "John"][n % 8] for n in range(20)]
    lasts = ["Alder", "Birch", "Cedar", "Damm", "Elm"]
    rows = [[f"{name} {lasts[n % 5]}", lasts[n % 5]] for n, name in enumerate(names)]
    sheet = table(["forwarddisplayname", "lastname"], *rows, ["Cedar Trust", ""])
    kind, _, found = kind_and_doubts(sheet)
    assert (kind, found["forwarddisplayname"]) == (PEOPLE, "name")
    more = [["Alder Museum", ""], ["Birch Foundation", ""], ["Cedar Trust", ""]]
    assert kind_and_doubts(table(["forwarddisplayname", "lastname"], *rows, *more))[1] == ["kind"]
    [(_, first), *_, (_, last)] = converted(sheet).people
    assert (first["name"], last["name"]) == ("Ida Alder", "Cedar Trust")


def test_a_whole_name_beside_its_parts_is_one_person():
    headings = ["Company", "Employees", "Contact", "First name", "Last name"]
    rows = [[firm, "12", name, *name.split()[:2]] for firm, name in zip(FIRMS, PERSONS, strict=True)]
    sheet = table(headings, *rows)
    found = mapped(sheet)
    assert [each.field for each in found.column] == ["name", "teamSize", "people", "", ""]
    assert len(converted(sheet).companies[0][1]["positions"]) == 1


def test_a_position_without_a_column_of_organizations_is_kept_as_a_field():
    sheet = table(["Name", "Role"], *with_names(PERSONS, ["Chair", "Treasurer"]), name="board")
    role = mapped(sheet).column[1]
    assert (role.field, role.kind) == ("", "text")


def test_several_rows_of_a_person_become_lists_and_what_differs_is_told():
    rows = [["Ida Alder", "2001", "Chair"], ["Ida Alder", "2005", "Treasurer"], ["Tom Birch", "2001", "Chair"]]
    sheet = table(["Name", "Period", "Role", "Biography"], *rows, name="people")
    mapping = propose([sheet], "people.csv")
    mapping.confirm_guesses()
    assert mapping.table[0].kind == PEOPLE
    plain = records_of([sheet], mapping, KnownRows(), "USD")
    assert len(plain.people) == 2
    keep_all(mapping)
    found = records_of([sheet], mapping, KnownRows(), "USD")
    assert found.people[0][1]["period"] == ["2001", "2005"]
    mapping.table[0].column[1].kind = "text"
    losses = records_of([sheet], mapping, KnownRows(), "USD").losses
    assert [each.row for each in losses if "earlier row" in each.reason] == [3]
    told = [each for each in losses if "differs" in each.reason]
    assert [(each.row, each.column, each.example) for each in told] == [(3, "Period", "2005")]


@pytest.mark.parametrize(
    ("street", "number", "expected"),
    [
        ("Lundweg", "30", "Lundweg 30"),
        ("Westring 358", "358", "Westring 358"),
        ("rue des Ormes", "12 bis", "12 bis rue des Ormes"),
        ("Elm Street", "4A", "4A Elm Street"),
    ],
)
def test_a_house_number_of_its_own_column_is_beside_the_street(street, number, expected):
    sheet = table(["Company", "Street", "House number"], ["Alder Trust", street, number], ["Birch Club", "", "7"])
    found = converted(sheet)
    assert found.companies[0][1]["company"]["address"] == [{"address_1": expected}]
    assert [each.example for each in found.losses if "house number" in each.reason] == ["7"]


def test_a_number_in_brackets_behind_a_city_is_told_and_is_no_city():
    found = converted(table(["Verein", "Stadt"], ["Alder e.V.", "Hüfingen (8.158)"], ["Birch e.V.", "Burg (Fehmarn)"]))
    assert [line["company"]["address"][0]["city"] for _, line in found.companies] == ["Hüfingen", "Burg (Fehmarn)"]
    assert [each.example for each in found.losses if "brackets" in each.reason] == ["Hüfingen (8.158)"]


def test_organizations_in_several_rows_can_be_the_name_by_their_values():
    rows = [[f"{tree} Foundation", "5"] for tree in ("Alder", "Birch", "Cedar")] * 3
    kind, _, found = kind_and_doubts(table(["Qui", "Montant"], *rows))
    assert (kind, found["Qui"]) == (COMPANIES, "name")


def test_longitude_is_no_word_for_pay_and_what_a_database_writes_for_nothing_is_nothing():
    sheet = table(
        ["Company", "Lat", "Lon", "Alias"], ["Alder Trust", "54.7", "9.4", "\\N"], ["Birch", "5.1", "9.5", "\\N"]
    )
    assert [each.kind for each in mapped(sheet).column] == ["", "number", "number", ""]
    assert mapped(table(["Verein", "Lön"], ["Alder", "9000"])).column[1].kind == ""


# ---------------------------------------------------------------------- keys of rows


def test_a_column_of_different_ids_is_the_key_of_the_rows():
    rows = [[f"R{n * 7}", firm] for n, firm in enumerate(FIRMS)]
    assert fields(["Organisation ID", "Name"], *rows) == {"Organisation ID": "row.key", "Name": "name"}
    assert fields(["parent_id", "Name"], *rows)["parent_id"] == ""
    numbers = [[str(n), firm] for n, firm in enumerate(FIRMS, 1)]
    assert fields(["id", "Name"], *numbers)["id"] == ""
    [company, *_] = [line["company"] for _, line in converted(table(["Organisation ID", "Name"], *rows)).companies]
    assert company == {"id": "alder-trust", "name": "Alder Trust"}


def test_rows_of_one_key_are_combined_though_their_names_differ():
    rows = [["R1", "Alder Trust", "north"], ["R1", "Alder Trust", "south"], ["R2", "Birch Club", "north"]]
    rows += [["R2", "Birch Club", "east"], ["R3", "Alder Trust", "west"], ["R2", "Birch", "west"]]
    sheet = table(["Charity ID", "Company", "Depot"], *rows * 4)
    mapping = propose([sheet], "t.csv")
    mapping.table[0].column[0].field = "row.key"
    mapping.table[0].combine = "yes"
    keep_all(mapping)
    found = records_of([sheet], mapping, KnownRows(), "USD")
    depots = [(line["company"]["name"], line["company"]["depot"]) for _, line in found.companies]
    assert sorted(depots) == [
        ("Alder Trust", ["north", "south"]),
        ("Alder Trust", ["west"]),
        ("Birch Club", ["north", "east", "west"]),
    ]
    assert {each.example for each in found.losses if "differs" in each.reason} == {"Birch"}


def test_ids_that_rows_of_one_name_share_are_proposed_as_their_key():
    rows = [["R1", "Alder Trust", "north"], ["R1", "Alder Trust", "south"], ["R2", "Birch Club", "north"]]
    found = mapped(table(["Charity ID", "Company", "Depot"], *rows * 2))
    assert (found.combine, found.column[0].field) == ("?", "row.key")


def test_namesakes_with_keys_of_their_own_are_persons_of_their_own():
    rows = [["P1", "Ida Alder", "A"], ["P2", "Ida Alder", "B"], ["P3", "Tom Birch", "C"]]
    sheet = table(["Person ID", "Name", "Biography"], *rows, name="people")
    found = converted(sheet)
    assert [line["slug"] for _, line in found.people] == ["ida-alder", "ida-alder-2", "tom-birch"]


def test_a_numbered_heading_gives_way_to_the_plain_one():
    rows = [["Sports office", firm] for firm in FIRMS]
    assert fields(["Company 2", "Company"], *rows) == {"Company 2": "", "Company": "name"}


def test_a_remark_in_brackets_is_no_person_and_a_position_beside_it_is_one():
    assert person_in("(suggested by Joe Elm)", "") is None
    assert person_in("Ida Fir, Chair (since 2001)", "") == ("Ida Fir", "Chair (since 2001)", "")
    assert person_in("Ida Fir (Chair)", "") == ("Ida Fir", "Chair", "")


@pytest.mark.parametrize(
    ("heading", "amounts", "is_told"),
    [
        ("Treasury (EUR)", ["1200", "50"], True),
        ("Treasury", ["€ 1,200", "€ 50"], True),
        ("Treasury", ["$1,200", "USD 50"], False),
        ("Treasury (USD)", ["1200", "50"], False),
        ("Opening hours (EUR)", ["9-12", "14-18"], False),
    ],
)
def test_amounts_in_another_currency_are_told_before_an_import(heading, amounts, is_told):
    mapping = propose([table(["Company", heading], ["Alder Trust", amounts[0]], ["Birch Club", amounts[1]])], "t.csv")
    assert [each for each in mapping.doubts() if "another currency" in each] == mapping.doubts()
    assert bool(mapping.doubts()) == is_told
    mapping.confirm_guesses()
    assert mapping.doubts() == []


@pytest.mark.parametrize(
    "headings",
    [
        ["reg-code", "reg-nom"],
        ["dep-code", "dep-nom"],
        ["province_code", "province_name"],
        ["State Code", "State name"],
        ["Bundesland-Nr", "Bundesland"],
        ["region_code", "Name of region"],
        ["codice_regione", "denominazione_regione"],
        ["provinciecode", "provincienaam"],
    ],
)
def test_a_name_of_a_region_beside_its_code_is_the_state(headings):
    rows = [["Fondation Aulne", "84", "Isère"], ["Association Bouleau", "75", "Paris"]]
    assert fields(["Nom", *headings], *rows) == {"Nom": "name", headings[0]: "", headings[1]: "address.state"}


def test_the_name_of_what_is_no_place_means_no_place():
    rows = [["Alder Trust", "Lamp", "a.txt"], ["Birch Club", "Boat", "b.txt"]]
    assert fields(["Company", "Product name", "File name"], *rows)["Product name"] == ""


def test_addresses_of_persons_are_not_kept_with_all_columns():
    """A column of a second address has no field; "Keep all" would make that of each person public."""
    headings = ["Company", "Email", "Second email", "Web team email", "Contact email"]
    rows = [
        ["Alder Trust", "office@a.example", "ida.alder@a.example", "web@a.example", "hello@a.example"],
        ["Birch Club", "office@b.example", "Tom Birch <tb@b.example>", "www@b.example", "hello@b.example"],
    ]
    kinds = {each.heading: each.kind for each in mapped(table(headings, *rows)).column if not each.field}
    assert kinds == {"Second email": "", "Web team email": "text", "Contact email": ""}


def test_of_several_addresses_of_mail_the_first_is_imported_and_asked():
    rows = [["Alder Trust", "office@a.example; ida@a.example"], ["Birch Club", "office@b.example / info@b.example"]]
    sheet = table(["Company", "E-mail"], *rows)
    assert mapped(sheet).column[1].check, "the first one may be that of a person"
    found = converted(sheet)
    assert [line["company"]["socials"]["email"] for _, line in found.companies] == [
        "office@a.example",
        "office@b.example",
    ]
    [group] = grouped(found.losses)
    assert (group.rows, group.first.example) == ([2, 3], "office@a.example; ida@a.example")
    rows[0][1] = "ida@a.example, office@a.example"
    assert mapped(table(["Company", "E-mail"], *rows)).column[1].check
    rows[0][1] = "Ida Alder <chair@a.example>; office@a.example"
    assert mapped(table(["Company", "E-mail"], *rows)).column[1].check


def test_the_time_of_a_day_is_told_and_midnight_is_none():
    rows = [["Alder Trust", "2021-03-04 13:45"], ["Birch Club", "2021-03-05T00:00:00Z"]]
    found = converted(table(["Company", "Member since"], *rows))
    assert [line["company"]["listedAt"] for _, line in found.companies] == ["2021-03-04", "2021-03-05"]
    [loss] = found.losses
    assert (loss.row, loss.example, loss.reason) == (2, "2021-03-04 13:45", "is imported without the time of day")


def test_a_country_that_can_be_a_state_is_told():
    rows = [["Alder Trust", "Atlanta, Georgia"], ["Birch Club", "Berlin, Germany"], ["Cedar Club", "Paris, France"]]
    found = converted(table(["Company", "Location"], *rows))
    assert [line["company"]["address"][0]["country"] for _, line in found.companies] == ["GE", "DE", "FR"]
    [loss] = found.losses
    assert (loss.row, loss.example) == (2, "Atlanta, Georgia")
    assert "a country or a state" in loss.reason


def test_what_a_spreadsheet_changed_does_not_say_what_a_column_is():
    rows = [["Alder Trust", "#N/A", "#DIV/0!"], ["Birch Club", "yes", "$ 12"], ["Cedar Club", "no", "$ 14"]]
    sheet = table(["Company", "Free entry", "Rent"], *rows)
    assert [each.kind for each in mapped(sheet).column] == ["", "yesno", "number"]


@pytest.mark.parametrize(
    "cell",
    ["vacant", "N. N.", "Office", "Ida Alder (suggested by Joe Elm?)", "Ida Alder, Tom Birch, Anna Cedar", "空席"],
)
def test_what_is_no_name_of_one_person_in_a_list_of_persons_is_told(cell):
    rows = [["Alder Trust", "Ida Alder; Tom Birch"], ["Birch Club", "Anna Cedar; Marco Damm"], ["Cedar Club", cell]]
    found = converted(table(["Company", "Board"], *rows))
    assert len(found.people) == 4
    [loss] = found.losses
    assert (loss.row, loss.example, loss.reason) == (4, cell, "is not the name of one person")


def test_names_with_a_comma_that_are_of_one_person_are_kept():
    assert person_in("Ida Alder, Chair", "") == ("Ida Alder", "Chair", "")
    assert person_in("Ida Alder, PhD, MBA", "") == ("Ida Alder, PhD, MBA", "", "")
    assert person_in("Elm Fir, Ida Maria", "", LAST_FIRST) == ("Ida Maria Elm Fir", "", "")
    assert person_in("Alder, Ida", "") == ("Alder, Ida", "", "")
