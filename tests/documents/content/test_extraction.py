"""Text comes out of a file by page, in a child process with little time and memory."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from make import files
from muniment import child_process
from muniment.documents.content import extraction


def name_of(given: object) -> str | None:
    """Name a case by its words: files are no names."""
    return "" if isinstance(given, bytes | list) or callable(given) else None


@pytest.mark.parametrize(
    ("family", "content", "pages"),
    [
        ("pdf", files.pdf("First page.", "Second page."), [(1, "First page."), (2, "Second page.")]),
        ("docx", files.docx("One.", "Two."), [(1, "One.\nTwo.\n")]),
        ("xlsx", files.xlsx(), [(1, "Holder\tShares\nAda\t40"), (2, "7")]),
        ("pptx", files.pptx("Plan", "Budget"), [(1, "Plan\n"), (2, "Budget\n")]),
        ("odt", files.odt(), [(1, "Statutes\nEvery member has one vote.\n")]),
        ("text", "\ufeffGrüße".encode(), [(1, "Grüße")]),
    ],
    ids=name_of,
)
def test_text_comes_out_by_page(tmp_path: Path, family, content, pages):
    file = tmp_path / "file"
    file.write_bytes(content)
    assert extraction.extract(file, family) == pages
    with file.open("rb") as opened:
        answer = extraction._main(family, opened)  # what the child answers
    assert [(number, text) for number, text in answer["pages"] if text.strip()] == pages


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("family", "content", "reason"),
    [
        ("pdf", files.encrypted_pdf(), "encrypted"),
        ("pdf", files.pdf("  "), "no text"),
        ("pdf", b"%PDF-1.4 and nothing", "cannot be opened"),
        (
            "docx",
            files.archive({"word/document.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}),
            "declares entities",
        ),
        (
            "xlsx",
            files.archive({"xl/worksheets/sheet1.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}),
            "declares entities",
        ),
        ("docx", b"no zip", "damaged"),
        ("docx", lambda: files.archive({"word/document.xml": b"<a>" + b" " * (70 << 20) + b"</a>"}), "too large"),
    ],
    ids=name_of,
)
def test_a_file_without_extractable_text_has_a_reason_in_words(tmp_path: Path, family, content, reason):
    file = tmp_path / "file"
    file.write_bytes(files.made(content))
    with pytest.raises(extraction.NotExtractable, match=reason) as told:
        extraction.extract(file, family)
    with file.open("rb") as opened:
        assert extraction._main(family, opened) == {"fault": str(told.value)}  # what the child answers


def test_a_child_that_dies_without_an_answer_gives_no_text(tmp_path: Path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"words")
    monkeypatch.setattr(child_process.sys, "executable", shutil.which("false"))
    with pytest.raises(extraction.NotExtractable):
        extraction.extract(file, "text")


def test_the_child_has_little_time(tmp_path: Path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"words")
    monkeypatch.setattr(extraction, "WALL_S", 0.0)
    with pytest.raises(extraction.NotExtractable, match="took too long"):
        extraction.extract(file, "text")


def test_what_the_child_says_is_bounded(tmp_path: Path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes("Größe".encode())
    said = len(msgspec.msgpack.encode({"pages": [(1, "Größe")]}))
    monkeypatch.setattr(extraction, "MAX_ANSWER_BYTES", said)
    assert extraction.extract(file, "text") == [(1, "Größe")]
    monkeypatch.setattr(extraction, "MAX_ANSWER_BYTES", said - 1)
    with pytest.raises(extraction.NotExtractable, match="holds too much text"):
        extraction.extract(file, "text")


def told(pages=(), **more):
    return msgspec.msgpack.encode({"pages": pages, **more})


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{}",
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode({"pages": None}),
        told(other=1),
        told([("1", "text")]),
        told([(1, 2)]),
        told([(1, "text", 3)]),
        told([(0, "text")]),
        told([(extraction.MAX_PAGES + 1, "text")]),
        told([(2, "text"), (1, "text")]),
        told([(1, "text"), (1, "text")]),
        told([(1, "x" * extraction.MAX_CHARACTERS), (2, "x")]),
        told(fault="x" * (extraction.MAX_FAULT_CHARACTERS + 1)),
        told(fault="a\0b"),
        told(fault=7),
        told() + b"more",
        b"\x81\xa5pages\xdd\xff\xff\xff\xff",
        b"\x81\xa5fault\xa1\xff",
    ],
    ids=lambda said: repr(bytes(said[:30])),
)
def test_what_the_child_says_in_another_form_is_no_answer(said):
    with pytest.raises(extraction.NotAnAnswer):
        extraction.read_answer(said)


def test_the_longest_answer_of_the_child_is_accepted():
    last = extraction.MAX_PAGES
    pages = [(number, "") for number in range(1, last)] + [(last, "x" * extraction.MAX_CHARACTERS)]
    assert extraction.read_answer(told(pages)).pages == pages
    assert extraction.read_answer(told(fault="x" * extraction.MAX_FAULT_CHARACTERS)).fault


def test_a_child_that_was_taken_over_gives_no_text(tmp_path: Path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"words")
    ended = child_process.Ended(0, msgspec.msgpack.encode({"pages": [{"number": 1}]}))
    monkeypatch.setattr(child_process, "run", lambda *_, **__: ended)
    with pytest.raises(extraction.NotExtractable, match="damaged"):
        extraction.extract(file, "text")


def test_a_very_long_text_is_cut(tmp_path: Path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 5_000_000)
    [(number, text)] = extraction.extract(file, "text")
    assert (number, len(text)) == (1, extraction.MAX_CHARACTERS)
    assert json.dumps(text)


def test_pages_after_the_limit_are_left_out(tmp_path: Path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(files.pptx("Plan", "Budget", "Vote"))
    for limit, pages in ((6, [(1, "Plan\n"), (2, "B")]), (5, [(1, "Plan\n")]), (4, [(1, "Plan")])):
        monkeypatch.setattr(extraction, "MAX_CHARACTERS", limit)
        with file.open("rb") as opened:
            assert extraction._main("pptx", opened) == {"pages": pages}
