"""
Read the tables of a file in a separate process with limited time and memory.

The parent calls :func:`read_file`. The child is this module run as a program: it reads the file from standard input and
writes the tables as JSON, or a sentence. A workbook of five kilobytes can name a cell a million rows away, and an
archive can unpack to far more than it is: what this costs harms only the child. Nothing in a file is executed: formulas
are text.
"""

import http.client
import resource
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
        raise BadRequest(f"{file.name} is larger than {MAX_BYTES >> 20} MB.", "Split it, and import the parts.")
    command = [sys.executable, "-I", "-m", "muniment.registry.tables.reading", file.name, encoding, delimiter]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write(file.content)
        given.seek(0)
        try:
            subprocess.run(  # noqa: S603 - our own module
                command, stdin=given, stdout=out, stderr=subprocess.DEVNULL, timeout=WALL_S, check=False, env={}
            )
        except subprocess.TimeoutExpired:
            said = b""
        else:
            out.seek(0)
            said = out.read()
    if said.startswith(_OK):
        return msgspec.json.decode(said[len(_OK) :], type=list[Sheet])
    reason = said.decode("utf-8", "replace")[:500] or Phrase(
        "{file} takes too much time or memory to read.", file=file.name
    )
    raise BadRequest(reason, "Nothing was imported.")


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    name, encoding, delimiter = sys.argv[1:4]
    try:
        sheets = read_sheets(sys.stdin.buffer.read(), name, encoding, delimiter)
        said = _OK + msgspec.json.encode(sheets)
    except NotATable as fault:
        said = str(fault).encode("utf-8", "replace")
    sys.stdout.buffer.write(said)


if __name__ == "__main__":
    _main()
