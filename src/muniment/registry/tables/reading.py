"""
Read the tables of a file in a separate process with limited time and memory.

The parent calls :func:`read_file`. The child is this module run as a program: it reads the file from standard input and
writes the tables as JSON, or a sentence. A workbook of five kilobytes can name a cell a million rows away, and an
archive can unpack to far more than it is: what this costs harms only the child. Nothing in a file is executed: formulas
are text.
"""

import http.client
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.outbound.fetching import Connection, NotFetched
from muniment.outbound.following import follow
from muniment.registry.tables.formats import NotATable, Sheet, read_sheets

MAX_BYTES: Final = 100 << 20
CPU_S: Final = 120
WALL_S: Final = 240
MEMORY_BYTES: Final = 2 << 30
FETCH_S: Final = 120.0
_OK: Final = b"ok\n"
NO_MEMORY: Final = 77
"""The exit status of a child without memory."""
_OUT_OF_MEMORY: Final = frozenset({NO_MEMORY, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL})
"""Libraries abort when they get no memory, and the system kills what takes too much of it."""
_OUT_OF_TIME: Final = frozenset({-signal.SIGXCPU})

connection: Connection = {}
"""How servers are connected to; empty in production."""


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
    return "".join(each for each in name if each.isprintable())[-200:] or "table"


def read_file(file: TableFile, *, encoding: str = "", delimiter: str = "") -> list[Sheet]:
    """
    Return the tables of *file*, with at least one.

    Raises:
        BadRequest: it holds none that can be read.
    """
    if len(file.content) > MAX_BYTES:
        large = Phrase("{source} is larger than {megabytes} MB.", source=file.name, megabytes=MAX_BYTES >> 20)
        raise BadRequest(large, "Split it, and import the parts.")
    limits = [str(CPU_S), str(MEMORY_BYTES)]
    command = [sys.executable, "-I", "-m", "muniment.registry.tables.reading", file.name, encoding, delimiter, *limits]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write(file.content)
        given.seek(0)
        try:
            done = subprocess.run(  # noqa: S603 - our own module
                command, stdin=given, stdout=out, stderr=subprocess.DEVNULL, timeout=WALL_S, check=False, env={}
            )
        except subprocess.TimeoutExpired:
            said, status = b"", -signal.SIGXCPU
        else:
            out.seek(0)
            said, status = out.read(), done.returncode
    if said.startswith(_OK):
        return msgspec.json.decode(said[len(_OK) :], type=list[Sheet])
    if said:
        raise BadRequest(said.decode("utf-8", "replace")[:500], "Nothing was imported.")
    raise BadRequest(_ended(file.name, status), "Nothing was imported. Split the file, or save it as CSV.")


def _ended(name: str, status: int) -> str:
    """Return why a child ended without a word: out of memory, out of time, or for another reason."""
    if status in _OUT_OF_MEMORY:
        return Phrase(
            "{file} takes more than {megabytes:,} MB of memory to read.", file=name, megabytes=MEMORY_BYTES >> 20
        )
    if status in _OUT_OF_TIME:
        return Phrase("{file} takes too much time to read.", file=name)
    return Phrase("{file} takes too much time or memory to read.", file=name)


def _main() -> None:
    name, encoding, delimiter, cpu_s, memory_bytes = sys.argv[1:6]
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes), int(memory_bytes)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        sheets = read_sheets(sys.stdin.buffer.read(), name, encoding, delimiter)
        said = _OK + msgspec.json.encode(sheets)
    except NotATable as fault:
        said = str(fault).encode("utf-8", "replace")
    except MemoryError:
        os._exit(NO_MEMORY)  # at once: what an orderly end needs may not be there
    sys.stdout.buffer.write(said)


if __name__ == "__main__":
    _main()
