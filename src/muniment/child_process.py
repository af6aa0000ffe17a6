"""
Run a module of this package as a child process that reads one untrusted file, and take its bounded answer.

The child calls :func:`muniment.confinement.begin`. Its answer is bounded while it is read: a file of two kilobytes can
make a child say gigabytes, and what its parser was made to do must not reach the process that serves.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Final, NamedTuple

from muniment.confinement import NO_MEMORY

OUT_OF_TIME: Final = -signal.SIGXCPU
"""The status of a child that took too long by the clock, as of one that took too much CPU time."""
OUT_OF_MEMORY: Final = frozenset({NO_MEMORY, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL})
"""Libraries abort when they get no memory, and the system kills what takes too much of it."""
LEAST_MEMORY_BYTES: Final = 256 << 20
"""Less is not enough for Python with a parser."""
_PIECE_BYTES: Final = 1 << 20
_CGROUPS: Final = Path("/sys/fs/cgroup")


class SaidTooMuch(Exception):  # noqa: N818 - a verdict
    """The child said more than it may, and was ended."""


class Ended(NamedTuple):
    """The exit status of a child, and its answer."""

    status: int
    answer: bytes


def run(
    module: str,
    arguments: Iterable[str] = (),
    *,
    given: bytes | IO[bytes],
    cpu_s: int,
    wall_s: float,
    memory_bytes: int,
    max_answer_bytes: int,
) -> Ended:
    """
    Run *module* with a file as its standard input.

    Args:
        memory_bytes: as :func:`memory_limit` bounds it.

    Raises:
        SaidTooMuch: the answer has more than *max_answer_bytes*.
    """
    deadline = time.monotonic() + wall_s
    started = command(module, *arguments, cpu_s=cpu_s, memory_bytes=memory_bytes)
    with (
        _file(given) as file,
        subprocess.Popen(started, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}) as process,  # noqa: S603 - our own module
    ):
        try:
            answer = _read(process, deadline, max_answer_bytes)
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            return Ended(OUT_OF_TIME, b"")
        finally:
            process.kill()
    return Ended(status, answer)


@contextlib.contextmanager
def _file(given: bytes | IO[bytes]) -> Iterator[IO[bytes]]:
    """Provide a file as it is, or a content as a file without a name."""
    if not isinstance(given, bytes):
        yield given
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


def command(module: str, *arguments: str, cpu_s: int, memory_bytes: int) -> list[str]:
    """Return the command that runs *module*, which begins with the limits of the child."""
    return [sys.executable, "-I", "-m", module, str(cpu_s), str(memory_bytes), *arguments]


def _read(process: "subprocess.Popen[bytes]", deadline: float, most: int) -> bytes:
    """Return what a child says until it closes its output."""
    assert process.stdout is not None  # noqa: S101 - a pipe
    pipe = process.stdout.fileno()
    answer = bytearray()
    while True:
        if not has_said(pipe, deadline):
            raise TimeoutError
        piece = os.read(pipe, _PIECE_BYTES)
        if not piece:
            return bytes(answer)
        if len(answer) + len(piece) > most:
            raise SaidTooMuch
        answer += piece


def has_said(pipe: int, deadline: float) -> bool:
    """Wait until *pipe* has something or is closed; return whether that is so before *deadline*."""
    waiting = select.poll()  # unlike select.select it takes the numbers above 1,024 that a busy process has
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(1_000 * max(0.0, deadline - time.monotonic())))


def memory_limit(wanted_bytes: int) -> int:
    """Return the memory that a child may have: what it wants, and at most half of what this process has for itself."""
    return max(min(wanted_bytes, own_memory() // 2), min(wanted_bytes, LEAST_MEMORY_BYTES))


@cache
def own_memory() -> int:
    """Return the memory of the machine, or of the control group (a container or a service) that is given less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return machine
    return min([machine, *limits_of_groups(groups, _CGROUPS)])


def limits_of_groups(groups: str, root: Path) -> list[int]:
    """
    Return the limits of memory of control groups and of those above them.

    Args:
        groups: the lines of ``/proc/self/cgroup``.
        root: where the file systems of both versions are mounted.
    """
    found: list[int] = []
    for line in groups.splitlines():
        _, _, named = line.partition(":")
        controllers, _, path = named.partition(":")
        if not controllers:
            top, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        # A container sees its own group as the root, or a path that is not mounted in it.
        folder = top / path.strip("/")
        for each in (folder, *folder.parents):
            if each.is_relative_to(top):
                found += _number_in(each / name)
    return found


def _number_in(file: Path) -> list[int]:
    """Return the number in a file, none if there is no such file or it says that there is no limit."""
    try:
        return [int(file.read_text(encoding="ascii"))]
    except (OSError, ValueError):
        return []


@cache
def unconfined() -> tuple[str, ...]:
    """Return what children can still reach on this machine: `files`, `network` or `programs`; tried in a child."""
    tried = [sys.executable, "-I", "-m", "muniment.confinement"]
    done = subprocess.run(tried, capture_output=True, timeout=60, check=False, env={})  # noqa: S603 - our own module
    try:
        return tuple(json.loads(done.stdout))
    except ValueError:
        return ("files", "network", "programs")
