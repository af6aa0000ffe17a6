"""What differs between two values, within the room that a page has."""

import random

import pytest

from muniment.kernel.actor import SYSTEM
from muniment.registry.history import entry as history_entry
from muniment.web.presenters import differences
from muniment.web.presenters.differences import Budget, Room, line, mark


def rows(*numbers, **names):
    return [{"id": f"r{n}", "name": names.get(f"r{n}", f"Holder {n}")} for n in numbers]


def of_entry(field, before, after):
    (found,) = differences.lines_of_entry(
        history_entry(SYSTEM, "updated", before={field: before}, after={field: after}), Room()
    )
    return found.was, found.now


@pytest.mark.parametrize(
    ("was", "now", "marked"),
    [
        ("The quick fox", "The slow fox", ("The <del>quick</del> fox", "The <ins>slow</ins> fox")),
        ("One two", "One two three", ("One two", "One two<ins> three</ins>")),
        ("a b c d e", "a x c y e", ("a <del>b</del> c <del>d</del> e", "a <ins>x</ins> c <ins>y</ins> e")),
        ("words", "sword", ("<del>words</del>", "<ins>sword</ins>")),
        ("same", "same", ("same", "same")),
        ("", "<b>", ("", "&lt;b&gt;")),
        ("1 < 2 & x", "1 < 3 & x", ("1 &lt; <del>2</del> &amp; x", "1 &lt; <ins>3</ins> &amp; x")),
    ],
)
def test_the_words_that_differ_are_marked(was, now, marked):
    assert mark(was, now, Budget()) == marked


def test_marks_leave_both_texts_as_they_are_whatever_the_budget():
    draw = random.Random(3)
    for _ in range(400):
        was = "".join(draw.choice("ab \n") for _ in range(draw.randint(1, 30)))
        now = "".join(draw.choice((each, each, each, "", "b ")) for each in was) or "a"
        old, new = mark(was, now, Budget(draw.choice((0, 3, 40, 9_999))))
        assert old.replace("<del>", "").replace("</del>", "") == was
        assert new.replace("<ins>", "").replace("</ins>", "") == now


def words(draw, count):
    return " ".join(draw.choice("ab") for _ in range(count))


def test_a_page_of_worst_texts_takes_no_more_than_its_budget():
    draw, room = random.Random(3), Room()
    for _ in range(48):
        found = line("Text", words(draw, 3_000), words(draw, 3_000), room=room)
        assert "<del>" in found.was_marked
    assert room.budget.spent <= differences.STEPS


def test_one_word_in_a_long_text_is_marked_with_work_in_proportion_to_the_text():
    draw, budget = random.Random(3), Budget()
    was = words(draw, 4_000).split(" ")
    now = [*was[:500], "x", *was[501:3_000], "y", *was[3_001:]]
    _, marked = mark(" ".join(was), " ".join(now), budget)
    assert marked.count("<ins>") == 2
    assert budget.spent < 3 * 8_000


def test_beyond_the_budget_lines_are_compared_and_then_the_text_between_counts_as_replaced():
    draw = random.Random(3)
    was, now = ("\n".join([words(draw, 1_500), "Same line.", words(draw, 1_500)]) for _ in range(2))
    old, _ = mark(was, now, Budget())
    assert "</del>Same line.\n<del>" in old
    old, new = mark(f"Begins {was} ends.", f"Begins {now} ends.", Budget(0))
    assert (old.count("<del>"), new.count("<ins>")) == (1, 1)
    assert old.startswith("Begins ")
    assert old.endswith(" ends.")


def test_a_long_text_is_shown_from_shortly_before_the_first_difference():
    was = "word " * 10_000
    found = line("Text", was, f"{was}and more", room=Room())
    assert found.now.startswith("…")
    assert found.now.endswith("and more (50,008 characters in all)")
    assert "<ins>and more" in found.now_marked
    assert max(len(found.was), len(found.now)) < 300


def test_of_a_long_text_the_part_with_the_differences_is_shown():
    was = "word " * 10_000
    now = f"{was[:20_000]}new {was[20_000:30_000]}newer {was[30_000:]}"
    found = line("Text", was, f"{was[:20_000]}new {was[20_000:]}", room=Room())
    assert found.now_marked.count("<ins>new</ins>") + found.now_marked.count("<ins>new </ins>") == 1
    assert found.now.startswith("…")
    assert found.now.endswith("… (50,004 characters in all)")
    assert max(len(found.was), len(found.now)) < 500
    both = line("Text", was, now, room=Room())
    assert len(both.now) < differences.MAX_SHOWN + 100
    short = "word " * 290
    assert line("Text", short, f"{short}more", room=Room()).now == f"{short}more"


def test_the_characters_of_a_page_are_bounded():
    room = Room()
    found = [line("Text", "x" * 250_000, "y" * 250_000, room=room) for _ in range(100)]
    shown = sum(len(each.was) + len(each.now) for each in found)
    assert shown < differences.PAGE_CHARACTERS + 100 * 2 * (differences.MIN_SHOWN + 40)
    assert found[-1].was.endswith("(250,000 characters in all)")


def test_rows_of_a_change_are_shown_alone():
    before, after = rows(*range(40)), rows(*range(40), r7="Renamed")
    assert of_entry("capTable", before, after) == ("Holder 7", "Renamed")
    assert of_entry("capTable", before, [*before[1:], before[0]]) == ("", "(1 moved row)")
    assert of_entry("capTable", before, rows(*range(1, 40))) == ("Holder 0", "")


def test_of_many_rows_the_first_are_shown_with_the_number_of_the_others():
    was, now = of_entry("capTable", rows(0), rows(*range(31)))
    assert (was, now.count("\n"), now.split("\n")[-1]) == ("", 25, "(5 more rows)")
    found = line("Cap table", rows(*range(100)), rows(*range(70, 110)))
    assert found.was.split("\n")[-2:] == ["(45 more rows)", "(30 unchanged rows)"]


def test_what_a_reviewer_decides_on_is_shown_whole():
    text, holders = "word " * 10_000, rows(*range(200))
    submitted = {"body": {"before": None, "after": text}, "capTable": {"before": None, "after": holders}}
    body, table = differences.lines_of(submitted)
    assert (body.now, table.now.count("Holder")) == (text, 200)
    suggested = {"body": {"before": text, "after": f"{text}more"}, "capTable": {"before": rows(1), "after": holders}}
    body, table = differences.lines_of(suggested)
    assert (body.was, body.now, table.now.count("Holder")) == (text, f"{text}more", 199)


def test_members_of_an_object_are_shown_alone_and_one_that_is_new_says_so():
    before = {"method": "sale", "details": "All.", "pools": rows(1, 2)}
    after = {"method": "sale", "schedule": "Daily", "pools": rows(1)}
    assert of_entry("distribution", before, after) == (
        "Distribution details: All.\nPools: Holder 2\nDistribution schedule: –",
        "Distribution details: –\nPools: –\nDistribution schedule: Daily",
    )


def test_members_of_rows_are_words_rather_than_json():
    vote = {"title": "Buy the creek", "votes": {"for": 812_400, "against": 90_310}, "endDate": "2025-04-18"}
    assert differences.value_text([vote]) == "Buy the creek, for 812,400, against 90,310, 2025-04-18"


def test_a_member_has_the_label_of_its_kind():
    assert differences.label_of("positions") == "Team"
    assert differences.label_of("positions", "person") == "Positions"
    assert differences.label_of("registrationOffice") == "Registration office"


def test_a_text_of_which_no_word_stays_is_marked_as_a_whole():
    was, now = mark("Lenses from bottles.", "Ferrymen who own boats.", Budget())
    assert was == "<del>Lenses from bottles.</del>"
    assert now == "<ins>Ferrymen who own boats.</ins>"
    assert mark("one two three", "one 2 three", Budget())[1] == "one <ins>2</ins> three"
