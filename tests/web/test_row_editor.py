"""The row editor: which operations a submitted page of rows stands for, and where its faults are shown."""

import json

import pytest
from django.http import QueryDict

from muniment.schema.company_parts import CAP_TABLE, POSITIONS, PROPOSALS
from muniment.schema.validation import Fault
from muniment.web.row_editor import BLANK_ROWS, MAX_NEW_ROWS, PAGE_ROWS, RowEditor
from muniment.web.row_lists import DISTRIBUTED, HOLDERS, PLACES, TEAM, VOTED, RowList, funding_rounds, number_or_text

LISTS = (TEAM, PLACES, DISTRIBUTED, VOTED, HOLDERS)
ADA = {"id": "a1", "title": "Chair", "person": {"name": "Ada Reef", "slug": "ada-reef", "since": 1999}, "unit": "Board"}
VOTE = {"id": "7", "title": " A tenth harbour ", "votes": {"for": 0.1, "against": 3, "abstain": 2}, "origin": "draft"}
HOLDER = {"id": "h1", "name": "Smith; Sons\r\nand daughters", "address": "0x1", "percentage": 1e-07}


def form_of(editor, **changes):
    """Return what a browser submits: every row of the page, after *changes* by the name of the form field."""
    fields = {}
    for row in editor.rows():
        if row["shown"]:
            fields[f"{row['key']}-row"] = row["shown"]
            fields[f"{row['key']}-place"] = str(row["wanted"])
        if row["remove"]:
            fields[f"{row['key']}-remove"] = "yes"
        fields |= {cell["id"]: cell["value"].replace("\n", "\r\n") for cell in row["cells"]}
    post = QueryDict(mutable=True)
    post.update({**fields, **changes})
    return post


def editor_of(rows, stored, **query):
    return RowEditor(rows, stored, query)


def change(rows, stored, **changes):
    editor = editor_of(rows, stored)
    editor.read(form_of(editor, **changes))
    return editor.change()


@pytest.mark.parametrize(("rows", "row"), [(TEAM, ADA), (VOTED, VOTE), (HOLDERS, HOLDER)], ids=["team", "votes", "cap"])
def test_rows_that_were_not_touched_are_not_changed(rows, row):
    assert change(rows, [row, {**row, "id": "other"}]) == {}


@pytest.mark.whole(keeps=0)
def test_no_row_of_a_real_registry_is_changed_by_saving_its_page(sample_data):
    pages = 0
    for line in (sample_data / "companies.jsonl").read_bytes().splitlines():
        bundle = json.loads(line)
        for rows in LISTS:
            stored = rows.kind.with_ids(rows.stored(bundle))
            for page in range(1, -(-len(stored) // PAGE_ROWS) + 1):
                editor = editor_of(rows, stored, **{f"{rows.name}-page": str(page)})
                editor.read(form_of(editor))
                assert editor.change() == {}
                pages += 1
    assert pages > 3_000


def test_only_the_members_that_were_changed_are_sent():
    assert change(HOLDERS, [HOLDER], **{"capTable-0-tokens": "12"}) == {"set": [{"id": "h1", "tokens": "12"}]}
    assert change(VOTED, [VOTE], **{"proposals-0-for": "1,200"}) == {"set": [{"id": "7", "votes": {"for": 1200}}]}
    assert change(VOTED, [VOTE], **{"proposals-0-for": ""}) == {"set": [{"id": "7", "votes": {"for": None}}]}
    assert change(TEAM, [ADA], **{"positions-0-title": ""}) == {"set": [{"id": "a1", "title": None}]}


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ({"name": "Bo"}, {"name": "Bo", "since": 1999}),
        ({"slug": "bo"}, {"slug": "bo", "since": 1999}),
        ({"name": "Bo", "slug": "bo"}, {"name": "Bo", "slug": "bo", "since": 1999}),
        ({"slug": ""}, {"name": "Ada Reef", "since": 1999}),
    ],
    ids=["a name", "a slug", "both", "no slug"],
)
def test_what_was_changed_of_name_and_slug_says_who_holds_a_position(typed, sent):
    changes = {f"positions-0-{name}": value for name, value in typed.items()}
    assert change(TEAM, [ADA], **changes) == {"set": [{"id": "a1", "person": sent}]}


def test_new_rows_are_added_and_checked_ones_removed():
    new = {"capTable-1-name": " Newcomer ", "capTable-1-percentage": "2.5%", "capTable-0-remove": "yes"}
    assert change(HOLDERS, [HOLDER], **new) == {"add": [{"name": "Newcomer", "percentage": 2.5}], "remove": ["h1"]}
    assert change(TEAM, [], **{"positions-0-title": "Chair"}) == {"add": [{"title": "Chair", "person": {}}]}
    assert change(TEAM, [], **{"positions-0-slug": "bo"}) == {"add": [{"person": {"slug": "bo"}}]}


def test_a_row_is_not_removed_by_emptying_it():
    editor = editor_of(TEAM, [ADA])
    editor.read(form_of(editor, **{"positions-0-name": "", "positions-0-slug": "", "positions-0-title": " "}))
    assert editor.has_faults
    assert "select Remove" in editor.rows()[0]["note"]


def test_a_page_shows_its_rows_and_a_search_those_that_match():
    stored = [{"id": str(n), "name": f"Holder {n:04}", "address": f"0x{n % 100}"} for n in range(5_000)]
    editor = editor_of(HOLDERS, stored, **{"capTable-page": "200"})
    shown = [row for row in editor.rows() if not row["is_new"]]
    assert [row["place"] for row in shown] == [f"{n:,}" for n in range(4_976, 5_001)]
    assert len(editor.rows()) == PAGE_ROWS + BLANK_ROWS
    assert editor.summary == "Rows 4,976 to 5,000 of 5,000."
    found = editor_of(HOLDERS, stored, **{"capTable-q": " HOLDER 4999 "})
    assert [row["place"] for row in found.rows()] == ["5,000", *["New"] * BLANK_ROWS]
    assert found.summary == "Rows 1 to 1 of 1 that match, of 5,000 in all."
    assert editor_of(HOLDERS, stored, **{"capTable-q": "unmatched"}).summary == "No row of 5,000 matches."
    assert editor_of(HOLDERS, []).summary == "No holders yet."
    assert editor_of(HOLDERS, stored, **{"capTable-page": "999"}).found.page == 200
    assert editor_of(HOLDERS, stored, **{"capTable-page": "x"}).found.page == 1


def test_a_row_that_another_edit_removed_is_offered_again_and_its_removal_is_done():
    editor = editor_of(HOLDERS, [HOLDER])
    typed = form_of(editor, **{"capTable-0-name": "Typed here"})
    later = editor_of(HOLDERS, [])
    later.read(typed)
    assert later.has_faults
    (row, *_) = later.rows()
    assert (row["is_new"], row["cells"][0]["value"]) == (True, "Typed here")
    assert "removed in the meantime" in row["note"]
    done = editor_of(HOLDERS, [])
    done.read(form_of(editor, **{"capTable-0-remove": "yes"}))
    assert (done.change(), done.has_faults) == ({}, False)


def test_a_row_that_was_not_touched_follows_the_edits_of_others():
    typed = form_of(editor_of(HOLDERS, [HOLDER]))
    later = editor_of(HOLDERS, [{**HOLDER, "name": "Renamed meanwhile"}])
    later.read(typed)
    assert later.change() == {}
    assert later.rows()[0]["cells"][0]["value"] == "Renamed meanwhile"


@pytest.mark.parametrize(
    ("field", "number", "column"),
    [
        ("capTable.set[0].percentage", 1, "percentage"),
        ("capTable[0].percentage", 1, "percentage"),
        ("capTable.add[0].tokens", 3, "tokens"),
        ("capTable[2].tokens", 3, "tokens"),
        ("capTable.remove[0]", 0, None),
        ("capTable.add[0].origin", 3, None),
    ],
)
def test_a_fault_is_shown_in_its_row(field, number, column):
    editor = editor_of(HOLDERS, [{"id": str(n), "name": f"Holder {n}"} for n in range(3)])
    typed = {"capTable-0-remove": "yes", "capTable-1-percentage": "half", "capTable-3-tokens": "many"}
    editor.read(form_of(editor, **typed))
    assert editor.change().keys() == {"add", "set", "remove"}
    assert editor.put([Fault(field, "is wrong"), Fault("name", "is missing")]) == [Fault("name", "is missing")]
    row = editor.rows()[number]
    faults = {cell["id"].rpartition("-")[2]: cell["fault"] for cell in row["cells"] if cell["fault"]}
    assert faults == ({column: "Is wrong."} if column else {})
    assert bool(row["note"]) == (column is None)


@pytest.mark.parametrize("field", ["capTable", "capTable[1].percentage", "capTable.set[9].name"])
def test_a_fault_of_no_submitted_row_is_shown_above(field):
    editor = editor_of(HOLDERS, [{"id": str(n), "name": f"Holder {n}"} for n in range(3)])
    editor.read(form_of(editor, **{"capTable-0-name": "Changed"}))
    editor.change()
    assert editor.put([Fault(field, "is wrong")]) == []
    assert "s wrong." in editor.sentences[0]


def test_a_pool_is_found_by_its_path_inside_the_distribution():
    editor = editor_of(DISTRIBUTED, [])
    editor.read(form_of(editor, **{"pools-0-name": "Members", "pools-0-percentage": "half"}))
    editor.change()
    assert editor.put([Fault("distribution.pools.add[0].percentage", "must be a number")]) == []
    assert editor.rows()[0]["cells"][1]["fault"] == "Must be a number."


def test_a_stored_word_that_is_no_choice_any_more_stays_chosen():
    stored = {**VOTE, "status": "vetoed"}
    assert change(VOTED, [stored]) == {}
    cell = next(each for each in editor_of(VOTED, [stored]).rows()[0]["cells"] if each["id"].endswith("-status"))
    assert (cell["value"], "vetoed" in cell["choices"]) == ("vetoed", True)


def test_a_page_of_rows_is_far_from_the_limit_of_fields(settings):
    rows = PAGE_ROWS + BLANK_ROWS + MAX_NEW_ROWS
    of_a_list = [rows * (len(each.columns) + 2) + PAGE_ROWS for each in (*LISTS, funding_rounds())]
    team, token = of_a_list[:2], of_a_list[2:]
    assert max(sum(team), sum(token)) + 20 < settings.DATA_UPLOAD_MAX_NUMBER_FIELDS


@pytest.mark.parametrize("kind", [POSITIONS, PROPOSALS, CAP_TABLE])
def test_the_columns_of_a_list_have_names_of_their_own(kind):
    names = [column.name for column in RowList("rows", kind, "", "", add="", none="").columns]
    assert len(set(names)) == len(names)
    assert "id" not in names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,200", 1200),
        ("60%", 60),
        ("0.5", 0.5),
        ("-5", -5),
        ("123456789012345678901", 123456789012345678901),
        ("2.0", 2),
        ("12,5", "12,5"),
        ("1_000", "1_000"),
        ("nan", "nan"),
        ("half", "half"),
    ],
)
def test_a_number_is_read_as_people_write_it_and_anything_else_is_left_for_the_validation(text, value):
    assert number_or_text(text) == value


@pytest.mark.parametrize(("stored", "shown_as"), [("2025-06-30", "date"), (None, "date"), ("next week", "text")])
def test_a_day_has_a_date_picker_unless_it_is_stored_as_something_else(stored, shown_as):
    (row, *_) = editor_of(VOTED, [{"id": "1", "title": "Dredge", **({"endDate": stored} if stored else {})}]).rows()
    (cell,) = [each for each in row["cells"] if each["id"].endswith("-endDate")]
    assert (cell["type"], cell["value"]) == (shown_as, stored or "")
    assert change(VOTED, [{"id": "1", "endDate": stored}]) == {}


def letters(count=5):
    return [{"id": str(n), "name": letter} for n, letter in enumerate("abcdefghij"[:count])]


@pytest.mark.parametrize(
    ("places", "order"),
    [
        ({"capTable-3-place": "1"}, "dabce"),
        ({"capTable-0-place": "3"}, "bcade"),
        ({"capTable-0-place": "2", "capTable-1-place": "1"}, "bacde"),
        ({"capTable-0-place": "99"}, "bcdea"),
        ({"capTable-4-place": "1", "capTable-0-remove": "yes"}, "ebcd"),
        ({"capTable-4-place": "1", "capTable-5-name": "new"}, "eabcd+"),
    ],
)
def test_rows_are_moved_by_their_numbers_and_keep_their_ids(places, order):
    sent = change(HOLDERS, letters(), **places)
    assert "".join("+" if row["name"] == "new" else row["name"] for row in sent) == order
    assert {row["name"]: row["id"] for row in sent if "id" in row}.items() <= {
        row["name"]: row["id"] for row in letters()
    }.items()


@pytest.mark.parametrize("place", ["", "0", "-1", "x", "2", "2,"])
def test_a_number_that_moves_nothing_is_no_change(place):
    assert change(HOLDERS, letters(), **{"capTable-1-place": place}) in ({}, change(HOLDERS, letters()))


def test_a_row_that_only_moves_keeps_what_another_edit_wrote():
    typed = form_of(editor_of(HOLDERS, letters()), **{"capTable-0-place": "2"})
    later = editor_of(HOLDERS, [{"id": "0", "name": "renamed"}, *letters()[1:]])
    later.read(typed)
    assert [row["name"] for row in later.change()] == ["b", "renamed", "c", "d", "e"]


def test_a_fault_of_a_moved_row_is_shown_in_that_row():
    editor = editor_of(HOLDERS, letters())
    editor.read(form_of(editor, **{"capTable-0-place": "3", "capTable-0-percentage": "half"}))
    assert [row["name"] for row in editor.change()] == ["b", "c", "a", "d", "e"]
    editor.put([Fault("capTable[2].percentage", "must be a number")])
    row = editor.rows()[0]
    assert (row["wanted"], [cell["fault"] for cell in row["cells"] if cell["fault"]]) == ("3", ["Must be a number."])
