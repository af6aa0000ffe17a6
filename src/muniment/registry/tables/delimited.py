"""Read delimited text: its encoding, its delimiter, its cells. Pure."""

import codecs
import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from muniment.registry.tables.words.encodings import guess

MAX_CELL_CHARACTERS: Final = 1_000_000
SAMPLE_LINES: Final = 200
DELIMITERS: Final = ("\t", ";", "|", ",")
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
GUESS_BYTES: Final = 200_000
HEAD_BYTES: Final = 4_000


class Decoded(NamedTuple):
    """A text and its encoding. ``is_guess``: neither a mark nor the form of the bytes says it."""

    text: str
    encoding: str
    is_guess: bool = False


def decode(content: bytes, encoding: str = "") -> Decoded:
    """
    Return the text of *content*: by *encoding* if given, else by its mark, as UTF-8, or by a guess.

    Raises:
        UnicodeDecodeError: it is not in the given encoding.
        LookupError: there is no such encoding.
    """
    if encoding:
        return Decoded(content.decode(encoding), encoding)
    for mark, name in _BOMS:
        if content.startswith(mark):
            return Decoded(content.decode(name, "replace"), name)
    if name := _utf16_without_mark(content):
        return Decoded(content.decode(name, "replace"), name, is_guess=True)
    try:
        return Decoded(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    name = _guess(content)
    return Decoded(content.decode(name, "replace"), name, is_guess=True)


def _utf16_without_mark(content: bytes) -> str:
    """Return the UTF-16 variant of text whose every other byte is mostly zero; empty for other content."""
    sample = content[:HEAD_BYTES]
    if len(sample) <= 8 or b"\0" not in sample:
        return ""
    for name, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if zeros.count(0) > 0.7 * len(zeros):
            return name
    for name, ends in (
        ("utf-16-le", (b"\n\0", b",\0", b"\t\0", b";\0")),
        ("utf-16-be", (b"\0\n", b"\0,", b"\0\t", b"\0;")),
    ):
        try:
            text = content[: HEAD_BYTES // 2 * 2].decode(name, "strict" if len(content) <= HEAD_BYTES else "ignore")
        except UnicodeDecodeError:
            continue
        if any(each in sample for each in ends) and "\n" in text and all(map(_is_usual, text)):
            return name
    return ""


def _is_usual(sign: str) -> bool:
    return unicodedata.category(sign) not in {"Cn", "Co", "Cc"} or sign in "\r\n\t"


def _guess(content: bytes) -> str:
    """Return the likely encoding of *content*; lines in ASCII say nothing about it."""
    foreign = [line for line in content[:GUESS_BYTES].split(b"\n") if not line.isascii()]
    if not foreign:
        foreign = [line for line in content.split(b"\n") if not line.isascii()][:1_000]
    if _is_mostly_utf8(foreign):
        return "utf-8"
    return guess(foreign, content[:HEAD_BYTES])


def _is_mostly_utf8(lines: list[bytes]) -> bool:
    """Return whether most lines that are not ASCII are UTF-8: another program has added the rest."""
    good = 0
    for line in lines[:1_000]:
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            continue
        good += 1
    return 2 * good > len(lines[:1_000])


def delimiter_of(text: str, candidates: Iterable[str] = DELIMITERS) -> str:
    """Return the delimiter that splits most lines into the same number of cells, and many; a comma if none does."""
    sample = "\n".join(text.splitlines()[:SAMPLE_LINES])
    best, score = ",", 0.0
    for each in candidates:
        widths = Counter(len(line) for line in _parse(sample, each) if len(line) > 1)
        if not widths:
            continue
        width, rows = widths.most_common(1)[0]
        found = rows / max(1, sum(widths.values())) * (1 + min(width, 12) / 12) * min(1, sum(widths.values()) / 2)
        if found > score:
            best, score = each, found
    return best


def cells_of(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of every line, blank ones too, so that rows keep their numbers; quoted cells may have breaks."""
    return [[cell.strip() for cell in line] for line in _parse(text.lstrip("\ufeff"), delimiter)]


def _parse(text: str, delimiter: str) -> list[list[str]]:
    if csv.field_size_limit() < MAX_CELL_CHARACTERS:
        csv.field_size_limit(MAX_CELL_CHARACTERS)
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
    except csv.Error:  # a quotation mark that nothing closes makes a cell too long
        return [line.split(delimiter) for line in text.splitlines()]
