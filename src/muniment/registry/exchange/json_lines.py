"""Read JSON Lines files in bounded memory: each line is an object, or has a fault."""

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.texts import first_text_fault
from muniment.schema.validation import Fault, kind_of

MAX_LINE_BYTES: Final = 8 * 1024 * 1024
"""The longest accepted line: over ten times the largest known listing."""
_BOM: Final = b"\xef\xbb\xbf"


class ImportLine(NamedTuple):
    """
    A line that is not blank. ``value`` is None if there is a fault. ``read`` counts bytes of the file.

    Args:
        rows: the numbers of the lines that the value was made of, if there are several.
    """

    number: int
    value: JSONObject | None
    fault: Fault | None
    size: int
    read: int
    rows: Sequence[int] = ()


def read_lines(path: Path) -> Iterator[ImportLine]:
    """
    Read the objects of a file, gzip by extension.

    Raises:
        OSError: the file cannot be opened or read.
    """
    with path.open("rb") as file:
        source: io.BufferedIOBase = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        number = 0
        while True:
            number += 1
            try:
                content = source.readline(MAX_LINE_BYTES + 1)
                too_long = len(content) > MAX_LINE_BYTES and _skip(source, content)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                fault = Fault("", Phrase("cannot be read: the gzip data is damaged ({error})", error=error))
                yield ImportLine(number, None, fault, 0, file.tell())
                return
            if not content:
                return
            if too_long:
                fault = Fault("", _too_long())
                yield ImportLine(number, None, fault, 0, file.tell())
                continue
            if number == 1:
                content = content.removeprefix(_BOM)
            if content.strip():
                value, bad = decode(content)
                yield ImportLine(number, value, bad, len(content), file.tell())


def _too_long() -> Phrase:
    return Phrase(
        "has more than {limit:,} bytes in one line. Put long lists of a company into captable.jsonl, positions.jsonl"
        " and proposals.jsonl, one row per line",
        limit=MAX_LINE_BYTES,
    )


def _skip(source: io.BufferedIOBase, content: bytes) -> bool:
    while content and not content.endswith(b"\n"):
        content = source.readline(1 << 20)
    return True


def decode(content: bytes) -> tuple[JSONObject | None, Fault | None]:
    """Decode a line; its fault names the field if possible."""
    try:
        value = msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        return None, _undecodable(content, error)
    if not isinstance(value, dict):
        return None, Fault("", Phrase("must be an object, not {kind}", kind=kind_of(value)))
    # Only an escape can bring a NUL into a text that was decoded, so that other lines need not be searched.
    text_fault = first_text_fault(value) if b"\\u0000" in content else None
    if text_fault:
        return None, Fault(*text_fault)
    return value, None


def _undecodable(content: bytes, error: Exception) -> Fault:
    try:
        content.decode()
    except UnicodeDecodeError as wrong:
        return Fault(
            "", Phrase("is not UTF-8 (byte {place} is 0x{byte:02x})", place=wrong.start + 1, byte=content[wrong.start])
        )
    if isinstance(error, RecursionError):
        return Fault("", "is nested too deeply")
    # Python's decoder accepts half of a surrogate pair, which msgspec refuses: so its field can be named.
    text_fault = None
    if b"\\u" in content:
        try:
            text_fault = first_text_fault(json.loads(content))
        except (ValueError, RecursionError):
            text_fault = None
    if text_fault:
        return Fault(*text_fault)
    return Fault("", Phrase("is not JSON: {error}", error=str(error).removeprefix("JSON is malformed: ")))
