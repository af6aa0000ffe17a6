"""
Verify that a file is of an accepted type and matches its declaration.

Pure: takes a seekable file and raises :class:`Rejected` with a reason for the owner. Zip-based formats are checked by
their central directory first and then decompressed without being stored, because declared sizes can be false.

Source: decisions, section 5, documents.
"""

import codecs
import os
import unicodedata
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, Final

import msgspec

from muniment.documents.content import active_content
from muniment.documents.content.active_content import OLE, ActiveContent
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.texts import text_fault

MAX_NAME_CHARACTERS: Final = 200
MAX_ENTRIES: Final = 5_000
MAX_DIRECTORY_BYTES: Final = 2 << 20
MAX_UNPACKED_BYTES: Final = 200 << 20
MAX_RATIO: Final = 150
RATIO_FREE_BYTES: Final = 10 << 20
"""Up to this unpacked size, MAX_RATIO is not checked, because small texts compress very well."""
MAX_PIXELS: Final = 50_000_000
MAX_JSON_BYTES: Final = 8 << 20
"""Larger JSON is not parsed: parsing takes ten times its size in memory."""
_HEAD: Final = 4096
_LONG_HEAD: Final = 1 << 16
"""Bytes read from the start of a text, which may begin with comments."""
_END_BYTES: Final = (1 << 16) + 22
"""The longest end record of a zip archive, with its comment."""
_LOCATOR_BYTES: Final = 20
"""The size of the record before it that makes an archive a zip64 one."""
MAX_IMAGE_PARTS: Final = 100_000
"""Chunks of a PNG; writers make them of 8 KB and more."""
MAX_IMAGE_DETAILS: Final = 500
"""Chunks of a PNG that hold no pixels, or segments of a JPEG before its pixels; cameras write some dozens."""
MAX_FILL_BYTES: Final = 64
_PIXEL_CHUNKS: Final = frozenset({b"IDAT", b"fdAT", b"fcTL"})
_METHODS: Final = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Office programs know no others. What LZMA unpacks to can take gigabytes of memory, by a number in the file."""


class Rejected(Exception):  # noqa: N818 - a verdict
    """The file is rejected; *reason* is a sentence for the sender."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Type:
    """An accepted file type."""

    content_type: str
    name: str
    extensions: tuple[str, ...]
    family: str
    must_hold: tuple[str, ...] = ()


_OFFICE = "application/vnd.openxmlformats-officedocument"
_INDEX = "[Content_Types].xml"
_ODT = "application/vnd.oasis.opendocument.text"
_ACCEPTED: Final = (
    Type("application/pdf", "PDF", ("pdf",), "pdf"),
    Type(f"{_OFFICE}.wordprocessingml.document", "Word", ("docx",), "zip", (_INDEX, "word/document.xml")),
    Type(f"{_OFFICE}.spreadsheetml.sheet", "Excel", ("xlsx",), "zip", (_INDEX, "xl/workbook.xml")),
    Type(f"{_OFFICE}.presentationml.presentation", "PowerPoint", ("pptx",), "zip", (_INDEX, "ppt/presentation.xml")),
    Type(_ODT, "OpenDocument text", ("odt",), "zip", ("mimetype", "content.xml")),
    Type("text/plain", "plain text", ("txt",), "text"),
    Type("text/markdown", "Markdown", ("md", "markdown"), "text"),
    Type("text/csv", "CSV", ("csv",), "text"),
    Type("application/json", "JSON", ("json",), "text"),
    Type("image/png", "PNG", ("png",), "image"),
    Type("image/jpeg", "JPEG", ("jpg", "jpeg"), "image"),
    Type("image/webp", "WebP", ("webp",), "image"),
)
TYPES: Final = {accepted.content_type: accepted for accepted in _ACCEPTED}
TAKEN: Final = marked("PDF, DOCX, XLSX, PPTX, ODT, TXT, MD, CSV, JSON, PNG, JPEG and WebP")
_BY_EXTENSION: Final[dict[str, Type]] = {}
for _accepted in _ACCEPTED:
    for _extension in _accepted.extensions:
        _BY_EXTENSION[_extension] = _accepted


def name_fault(name: str) -> str | None:  # noqa: PLR0911 - one rule per line
    """Return what is wrong with *name* as a filename, or None. Any script is allowed."""
    if not name.strip():
        return Phrase("is empty")
    if len(name) > MAX_NAME_CHARACTERS:
        return Phrase("has {count} characters; the limit is {limit}", count=len(name), limit=MAX_NAME_CHARACTERS)
    fault = text_fault(name)
    if fault:
        return fault
    if "/" in name or "\\" in name:
        return Phrase("contains a slash: send the name without its folder")
    for character in name:
        category = unicodedata.category(character)
        # Several scripts need the joiners; other format characters can disguise a name.
        if category in {"Cc", "Cs", "Zl", "Zp"} or (category == "Cf" and character not in "\u200c\u200d"):
            return Phrase("contains the invisible character U+{code:04X}", code=ord(character))
    if name != name.strip() or name.strip(".") == "":
        return Phrase("begins or ends with a space, or consists of dots")
    return None


def type_of(name: str, content_type: str | None) -> Type:
    """Return the accepted type of a file; raise Rejected if there is none, or the name's extension is another's."""
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    declared = (content_type or "").partition(";")[0].strip().lower()
    if not declared or declared == "application/octet-stream":  # what clients say of a type that they do not know
        return _type_by_extension(extension)
    accepted = TYPES.get(declared)
    if accepted is None:
        raise Rejected(Phrase("Files of type {declared} are not accepted.", declared=declared[:100]))
    if extension not in accepted.extensions:
        extensions = " or ".join(f".{allowed}" for allowed in accepted.extensions)
        shown = f".{extension}" if extension else Phrase("none")
        raise Rejected(
            Phrase(
                "A {type} file needs the extension {extensions}, not {extension}.",
                type=accepted.name,
                extensions=extensions,
                extension=shown,
            )
        )
    return accepted


def _type_by_extension(extension: str) -> Type:
    if not extension:
        raise Rejected("Files with no extension are not accepted.")
    if extension not in _BY_EXTENSION:
        raise Rejected(Phrase("Files with the extension .{extension} are not accepted.", extension=extension))
    return _BY_EXTENSION[extension]


def inspect(file: IO[bytes], size_bytes: int, content_type: str) -> None:
    """Verify that *file* matches *content_type* and is safe to open, or raise Rejected with the reason."""
    found = TYPES[content_type]
    file.seek(0)
    head = file.read(_HEAD)
    if not head:
        raise Rejected("The file is empty.")
    try:
        if found.family == "pdf":
            _pdf(file, size_bytes, head)
        elif found.family == "zip":
            _archive(file, size_bytes, head, found)
        elif found.family == "image":
            _image(file, head, found)
        else:
            _text(file, size_bytes, head, found)
    except ActiveContent as active:
        fault = active.args[0]
        if found.name == "PDF":
            raise Rejected(Phrase("The file {fault}.", fault=fault)) from None
        raise Rejected(Phrase("The {type} file {fault}.", type=found.name, fault=fault)) from None


def _looks_like(head: bytes) -> str:
    """Describe what a file appears to be from its first bytes."""
    if head.startswith(OLE):
        return Phrase("an old or password-protected Office file")
    if active_content.begins_as_markup(head):
        return Phrase("a web page")
    import puremagic  # its signature table takes 1 MB and only rejections need it

    try:
        guesses = puremagic.magic_string(head)
    except puremagic.PureError:
        guesses = []
    best = max(guesses, key=lambda guess: guess.confidence, default=None)
    if best is None or not (best.name or best.mime_type):
        return Phrase("plain text") if _is_text(head) else Phrase("something else")
    return str(best.name or best.mime_type)


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _not(found: Type, head: bytes) -> Rejected:
    return Rejected(
        Phrase("The file is declared as {type} but looks like {other}.", type=found.name, other=_looks_like(head))
    )


def _pdf(file: IO[bytes], size_bytes: int, head: bytes) -> None:
    if not head.startswith(b"%PDF-"):
        raise _not(TYPES["application/pdf"], head)
    if _ends_as_zip(file, size_bytes):
        raise Rejected("The file is both a PDF and a zip archive. Save it again as a plain PDF.")
    active_content.check_pdf(file)


def _ends_as_zip(file: IO[bytes], size_bytes: int) -> bool:
    """Return whether the file also ends as a zip archive and so opens as either."""
    tail, at = _zip_end(file, size_bytes)
    if at is None:
        return False
    comment_bytes = int.from_bytes(tail[at + 20 : at + 22], "little")
    if at + 22 + comment_bytes > len(tail):
        return False
    if _has_locator(tail, at):
        return True
    directory_bytes = int.from_bytes(tail[at + 12 : at + 16], "little")
    file.seek(max(0, size_bytes - len(tail) + at - directory_bytes))
    return file.read(4) == b"PK\x01\x02"


def _zip_end(file: IO[bytes], size_bytes: int) -> tuple[bytes, int | None]:
    """Return the file's last bytes, and where in them the end record of a zip archive begins; a locator is before."""
    file.seek(max(0, size_bytes - _END_BYTES - _LOCATOR_BYTES))
    tail = file.read(_END_BYTES + _LOCATOR_BYTES)
    at = tail.rfind(b"PK\x05\x06", max(0, len(tail) - _END_BYTES))
    if at < 0 or at + 22 > len(tail):  # the record has at least 22 bytes
        return tail, None
    return tail, at


def _has_locator(tail: bytes, at: int) -> bool:
    """Return whether an archive is a zip64 one, whose size is in another record."""
    return tail.startswith(b"PK\x06\x07", max(0, at - _LOCATOR_BYTES))


def _archive(file: IO[bytes], size_bytes: int, head: bytes, found: Type) -> None:
    if not head.startswith(b"PK\x03\x04"):
        raise _not(found, head)
    _check_directory(file, size_bytes, found)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(entries, size_bytes, found)
            _check_kind(archive, found)
            active_content.check_names(entry.filename for entry in entries)
            active_content.check_descriptions(archive)
            _verify_contents(archive, entries)
    except (Rejected, ActiveContent):
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise Rejected(Phrase("The {type} file is damaged: its parts are inconsistent.", type=found.name)) from error


def _check_directory(file: IO[bytes], size_bytes: int, found: Type) -> None:
    """Check the size of the central directory before parsing, which takes ten times its size in memory."""
    tail, at = _zip_end(file, size_bytes)
    if at is None:
        raise Rejected(Phrase("The {type} file is damaged: its end is missing.", type=found.name))
    directory_bytes = int.from_bytes(tail[at + 12 : at + 16], "little")
    if _has_locator(tail, at) or directory_bytes > MAX_DIRECTORY_BYTES:
        raise Rejected(
            Phrase("The {type} file has too many parts; the limit is {limit}.", type=found.name, limit=MAX_ENTRIES)
        )


def _check_kind(archive: zipfile.ZipFile, found: Type) -> None:
    if found.extensions == ("odt",):
        with archive.open("mimetype") as part:
            if part.read(100).strip() != found.content_type.encode():
                raise Rejected("The file is an OpenDocument file but not a text document.")


def _check_entries(entries: list[zipfile.ZipInfo], size_bytes: int, found: Type) -> None:
    if len(entries) > MAX_ENTRIES:
        raise Rejected(
            Phrase(
                "The {type} file has {parts} parts; the limit is {limit}.",
                type=found.name,
                parts=len(entries),
                limit=MAX_ENTRIES,
            )
        )
    unpacked = sum(entry.file_size for entry in entries)
    _check_size(unpacked, size_bytes)
    names = {entry.filename for entry in entries}
    missing = [name for name in found.must_hold if name not in names]
    if missing:
        raise Rejected(
            Phrase(
                "The file is declared as {type} but is another zip archive: it has no {missing}.",
                type=found.name,
                missing=missing[0],
            )
        )
    _check_headers(entries, found)


def _check_headers(entries: list[zipfile.ZipInfo], found: Type) -> None:
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.flag_bits & 0x1:
            raise Rejected(Phrase("The {type} file is encrypted. Save it without a password.", type=found.name))
        if entry.compress_type not in _METHODS:
            raise Rejected(Phrase("The {type} file is compressed in an unusual way. Save it again.", type=found.name))
        if entry.filename.startswith(("/", "\\")) or ".." in entry.filename.replace("\\", "/").split("/"):
            raise Rejected(Phrase("The {type} file contains a part with an unsafe name.", type=found.name))
        if entry.header_offset < end:
            raise Rejected(Phrase("The {type} file is damaged: its parts overlap.", type=found.name))
        end = entry.header_offset + 30 + len(entry.orig_filename.encode()) + entry.compress_size


def _check_size(unpacked: int, size_bytes: int) -> None:
    if unpacked > MAX_UNPACKED_BYTES:
        raise Rejected(Phrase("The file unpacks to more than {megabytes} MB.", megabytes=MAX_UNPACKED_BYTES >> 20))
    if unpacked > RATIO_FREE_BYTES and unpacked > MAX_RATIO * size_bytes:
        raise Rejected(
            Phrase(
                "The file unpacks to {times} times its size, as a zip bomb does.", times=unpacked // max(1, size_bytes)
            )
        )


def _verify_contents(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> None:
    """Decompress every part without storing it, to detect false sizes and checksums."""
    for entry in entries:
        with archive.open(entry) as part:
            length = 0
            while piece := part.read(1 << 16):
                if not length:
                    active_content.check_part(piece)
                length += len(piece)
            if length != entry.file_size:
                raise zipfile.BadZipFile(entry.filename)


def _image(file: IO[bytes], head: bytes, found: Type) -> None:
    starts = {
        "PNG": head.startswith(b"\x89PNG\r\n\x1a\n"),
        "JPEG": head.startswith(b"\xff\xd8\xff"),
        "WebP": head.startswith(b"RIFF") and head[8:12] == b"WEBP",
    }
    if not starts[found.name]:
        raise _not(found, head)
    if found.name == "PNG":
        _check_chunks(file)
    elif found.name == "JPEG":
        _check_segments(file)
    from PIL import Image  # slow to import

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
        raise Rejected(
            Phrase("The image has more than {millions} million pixels.", millions=MAX_PIXELS // 10**6)
        ) from None
    except Exception as error:  # every decoder raises its own
        raise Rejected(Phrase("The {type} image is damaged.", type=found.name)) from error


def _check_chunks(file: IO[bytes]) -> None:
    """Raise Rejected for a PNG of very many chunks: the decoder takes time for each, and unpacks some of them."""
    file.seek(len(b"\x89PNG\r\n\x1a\n"))
    parts = details = 0
    while len(head := file.read(8)) == 8:
        parts += 1
        details += head[4:] not in _PIXEL_CHUNKS
        if parts > MAX_IMAGE_PARTS or details > MAX_IMAGE_DETAILS:
            raise _too_many_parts("PNG")
        length_and_checksum = int.from_bytes(head[:4], "big") + 4
        file.seek(length_and_checksum, os.SEEK_CUR)


def _check_segments(file: IO[bytes]) -> None:
    """Raise Rejected for a JPEG whose pixels begin after very many segments, or after bytes that only fill."""
    file.seek(2)
    for _ in range(MAX_IMAGE_DETAILS + 1):
        marker = file.read(2)
        fill = 0
        while marker == b"\xff\xff" and fill < MAX_FILL_BYTES:
            marker = marker[1:] + file.read(1)
            fill += 1
        is_segment = len(marker) == 2 and marker[:1] == b"\xff" and marker != b"\xff\xff"
        if marker == b"\xff\xda":
            return
        if not is_segment:
            raise Rejected(Phrase("The {type} image is damaged.", type="JPEG"))
        length = int.from_bytes(file.read(2), "big")
        file.seek(max(0, length - 2), os.SEEK_CUR)
    raise _too_many_parts("JPEG")


def _too_many_parts(type_name: str) -> Rejected:
    return Rejected(Phrase("The {type} image has too many parts. Save it again.", type=type_name))


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise Rejected(
            Phrase(
                "The image has {width} x {height} pixels; the limit is {millions} million.",
                width=width,
                height=height,
                millions=MAX_PIXELS // 10**6,
            )
        )


def _text(file: IO[bytes], size_bytes: int, head: bytes, found: Type) -> None:
    start = head.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    file.seek(0)
    is_markup = start.startswith(b"<?xml") or active_content.begins_as_markup(file.read(_LONG_HEAD))
    if is_markup or head.startswith((b"%PDF-", b"PK\x03\x04", OLE)):
        raise _not(found, head)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Rejected(Phrase("The {type} file is UTF-16. Save it as UTF-8.", type=found.name))
    decoder = codecs.getincrementaldecoder("utf-8")()
    file.seek(0)
    try:
        while piece := file.read(1 << 16):
            if len(piece.translate(None, _CONTROLS)) != len(piece):
                raise Rejected(
                    Phrase("The {type} file contains control characters, so it is not text.", type=found.name)
                )
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise Rejected(Phrase("The {type} file is not UTF-8. Save it as UTF-8.", type=found.name)) from None
    if found.content_type == "application/json":
        _json(file, size_bytes, start)


_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\t\n\r\f")


def _json(file: IO[bytes], size_bytes: int, start: bytes) -> None:
    if size_bytes > MAX_JSON_BYTES:
        if not start.startswith((b"{", b"[")):
            raise Rejected("The JSON file must start with an object or a list.")
        return
    file.seek(0)
    try:
        msgspec.json.decode(file.read().removeprefix(codecs.BOM_UTF8))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected(Phrase("The file is not valid JSON: {error}.", error=error)) from None
