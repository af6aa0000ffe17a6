"""The long lists of a company: grouped, ordered, measured and cut into pages."""

import pytest

from muniment.languages.speaking import speaking
from muniment.web.presenters import company_lists as lists
from muniment.web.wording.labels import words_of


def position(name, title, slug=""):
    return {"title": title, "person": {"name": name, **({"slug": slug} if slug else {})}}


def test_a_person_is_shown_once_with_the_first_titles_and_the_number_of_others():
    rows = [position("Ada", f"Author {n}", "ada") for n in range(5)] + [position("Ben", "Chair", "ben")]
    ada, ben = lists.team_of(rows)
    assert (ada.name, ada.titles, ada.more) == ("Ada", ["Author 0, 1, 2"], 2)
    assert (ben.titles, ben.more) == (["Chair"], 0)


def test_a_name_without_a_profile_is_one_person_as_in_the_team_size():
    (ada,) = lists.team_of([position("Ada", "Chair"), position("ada ", "Clerk")])
    assert ada.titles == ["Chair", "Clerk"]
    assert len(lists.team_of([position("Ada", "Chair"), position("Ada", "Clerk", "ada")])) == 2
    assert len(lists.team_of([position("Ada", "Chair", "ada"), position("Ada", "Clerk", "ada-2")])) == 2


def test_a_title_is_shown_once_with_its_people():
    chair, clerk = lists.roles_of([position("Ada", "Chair"), position("Ben", "Clerk"), position("Cem", "Chair")])
    assert (chair.title, [each["name"] for each in chair.people]) == ("Chair", ["Ada", "Cem"])
    assert (clerk.title, len(clerk.people)) == ("Clerk", 1)


def test_positions_of_a_person_are_grouped_by_organization():
    rows = [{"title": f"Author {n}", "company": {"slug": "harbour", "name": "Harbour"}} for n in range(10)]
    harbour, tide = lists.organizations_of([*rows, {"title": "Chair", "company": {"slug": "tide", "name": "Tide"}}])
    assert (harbour.titles, harbour.more) == ([f"Author {', '.join(map(str, range(8)))}"], 2)
    assert (tide.titles, tide.more) == (["Chair"], 0)


def test_open_votes_come_first_by_their_end_and_then_the_latest():
    rows = [
        {"id": "old", "status": "passed", "endDate": "2020-01-01"},
        {"id": "never closed", "status": "active", "endDate": "2021-01-01"},
        {"id": "later", "status": "active", "endDate": "2026-06-30"},
        {"id": "undated", "status": "active"},
        {"id": "soon", "status": "active", "endDate": "2026-06-01"},
        {"id": "new", "status": "failed", "endDate": "2026-05-01"},
    ]
    order = [row["id"] for row in lists.by_relevance(rows, "2026-06-01")]
    assert order == ["soon", "later", "undated", "new", "never closed", "old"]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([10] * 10, ("100%", "0.00")),
        ([1.5, *[0.25] * 14], ("3.75%", "0.23")),
        ([50, *[0] * 9], ("50%", "0.90")),
        ([30] * 10, None),
        ([10] * 9, None),
        ([0] * 10, None),
        ([5] * 10 + [-1], None),
    ],
)
def test_the_concentration_of_holders(shares, expected):
    found = lists.concentration_of([{"percentage": share} for share in shares] + [{"name": "Silent"}])
    assert (found and (found.top, found.gini)) == expected


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ([], ""),
        ([60, 40], "Together they hold all tokens."),
        ([33.3, 33.3, 33.3], "Together they hold all tokens."),
        ([30, 0.1, 0.2], "Together they hold 30.3% of all tokens; other holders are not listed."),
        ([30, None], "The list may not be complete."),
        ([0, 0], "The list may not be complete."),
        ([80, 80], "The list may not be complete."),
        ([50, -1], "The list may not be complete."),
    ],
)
def test_listed_holders_say_whether_they_are_all(shares, sentence):
    assert lists.completeness_of([{"percentage": share} for share in shares]) == sentence


@pytest.mark.parametrize(
    ("shares", "label"),
    [
        ([60, 40], "Token holders, the largest with 60%"),
        ([100], "Token holder"),
        ([30], "Listed holder, with 30% of all tokens"),
        ([30.456, 0.1, 0.2], "Listed holders with 30.8% of all tokens together; the largest has 30.46%"),
        ([0.0001, 0.0002], "Listed holders with 0.0003% of all tokens together; the largest has 0.0002%"),
        ([30, None], "Listed holders"),
    ],
)
def test_the_number_of_holders_says_of_what_share_and_which_is_the_largest(shares, label):
    assert lists.holders_label([{"percentage": share} for share in shares]) == label


def test_a_text_is_cut_between_paragraphs_and_short_lines_count_as_full_ones():
    paragraphs = [f"{n} " + "word " * 60 for n in range(20)]
    parts = lists.parts_of("\n\n".join(paragraphs), 1_000)
    assert "\n\n".join(parts) == "\n\n".join(paragraphs)
    assert max(len(part) for part in parts) <= 1_000
    assert len(lists.parts_of("\n\n".join("x" * 1 for _ in range(100)), 1_000)) == 9
    assert lists.parts_of("", 1_000) == [""]


@pytest.mark.parametrize(
    ("asked", "page"), [("", 1), ("2", 2), ("3", 3), ("99", 3), ("0", 1), ("-1", 1), ("²", 1), ("9" * 20, 1)]
)
def test_a_page_that_does_not_exist_is_the_nearest_that_does(asked, page):
    assert lists.cut(list(range(25)), asked, 10).page == page


def test_names_of_further_members_are_shown_as_words():
    assert [words_of(name) for name in ("treasuryNote", "sources", "grant_total", "tokenURL", "lei", "companyId")] == [
        "Treasury note",
        "Sources",
        "Grant total",
        "TokenURL",
        "LEI",
        "Company ID",
    ]


def test_a_text_does_not_repeat_the_summary_above_it():
    assert lists.text_beyond("We grow\nsalt.\n\nMore of it.", "We grow salt.") == "More of it."
    assert lists.text_beyond("We grow salt.", "We grow salt.") == ""
    assert lists.text_beyond("We grow salt.\n\nMore.", "") == "We grow salt.\n\nMore."


def test_a_heading_stays_with_its_list_and_a_long_list_is_split():
    items = [f"- item {number}" for number in range(40)]
    parts = lists.parts_of("\n\n".join(("x" * 900, "## Items", "\n".join(items))), 1_000)
    assert parts[0] == "x" * 900
    assert parts[1].startswith("## Items\n\n- item 0\n")
    assert [line for part in parts for line in part.split("\n") if line.startswith("-")] == items


def test_the_head_of_a_page_says_the_first_sentence_of_what_the_text_below_repeats():
    words = (
        "The committee has jurisdiction over ships, e.g. ferries of the U.S. and of all its harbours. It meets daily"
    )
    assert lists.lead_of(words, f"{words} in the hall.\n\nMore.") == words.rpartition(" It meets")[0]
    assert lists.lead_of(words, "Something else.") == words
    assert lists.lead_of("A short one.", "A short one. It goes on.") == "A short one."


def test_the_shares_of_a_table_have_as_many_decimals_and_its_tokens_no_symbol():
    rows = [
        {"tokens": "20,508.39 OP", "percentage": 3.23},
        {"tokens": "12 OPS", "percentage": 14.3021},
        {"percentage": 1},
        {"percentage": None},
    ]
    shown = lists.holders_shown(rows, "OP")
    assert [each["share"] for each in shown] == ["3.2300%", "14.3021%", "1.0000%", ""]
    assert [each["tokens"] for each in shown] == ["20,508.39", "12 OPS", "", ""]
    assert [each["share"] for each in lists.holders_shown([{"percentage": 5}, {"percentage": 20}], "")] == ["5%", "20%"]
    long = [{"percentage": 0.1234567891}, {"percentage": 5}]
    assert [each["share"] for each in lists.holders_shown(long, "")] == ["0.1234567891%", "5%"]
    with speaking("de"):
        assert lists.holders_shown(rows, "OP")[0]["share"].replace("\xa0", " ") == "3,2300 %"


@pytest.mark.parametrize(
    ("titles", "lines"),
    [
        (["Author of EIP-2", "Author of EIP-7", "Chair"], ["Author of EIP-2, EIP-7", "Chair"]),
        (["Member of board 1", "Member of team 2"], ["Member of board 1", "Member of team 2"]),
        (["Chair", "Chair"], ["Chair", "Chair"]),
        (["2024", "2025"], ["2024", "2025"]),
        ([], []),
    ],
)
def test_titles_that_differ_in_a_number_share_a_line(titles, lines):
    assert lists.joined_titles(titles) == lines


def test_a_single_title_more_is_shown_rather_than_counted():
    held = [{"person": {"slug": "ada", "name": "Ada"}, "title": title} for title in ("Chair", "Clerk", "Cook", "Crew")]
    (ada,) = lists.team_of(held)
    assert (ada.titles, ada.more) == (["Chair", "Clerk", "Cook", "Crew"], 0)
    (ada,) = lists.team_of([*held, {"person": {"slug": "ada", "name": "Ada"}, "title": "Captain"}])
    assert (ada.titles, ada.more) == (["Chair", "Clerk", "Cook"], 2)
