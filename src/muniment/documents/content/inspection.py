"""
What a file is allowed to be, and whether it is what it says.

Pure: gets a file that can be read and sought in, gives nothing or raises :class:`Rejected` with a reason
that a person understands. Zip-based formats are judged by their table of contents before anything is
unpacked, and then unpacked into nothing, counted, since declared sizes lie.

Source: decisions, section 5, documents.
"""

import codecs
import unicodedata
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, Final

import msgspec

from muniment.kernel.texts import text_fault

MAX_NAME_CHARACTERS: Final = 200
MAX_ENTRIES: Final = 5_000
MAX_DIRECTORY_BYTES: Final = 2 << 20
MAX_UNPACKED_BYTES: Final = 200 << 20
MAX_RATIO: Final = 150
RATIO_FREE_BYTES: Final = 10 << 20
"""Below this much unpacked, the ratio says nothing: a small text packs very well."""
MAX_PIXELS: Final = 50_000_000
MAX_JSON_BYTES: Final = 8 << 20
"""Larger JSON is looked at, not parsed: parsing takes ten times its size."""
_HEAD: Final = 4096
_TAIL: Final = (1 << 16) + 22
_MARKUP: Final = (b"<!doctype html", b"<html", b"<script", b"<svg", b"<iframe", b"<?php")
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Rejected(Exception):  # noqa: N818 - a verdict
    """The file is not taken. The message is a sentence for whoever sent it."""


@dataclass(frozen=True, slots=True)
class Type:
    """One type of file that is taken."""

    content_type: str
    name: str
    extensions: tuple[str, ...]
    family: str
    must_hold: tuple[str, ...] = ()


_OFFICE = "application/vnd.openxmlformats-officedocument"
TYPES: Final = {
    each.content_type: each
    for each in (
        Type("application/pdf", "PDF", ("pdf",), "pdf"),
        Type(
            f"{_OFFICE}.wordprocessingml.document",
            "Word",
            ("docx",),
            "zip",
            ("[Content_Types].xml", "word/document.xml"),
        ),
        Type(f"{_OFFICE}.spreadsheetml.sheet", "Excel", ("xlsx",), "zip", ("[Content_Types].xml", "xl/workbook.xml")),
        Type(
            f"{_OFFICE}.presentationml.presentation",
            "PowerPoint",
            ("pptx",),
            "zip",
            ("[Content_Types].xml", "ppt/presentation.xml"),
        ),
        Type(
            "application/vnd.oasis.opendocument.text", "OpenDocument text", ("odt",), "zip", ("mimetype", "content.xml")
        ),
        Type("text/plain", "plain text", ("txt",), "text"),
        Type("text/markdown", "Markdown", ("md", "markdown"), "text"),
        Type("text/csv", "CSV", ("csv",), "text"),
        Type("application/json", "JSON", ("json",), "text"),
        Type("image/png", "PNG", ("png",), "image"),
        Type("image/jpeg", "JPEG", ("jpg", "jpeg"), "image"),
        Type("image/webp", "WebP", ("webp",), "image"),
    )
}
TAKEN: Final = "PDF, DOCX, XLSX, PPTX, ODT, TXT, MD, CSV, JSON, PNG, JPEG and WebP"
_BY_EXTENSION: Final = {extension: each for each in TYPES.values() for extension in each.extensions}


def name_fault(name: str) -> str | None:  # noqa: PLR0911 - a rule a line
    """Say what is wrong with *name* as the name of a file, or None. Any script is welcome."""
    if not name.strip():
        return "is empty"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"has {len(name)} characters, at most {MAX_NAME_CHARACTERS} are allowed"
    if fault := text_fault(name):
        return fault
    if "/" in name or "\\" in name:
        return "holds a slash: send the name alone, without its folder"
    for character in name:
        category = unicodedata.category(character)
        # The joiners belong to the spelling of several scripts; other format characters disguise a name.
        if category in {"Cc", "Cs", "Zl", "Zp"} or (category == "Cf" and character not in "\u200c\u200d"):
            return f"holds the invisible character U+{ord(character):04X}"
    if name != name.strip() or name.strip(".") == "":
        return "begins or ends with a space, or holds nothing but dots"
    return None


def type_of(name: str, content_type: str | None) -> Type:
    """
    Give the type under which a file is taken, from what was declared and from its name.

    Raises:
        Rejected: the type is not taken, or the name's ending says another one.
    """
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    named = _BY_EXTENSION.get(ending)
    declared = (content_type or "").partition(";")[0].strip().lower()
    if not declared or declared == "application/octet-stream":
        if named is None:
            raise Rejected(f"Files that end in {'.' + ending if ending else 'nothing'} are not taken.")
        return named
    found = TYPES.get(declared)
    if found is None:
        raise Rejected(f"Files of the type {declared[:100]} are not taken.")
    if ending not in found.extensions:
        endings = " or ".join("." + each for each in found.extensions)
        raise Rejected(
            f"The name of a {found.name} file ends in {endings}, not in {'.' + ending if ending else 'nothing'}."
        )
    return found


def inspect(file: IO[bytes], size_bytes: int, content_type: str) -> None:
    """
    Look whether *file* is what *content_type* says, and harmless to open.

    Raises:
        Rejected: it is not; says why.
    """
    found = TYPES[content_type]
    file.seek(0)
    head = file.read(_HEAD)
    if not head:
        raise Rejected("The file is empty.")
    if found.family == "pdf":
        _pdf(file, size_bytes, head)
    elif found.family == "zip":
        _archive(file, size_bytes, head, found)
    elif found.family == "image":
        _image(file, head, found)
    else:
        _text(file, size_bytes, head, found)


def _looks_like(head: bytes) -> str:
    """Say in words what a file's beginning looks like."""
    if head.startswith(_OLE):
        return "an old or password-protected Office file"
    if head.lstrip()[:512].lower().startswith(_MARKUP[:3]):
        return "a web page"
    import puremagic  # its table of signatures takes a megabyte, and only a refusal asks it

    try:
        guesses = puremagic.magic_string(head)
    except puremagic.PureError:
        guesses = []
    best = max(guesses, key=lambda guess: guess.confidence, default=None)
    if best is None or not (best.name or best.mime_type):
        return "plain text" if _is_text(head) else "something else"
    return str(best.name or best.mime_type)


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _not(found: Type, head: bytes) -> Rejected:
    return Rejected(f"The file is declared as {found.name} and looks like {_looks_like(head)}.")


# ------------------------------------------------------------------ PDF


def _pdf(file: IO[bytes], size_bytes: int, head: bytes) -> None:
    if not head.startswith(b"%PDF-"):
        raise _not(TYPES["application/pdf"], head)
    if any(mark in head[:1024].lower() for mark in _MARKUP):
        raise Rejected("The file is a PDF and a web page at once. Save it anew as a plain PDF.")
    if _ends_as_zip(file, size_bytes):
        raise Rejected("The file is a PDF and a zip archive at once. Save it anew as a plain PDF.")


def _ends_as_zip(file: IO[bytes], size_bytes: int) -> bool:
    """Tell whether the end of the file is that of a zip archive: such a file opens as either."""
    file.seek(max(0, size_bytes - _TAIL))
    tail = file.read(_TAIL)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + 22 > len(tail):
        return False
    comment = int.from_bytes(tail[at + 20 : at + 22], "little")
    return at + 22 + comment <= len(tail) and b"PK\x01\x02" in _directory(file, size_bytes, tail[at : at + 22], at)


def _directory(file: IO[bytes], size_bytes: int, end: bytes, at: int) -> bytes:
    """Give the beginning of the table of contents that the end record *end* leads to."""
    length = int.from_bytes(end[12:16], "little")
    record_at = max(0, size_bytes - _TAIL) + at
    file.seek(max(0, record_at - length))
    return file.read(4)


# ------------------------------------------------------------------ zip-based


def _archive(file: IO[bytes], size_bytes: int, head: bytes, found: Type) -> None:
    if not head.startswith(b"PK\x03\x04"):
        raise _not(found, head)
    _check_directory(file, size_bytes, found)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(entries, size_bytes, found)
            _check_kind(archive, found)
            _unpack_into_nothing(archive, entries)
    except Rejected:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise Rejected(f"The {found.name} file is damaged: its parts do not fit together.") from error


def _check_directory(file: IO[bytes], size_bytes: int, found: Type) -> None:
    """Judge the size of the table of contents: reading it takes ten times as much memory."""
    file.seek(max(0, size_bytes - _TAIL))
    tail = file.read(_TAIL)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + 22 > len(tail):
        raise Rejected(f"The {found.name} file is damaged: its end is missing.")
    if int.from_bytes(tail[at + 12 : at + 16], "little") > MAX_DIRECTORY_BYTES or tail[max(0, at - 20) :].startswith(
        b"PK\x06\x07"
    ):
        raise Rejected(f"The {found.name} file has too many parts, at most {MAX_ENTRIES} are taken.")


def _check_kind(archive: zipfile.ZipFile, found: Type) -> None:
    """OpenDocument names its kind in a part of its own."""
    if found.extensions == ("odt",):
        with archive.open("mimetype") as part:
            if part.read(100).strip() != found.content_type.encode():
                raise Rejected("The file is an OpenDocument of another kind than a text.")


def _check_entries(entries: list[zipfile.ZipInfo], size_bytes: int, found: Type) -> None:
    """Judge an archive by its table of contents alone."""
    if len(entries) > MAX_ENTRIES:
        raise Rejected(f"The {found.name} file has {len(entries)} parts, at most {MAX_ENTRIES} are taken.")
    unpacked = sum(entry.file_size for entry in entries)
    _check_size(unpacked, size_bytes)
    names = {entry.filename for entry in entries}
    missing = [name for name in found.must_hold if name not in names]
    if missing:
        raise Rejected(f"The file is declared as {found.name} and is another zip archive: it has no {missing[0]}.")
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.flag_bits & 0x1:
            raise Rejected(f"The {found.name} file is encrypted. Save it without a password.")
        if entry.filename.startswith(("/", "\\")) or ".." in entry.filename.replace("\\", "/").split("/"):
            raise Rejected(f"The {found.name} file holds a part with an unsafe name.")
        if entry.filename.lower().endswith(("vbaproject.bin", "vbaprojectsignature.bin")):
            raise Rejected(f"The {found.name} file holds macros. Save it without them.")
        if entry.header_offset < end:
            raise Rejected(f"The {found.name} file is damaged: its parts overlap.")
        end = entry.header_offset + 30 + len(entry.orig_filename.encode()) + entry.compress_size


def _check_size(unpacked: int, size_bytes: int) -> None:
    if unpacked > MAX_UNPACKED_BYTES:
        raise Rejected(f"The file unpacks to more than {MAX_UNPACKED_BYTES >> 20} MB.")
    if unpacked > RATIO_FREE_BYTES and unpacked > MAX_RATIO * size_bytes:
        raise Rejected(f"The file unpacks to {unpacked // max(1, size_bytes)} times its size, as a zip bomb does.")


def _unpack_into_nothing(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> None:
    """
    Read every part to its end: a size or checksum that was declared falsely shows here, before anyone unpacks.

    zipfile gives no more of a part than was declared, and the sum of that is judged already.
    """
    for entry in entries:
        with archive.open(entry) as part:
            length = 0
            while piece := part.read(1 << 16):
                length += len(piece)
            if length != entry.file_size:
                raise zipfile.BadZipFile(entry.filename)


# ------------------------------------------------------------------ images


def _image(file: IO[bytes], head: bytes, found: Type) -> None:
    starts = {
        "PNG": head.startswith(b"\x89PNG\r\n\x1a\n"),
        "JPEG": head.startswith(b"\xff\xd8\xff"),
        "WebP": head.startswith(b"RIFF") and head[8:12] == b"WEBP",
    }
    if not starts[found.name]:
        raise _not(found, head)
    from PIL import Image  # takes a tenth of a second and is needed by few

    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=(found.name.upper(),)) as picture:
                _check_pixels(*picture.size)
                picture.verify()
    except Rejected:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise Rejected(f"The picture has more than {MAX_PIXELS // 10**6} million pixels.") from None
    except Exception as error:  # every decoder raises its own
        raise Rejected(f"The {found.name} picture is damaged.") from error


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise Rejected(f"The picture has {width} x {height} pixels, at most {MAX_PIXELS // 10**6} million are taken.")


# ------------------------------------------------------------------ text


def _text(file: IO[bytes], size_bytes: int, head: bytes, found: Type) -> None:
    start = head.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    if start.startswith((*_MARKUP, b"<?xml")):
        raise _not(found, head)
    if head.startswith((b"%PDF-", b"PK\x03\x04", _OLE)):
        raise _not(found, head)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Rejected(f"The {found.name} file is UTF-16. Save it as UTF-8.")
    decoder = codecs.getincrementaldecoder("utf-8")()
    file.seek(0)
    try:
        while piece := file.read(1 << 16):
            if len(piece.translate(None, _CONTROLS)) != len(piece):
                raise Rejected(f"The {found.name} file holds control characters: it is no text.")
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise Rejected(f"The {found.name} file is not UTF-8. Save it as UTF-8.") from None
    if found.content_type == "application/json":
        _json(file, size_bytes, start)


_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\t\n\r\f")


def _json(file: IO[bytes], size_bytes: int, start: bytes) -> None:
    if size_bytes > MAX_JSON_BYTES:
        if not start.startswith((b"{", b"[")):
            raise Rejected("The JSON file begins neither with an object nor with a list.")
        return
    file.seek(0)
    try:
        msgspec.json.decode(file.read().removeprefix(codecs.BOM_UTF8))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected(f"The file is no JSON: {error}.") from None
