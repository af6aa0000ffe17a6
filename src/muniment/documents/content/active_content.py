"""
Find active content in documents: macros, embedded programs, scripts, and parts loaded from elsewhere.

A name proves little: zip programs disagree about case, spaces and slashes. So Office files are judged by what their
parts are declared as and begin with, PDF files by the names in them, and text by what is left once leading
comments are skipped. What is hidden in compressed streams or in split fields is not found.

Source: decisions, section 5, documents.
"""

import codecs
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, Final
from urllib.parse import unquote
from xml.parsers import expat

from muniment.kernel.phrases.phrase import Phrase, marked

OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
MAX_DESCRIPTION_BYTES: Final = 4 << 20
"""Maximum size of the parts of an Office file that describe others; an ordinary file's take a few kilobytes."""
MAX_DESCRIBING_ELEMENTS: Final = 50_000
"""Maximum number of elements in all of these parts; a link takes more than 80 bytes."""
MARKUP: Final = (
    *(b"<!doctype html", b"<html", b"<head", b"<body", b"<script", b"<style", b"<meta", b"<title"),
    *(b"<svg", b"<iframe", b"<object", b"<embed", b"<?php"),
)
"""Beginnings of web pages and scripts."""
_PAGES: Final = (b"<!doctype html", b"<html", b"<script", b"<iframe", b"<?php")
"""Marks that make a file a web page wherever they are in it."""
_PROGRAMS: Final = re.compile(r"macroenabled|vbaproject|activex|oleobject|macrosheet|intlmacrosheet")
_OPENED_BY_CLICK: Final = {"hyperlink", "video", "audio", "media"}
"""Kinds of relationships whose target is not loaded when the document is opened."""
_ODT_LIBRARIES: Final = {"script-lb.xml", "script-lc.xml", "dialog-lb.xml", "dialog-lc.xml"}
"""Lists of macros, which also documents without macros have."""


def _escapable(name: str) -> str:
    """Return a pattern for a name in a PDF, in which any character may be escaped by its code."""
    return "".join(f"(?:{re.escape(letter)}|#(?i:{ord(letter):02x}))" for letter in name)


_ACTION: Final = re.compile(
    rf"{_escapable('/')}(?:{_escapable('JavaScript')}|{_escapable('Launch')})"
    # One of these characters, plain or escaped, continues the name: it is a longer one, such as /LaunchURL.
    r"(?![A-Za-z0-9_.-]|#(?i:3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|5f|2e|2d))".encode()
)
_PIECE_BYTES: Final = 1 << 20
_OVERLAP_BYTES: Final = 64
"""More than a mark takes with every character escaped."""
_COMMENT: Final = re.compile(rb"\s*(?:<!--.*?-->|<\?(?!php).*?\?>)", re.DOTALL)


class ActiveContent(Exception):  # noqa: N818 - a verdict
    """The file has active content. The message names it, as in "contains …", and says what to do."""


def part_name(name: str) -> str:
    """Return a part's name as any program could read it: of one case, without spaces and dots at the ends."""
    plain = unicodedata.normalize("NFKC", unquote(name)).replace("\\", "/").casefold()
    segments = ("".join(filter(str.isprintable, segment)).strip(" .") for segment in plain.split("/"))
    return "/".join(filter(None, segments))


def check_names(names: Iterable[str]) -> None:
    """Raise ActiveContent for parts that hold programs by their name, or two parts that are one to some programs."""
    seen = set()
    for name in names:
        plain = part_name(name)
        if plain in seen:
            raise ActiveContent("contains two parts of one name. Save it again")
        seen.add(plain)
        folders, _, last = plain.rpartition("/")
        on_the_way = folders.split("/")
        has_office_macros = last.startswith(("vbaproject", "vbadata")) or "macrosheets" in on_the_way
        has_basic = on_the_way[0] == "basic" and last not in _ODT_LIBRARIES
        if has_office_macros or has_basic or plain.startswith("scripts/"):
            raise ActiveContent("contains macros. Save it without them")
        if "activex" in on_the_way:
            raise ActiveContent("contains controls. Save it without them")


def check_part(head: bytes) -> None:
    """Raise ActiveContent if a part of an archive, by its first bytes, is an embedded object or a program."""
    if head.startswith(OLE):
        raise ActiveContent("contains an embedded object or macros. Save it without them, or as PDF")
    if head.startswith((b"MZ", b"\x7fELF")):
        raise ActiveContent("contains a program. Save it without it")


def check_descriptions(archive: zipfile.ZipFile) -> None:
    """Raise ActiveContent if an Office file declares programs, or loads parts from elsewhere when it is opened."""
    bytes_left = MAX_DESCRIPTION_BYTES
    elements_left = MAX_DESCRIBING_ELEMENTS
    for entry in archive.infolist():
        plain = part_name(entry.filename)
        if plain != "[content_types].xml" and not plain.endswith(".rels"):
            continue
        bytes_left -= entry.file_size
        if bytes_left < 0:
            raise ActiveContent(_TOO_MANY)
        with archive.open(entry) as part:
            elements_left -= _check_elements(part.read(entry.file_size), elements_left)


_TOO_MANY: Final = marked("has too many links between its parts. Save it as PDF")


def _check_elements(content: bytes, most: int) -> int:
    """Check the elements of a document without a DTD, and return their number."""
    count = 0
    parser = expat.ParserCreate(namespace_separator=" ")

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > most:
            raise ActiveContent(_TOO_MANY)
        _check_element(tag.rpartition(" ")[2], attributes)

    def refuse(*_: object) -> None:
        raise ActiveContent("declares entities. Save it again")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    try:
        parser.Parse(content, True)  # noqa: FBT003 - the signature of expat
    except expat.ExpatError as error:
        raise zipfile.BadZipFile(str(error)) from None
    return count


def _check_element(tag: str, attributes: dict[str, str]) -> None:
    if tag in {"Default", "Override"}:
        if _PROGRAMS.search(attributes.get("ContentType", "").casefold()):
            raise ActiveContent(
                Phrase("contains macros, controls or embedded objects. Save it without them, or as PDF")
            )
    elif tag == "Relationship" and attributes.get("TargetMode", "").strip().casefold() == "external":
        kind = attributes.get("Type", "").rstrip("/").rpartition("/")[2].casefold()
        if kind not in _OPENED_BY_CLICK and _is_remote(attributes.get("Target", "")):
            what = Phrase("template") if kind == "attachedtemplate" else Phrase("part")
            raise ActiveContent(
                Phrase("loads a {what} from another computer. Save it without the link, or as PDF", what=what)
            )


def _is_remote(target: str) -> bool:
    """Return whether a target is on another computer: not a path, nor a file of this one."""
    plain = unquote(target).strip().replace("\\", "/").casefold()
    plain = re.sub(r"^file:/{0,3}(?=[a-z]:|localhost/)", "", plain)
    if plain.startswith("localhost/") or re.match(r"[a-z]:/", plain):
        return False
    return plain.startswith(("//", "file://")) or bool(re.match(r"[a-z][a-z0-9+.-]+:", plain))


def check_pdf(file: IO[bytes]) -> None:
    """Raise ActiveContent if a PDF file has scripts or starts programs, or is a web page as well."""
    for piece in _pieces(file):
        plain = piece.lower()
        if any(mark in plain for mark in _PAGES):
            raise ActiveContent(Phrase("is both a PDF and a web page. Print it to a new PDF"))
        if _ACTION.search(piece):
            raise ActiveContent(Phrase("contains scripts or starts programs. Print it to a new PDF"))


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file in pieces, each of which begins with the end of the one before."""
    file.seek(0)
    end = b""
    while piece := file.read(_PIECE_BYTES):
        yield end + piece
        end = (end + piece)[-_OVERLAP_BYTES:]


def begins_as_markup(head: bytes) -> bool:
    """Return whether a text begins as a web page, also after comments; so does a comment without an end."""
    rest = head.removeprefix(codecs.BOM_UTF8)
    comment = _COMMENT.match(rest)
    while comment:
        rest = rest[comment.end() :]
        comment = _COMMENT.match(rest)
    return rest.lstrip().lower().startswith((*MARKUP, b"<!--"))
