"""What the process that reads a file answers is used only in its declared form and size."""

import msgspec
import pytest

from muniment import child_process
from muniment.kernel.problems import BadRequest
from muniment.registry.tables import formats
from muniment.registry.tables.formats import MAX_COLUMNS, MAX_ROWS, MAX_SHEETS, OK, Sheet
from muniment.registry.tables.reading import TableFile, read_file

SHEET = Sheet("One", [["a", ""], ["", "d"]], ["a note"], "utf-8", ";", is_guess=True, samples=["é"])


def told(width=1, cells=("a",), *, name="One", notes=(), samples=()):
    return [name, width, cells, notes, "utf-8", ";", False, samples]


def packed(*tables):
    return msgspec.msgpack.encode(tables)


def test_tables_come_back_as_they_were():
    assert formats.unpack(formats.pack([SHEET, SHEET])) == [SHEET, SHEET]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[]",
        packed(),
        packed(*[told()] * (MAX_SHEETS + 1)),
        packed(None),
        packed([]),
        packed([*told(), 1]),
        packed(told(0)),
        packed(told(2)),
        packed(told(MAX_COLUMNS + 1, ["a"] * (MAX_COLUMNS + 1))),
        packed(told(1, ["a"] * (MAX_ROWS + 1))),
        packed(told(1, [])),
        packed(told(1, [1])),
        packed(told(notes=["x"] * (formats.MAX_NOTES // 2 + 1)), told(notes=["x"] * (formats.MAX_NOTES // 2))),
        packed(told(samples=["x"] * 4)),
        packed(told()) + b"more",
        b"\x91\xdd\xff\xff\xff\xff",
    ],
    ids=lambda said: repr(bytes(said[:20])),
)
def test_another_form_or_size_is_no_answer(said):
    with pytest.raises(formats.NotAnAnswer):
        formats.unpack(said)


def test_the_cells_of_all_tables_are_limited(monkeypatch):
    monkeypatch.setattr(formats, "MAX_CELLS", 5)
    assert formats.unpack(packed(told(2, ["a"] * 4), told(1, ["a"])))
    with pytest.raises(formats.NotAnAnswer):
        formats.unpack(packed(told(2, ["a"] * 4), told(2, ["a"] * 2)))


def test_an_answer_may_reach_each_limit():
    most = [told(MAX_COLUMNS, ["a"] * MAX_COLUMNS), told(1, ["a"] * MAX_ROWS), *[told()] * (MAX_SHEETS - 2)]
    assert [len(each.rows) for each in formats.unpack(packed(*most))[:2]] == [1, MAX_ROWS]


def test_an_answer_of_a_process_that_was_taken_over_is_a_refusal(monkeypatch):
    ended = child_process.Ended(0, OK + packed(told(2)))
    monkeypatch.setattr(child_process, "run", lambda *_, **__: ended)
    with pytest.raises(BadRequest, match="takes too much time or memory"):
        read_file(TableFile("a.csv", b"a"))
