"""
Read the tables of a file in a separate process with limited time, memory and answer.

:func:`read_file` runs :mod:`muniment.registry.tables.formats` as a program.
"""

import http.client
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from muniment import child_process
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.outbound.fetching import Connection, NotFetched
from muniment.outbound.following import follow
from muniment.registry.tables import formats
from muniment.registry.tables.formats import OK, Sheet, most_bytes, too_large

MAX_BYTES: Final = 100 << 20
CPU_S: Final = 120
WALL_S: Final = 240
MEMORY_BYTES: Final = 2 << 30
FETCH_S: Final = 120.0
_SPLIT_IT: Final = "Nothing was imported. Split the file, or save it as CSV."

connection: Connection = {}
"""Options of connections to servers; empty in production."""


class TableFile(NamedTuple):
    """A file to import, by its name and content."""

    name: str
    content: bytes


def open_file(source: Path | str, max_bytes: int = 0) -> TableFile:
    """
    Return the content of a file, or of an address.

    Raises:
        BadRequest: it cannot be had, or is too large.
        OSError: the file cannot be read.
    """
    max_bytes = max_bytes or MAX_BYTES
    if isinstance(source, Path):
        if source.stat().st_size > max_bytes:
            raise BadRequest(
                Phrase("{source} is larger than {megabytes} MB.", source=source, megabytes=max_bytes >> 20),
                "Split it, and import the parts.",
            )
        return TableFile(source.name, source.read_bytes())
    options: Connection = {"deadline_s": FETCH_S, "max_body_bytes": max_bytes, **connection}
    try:
        content = follow(source, accept="*/*", **options).body
    except NotFetched as fault:
        reason = Phrase("the server answered {status}", status=fault.status)
    except ValueError as fault:
        reason = Phrase.of(fault.args[0])
    except (OSError, http.client.HTTPException):
        reason = Phrase("the server did not answer in time")
    else:
        return TableFile(name_in(source), content)
    raise BadRequest(
        Phrase("{source} cannot be fetched: {reason}.", source=source, reason=reason),
        "Download the file, and import it from the disk.",
    )


def name_in(address: str) -> str:
    """Return the name of a file at an address, without signs that no name has; they could not be an argument."""
    name = PurePosixPath(unquote(urlsplit(address).path)).name
    return "".join(sign for sign in name if sign.isprintable())[-200:] or "table"


def read_file(file: TableFile, *, encoding: str = "", delimiter: str = "") -> list[Sheet]:
    """
    Return the tables of *file*, with at least one.

    Raises:
        BadRequest: it holds none that can be read.
    """
    if len(file.content) > MAX_BYTES:
        large = Phrase("{source} is larger than {megabytes} MB.", source=file.name, megabytes=MAX_BYTES >> 20)
        raise BadRequest(large, "Split it, and import the parts.")
    memory_bytes = child_process.memory_limit(MEMORY_BYTES)
    most = most_bytes(len(file.content))
    try:
        ended = child_process.run(
            "muniment.registry.tables.formats",
            (file.name, encoding, delimiter),
            given=file.content,
            cpu_s=CPU_S,
            wall_s=WALL_S,
            memory_bytes=memory_bytes,
            max_answer_bytes=most,
        )
    except child_process.SaidTooMuch:
        raise BadRequest(too_large(file.name, most), _SPLIT_IT) from None
    if ended.answer.startswith(OK):
        try:
            return formats.unpack(memoryview(ended.answer)[len(OK) :])
        except formats.NotAnAnswer:
            raise BadRequest(_ended(file.name, ended.status, memory_bytes), _SPLIT_IT) from None
    if ended.answer:
        raise BadRequest(ended.answer.decode("utf-8", "replace")[:500], "Nothing was imported.")
    raise BadRequest(_ended(file.name, ended.status, memory_bytes), _SPLIT_IT)


def _ended(name: str, status: int, memory_bytes: int) -> str:
    """Return why a child ended without a word: out of memory, out of time, or for another reason."""
    if status in child_process.OUT_OF_MEMORY:
        return Phrase(
            "{file} takes more than {megabytes:,} MB of memory to read.", file=name, megabytes=memory_bytes >> 20
        )
    if status == child_process.OUT_OF_TIME:
        return Phrase("{file} takes too much time to read.", file=name)
    return Phrase("{file} takes too much time or memory to read.", file=name)
