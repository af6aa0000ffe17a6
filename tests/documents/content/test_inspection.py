"""What a file is allowed to be: every type passes, every disguise is told, and text comes out by page."""

import io
import struct
import zipfile
import zlib

import pytest

from make import files
from muniment.documents.content import inspection
from muniment.documents.content.inspection import Rejected, inspect, name_fault, type_of


def look(content: bytes, content_type: str) -> None:
    inspect(io.BytesIO(content), len(content), content_type)


def name_of(given: object) -> str | None:
    """Name a case by its words: files are no names."""
    return "" if isinstance(given, bytes | list) or callable(given) else None


GOOD = {
    files.PDF: files.pdf(),
    files.DOCX: files.docx(),
    files.XLSX: files.xlsx(),
    files.PPTX: files.pptx(),
    files.ODT: files.odt(),
    "text/plain": "Grüße, 世界\n".encode(),
    "text/markdown": b"# Minutes\n\n<b>bold</b> is fine in the middle\n",
    "text/csv": b"\xef\xbb\xbfname,shares\nAda,40\n",
    "application/json": b'{"a": [1, 2]}',
    "image/png": files.png(),
    "image/jpeg": files.picture("JPEG"),
    "image/webp": files.picture("WEBP"),
}


@pytest.mark.parametrize("content_type", GOOD, ids=lambda given: given.rpartition(".")[2])
def test_every_type_that_is_taken_passes(content_type):
    assert set(GOOD) == set(inspection.TYPES)
    look(GOOD[content_type], content_type)


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize("given", GOOD, ids=lambda given: given.rpartition(".")[2])
@pytest.mark.parametrize("declared", [files.PDF, files.DOCX, files.XLSX, files.ODT, "image/png", "text/plain"])
def test_no_type_passes_as_another(given, declared):
    text = inspection.TYPES[given].family == "text"
    if given == declared or (text and declared == "text/plain"):
        return
    with pytest.raises(Rejected):
        look(GOOD[given], declared)


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("content", "content_type", "reason"),
    [
        (b"", files.PDF, "empty"),
        (files.docx(), files.PDF, "declared as PDF but looks like"),
        (b"<!DOCTYPE html><html><script>alert(1)</script>", files.PDF, "a web page"),
        (b"  \n<html><body>", "text/plain", "a web page"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/png", "declared as PNG"),
        (b"%PDF-1.4\n<html><script>alert(1)</script>" + files.pdf(), files.PDF, "both a PDF and a web page"),
        (files.pdf() + files.archive({"a": "b"}), files.PDF, "both a PDF and a zip archive"),
        (b"plain words\n" + files.archive({"a": "b"}, method=zipfile.ZIP_STORED), "text/plain", "so it is not text"),
        (files.bomb, files.DOCX, "zip bomb"),
        (files.lying_bomb, files.DOCX, "damaged"),
        (lambda: files.docx(**{f"part{n}": "" for n in range(5001)}), files.DOCX, "5003 parts"),
        (files.docx(**{"../../etc/x": "x"}), files.DOCX, "unsafe name"),
        (files.docx(**{"word/vbaProject.bin": "x"}), files.DOCX, "macros"),
        (files.archive({"a.txt": "x"}), files.DOCX, "another zip archive"),
        (files.docx()[:-30], files.DOCX, "damaged"),
        (files.declared("word/document.xml", flags=1), files.DOCX, "encrypted"),
        (files.declared("word/document.xml", size_bytes=201 << 20), files.DOCX, "200 MB"),
        (files.declared("word/document.xml", size_bytes=5_000), files.DOCX, "damaged"),
        (files.odt("application/vnd.oasis.opendocument.spreadsheet"), files.ODT, "not a text document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, files.DOCX, "password-protected Office"),
        (files.png(60_000, 60_000), "image/png", "million"),
        (files.png(8_000, 8_000), "image/png", "8000 x 8000 pixels"),
        (files.png()[:40], "image/png", "damaged"),
        ("Grüße".encode("latin-1"), "text/plain", "not UTF-8"),
        ("Grüße".encode("utf-16"), "text/csv", "UTF-16"),
        (b"a\0b", "text/plain", "control characters"),
        (b"{", "application/json", "not valid JSON"),
        (b"[" * 100_000, "application/json", "not valid JSON"),
        (b'["\x89"]', "application/json", "not UTF-8"),
        (b" x" * (5 << 20), "application/json", "must start with an object or a list"),
        (b"MZ\x90\0\3", files.PDF, "declared as PDF"),
    ],
    ids=name_of,
)
def test_a_disguised_file_is_refused_with_a_reason(content, content_type, reason):
    with pytest.raises(Rejected, match=reason):
        look(files.made(content), content_type)


def test_a_file_that_unpacks_to_a_little_may_be_packed_as_tightly_as_it_can(monkeypatch):
    content = files.bomb(1 << 20)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    monkeypatch.setattr(inspection, "RATIO_FREE_BYTES", unpacked)
    look(content, files.DOCX)
    monkeypatch.setattr(inspection, "RATIO_FREE_BYTES", unpacked - 1)
    with pytest.raises(Rejected, match="zip bomb"):
        look(content, files.DOCX)


def test_a_pdf_with_the_signs_of_a_zip_directory_and_no_end_of_one_is_a_pdf():
    tail = inspection._END_BYTES
    padded = files.pdf() + b"\n%" + b"PK\x01\x02" + b" " * (tail - 4) + b"\n"
    look(padded, files.PDF)


@pytest.mark.parametrize("by", [None, 1])
def test_parts_that_overlap_are_refused_before_one_is_unpacked(monkeypatch, by):
    content = files.overlapping(by)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(Rejected, match="overlap"):
        look(content, files.DOCX)


def test_large_json_is_looked_at_and_not_parsed(monkeypatch):
    monkeypatch.setattr(inspection.msgspec.json, "decode", None)
    look(b" [" + b"1," * (5 << 20) + b"1]", "application/json")


def test_json_is_parsed_up_to_a_size(monkeypatch):
    monkeypatch.setattr(inspection, "MAX_JSON_BYTES", 8)
    with pytest.raises(Rejected, match="not valid JSON"):
        look(b'{"a": 1 ', "application/json")
    look(b'{"a": 12 ', "application/json")


def test_an_enormous_table_of_contents_is_not_even_read(monkeypatch):
    made = bytearray(files.docx())
    end = made.rindex(b"PK\x05\x06")
    made[end + 12 : end + 16] = (3 << 20).to_bytes(4, "little")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(Rejected, match="too many parts"):
        look(bytes(made), files.DOCX)


def zip64(start: bytes, parts: int, comment_bytes: int) -> bytes:
    """Return an archive of many empty parts that only its zip64 record counts."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 0, 20, 0, *[0] * 14)
    directory = entry * parts
    size, at = len(directory), len(start)
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, parts, parts, size, at)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at + size, 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), 0, comment_bytes)
    return start + directory + record + locator + end + b"c" * comment_bytes


@pytest.mark.parametrize("comment_bytes", [0, 65_514, 65_516, 65_517, 65_534, 65_535])
def test_a_directory_of_the_zip64_form_is_not_read_however_long_the_comment_after_it(monkeypatch, comment_bytes):
    content = zip64(b"PK\x03\x04" + bytes(26), 70_000, comment_bytes)
    assert len(zipfile.ZipFile(io.BytesIO(content)).infolist()) == 70_000
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(Rejected, match="too many parts"):
        look(content, files.DOCX)


@pytest.mark.parametrize("comment_bytes", [0, 65_535])
def test_a_pdf_that_is_an_archive_of_the_zip64_form_is_refused(comment_bytes):
    content = zip64(files.pdf(), 3, comment_bytes)
    assert len(zipfile.ZipFile(io.BytesIO(content)).infolist()) == 3
    with pytest.raises(Rejected, match="both a PDF and a zip archive"):
        look(content, files.PDF)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_parts_that_no_office_program_compresses_so_are_refused_before_one_is_unpacked(monkeypatch, method):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<document/>")
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(Rejected, match="compressed in an unusual way"):
        look(packed.getvalue(), files.DOCX)


@pytest.mark.parametrize(
    "name",
    ["report.pdf", "年次報告書.pdf", "דוח שנתי.pdf", "نمونه\u200cها.pdf", "a" * 196 + ".pdf", "-.pdf", "[1] 'x'.pdf"],
)
def test_names_of_any_script_are_welcome(name):
    assert name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "empty"),
        ("a" * 201, "201 characters"),
        ("../../x", "slash"),
        ("a\\b.pdf", "slash"),
        ("a\r\nSet-Cookie: x.pdf", "U\\+000D"),
        ("gpj\u202efdp.exe", "U\\+202E"),
        ("a\0b", "U\\+0000"),
        ("..", "dots"),
        (" a.pdf", "space"),
        ("\ud800.pdf", "surrogate"),
    ],
)
def test_names_that_disguise_or_escape_are_refused(name, fault):
    import re

    assert re.search(fault, name_fault(name) or "")


def test_the_type_comes_from_the_ending_and_must_agree_with_it():
    assert type_of("a.PDF", None).content_type == files.PDF
    assert type_of("a.txt", "text/plain; charset=utf-8").content_type == "text/plain"
    assert type_of("a.csv", "application/octet-stream").content_type == "text/csv"
    for name, content_type in [
        ("a.html", files.PDF),
        ("a", files.PDF),
        ("a.exe", None),
        ("a", None),
        ("a.html", "text/html"),
    ]:
        with pytest.raises(Rejected):
            type_of(name, content_type)


def png_with(chunks: int, kind: bytes) -> bytes:
    """Return a PNG with so many more chunks behind its header."""
    made = files.png()
    header_ends = made.index(b"IDAT") - 4
    chunk = struct.pack(">I", 0) + kind + struct.pack(">I", zlib.crc32(kind))
    return made[:header_ends] + chunk * chunks + made[header_ends:]


def test_a_png_has_few_chunks_that_hold_no_pixels():
    others = 2  # its header and its end
    look(png_with(inspection.MAX_IMAGE_DETAILS - others, b"teSt"), "image/png")
    with pytest.raises(Rejected, match="too many parts"):
        look(png_with(inspection.MAX_IMAGE_DETAILS - others + 1, b"teSt"), "image/png")


def test_a_png_has_a_limit_of_chunks_with_pixels_too(monkeypatch):
    others = 3
    monkeypatch.setattr(inspection, "MAX_IMAGE_PARTS", 20 + others)
    look(png_with(20, b"IDAT"), "image/png")
    with pytest.raises(Rejected, match="too many parts"):
        look(png_with(21, b"IDAT"), "image/png")


def test_a_jpeg_has_few_segments_before_its_pixels(monkeypatch):
    made = files.picture("JPEG")
    segments = 0
    at = 2
    while made[at : at + 2] != b"\xff\xda":
        segments += 1
        at += 2 + int.from_bytes(made[at + 2 : at + 4], "big")
    monkeypatch.setattr(inspection, "MAX_IMAGE_DETAILS", segments + 5)
    comment = b"\xff\xfe\x00\x02"
    look(made[:2] + comment * 5 + made[2:], "image/jpeg")
    with pytest.raises(Rejected, match="too many parts"):
        look(made[:2] + comment * 6 + made[2:], "image/jpeg")


def test_a_jpeg_has_few_bytes_that_only_fill():
    made = files.picture("JPEG")
    look(made[:2] + b"\xff" * inspection.MAX_FILL_BYTES + made[2:], "image/jpeg")
    with pytest.raises(Rejected, match="damaged"):
        look(made[:2] + b"\xff" * (inspection.MAX_FILL_BYTES + 1) + made[2:], "image/jpeg")
