"""Memory: what caches hold beside their values, and what was needed for a moment."""

import contextlib
import ctypes
import re
import sys
from pathlib import Path
from typing import Final

MADV_DONTNEED: Final = 4
_MAPPING: Final = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r-[-x]p \S+ \S+ [1-9]\d* .*\n"
    r"(?:\w+:.*\n)*?Anonymous: +0 kB\n(?:\w+:.*\n)*?Swap: +0 kB$",
    re.MULTILINE,
)
"""A private mapping of a file, in ``/proc/self/smaps``: not to be written to, and no page of it was ever changed."""


def give_back() -> None:
    """Return to the system what the C library keeps of what was freed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # only GNU's C library has it


def let_go_of_code() -> None:
    """
    Let go of the pages of libraries, of which most ran while importing and never will again.

    The kernel maps a page again when it is called, out of its own cache of the file. Only Linux tells what is mapped.
    """
    with contextlib.suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        found = Path("/proc/self/smaps").read_text()
        for start, end in untouched(found, Path("/proc/self/maps").read_text()):
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_DONTNEED)


def untouched(found: str, later: str) -> list[tuple[int, int]]:
    """
    Give where the mappings of files begin and end that nobody writes to and nobody has changed.

    While a library is loaded, all of it is mapped as its first part for a moment, what will be written to as well.
    Whoever imports holds the interpreter's lock meanwhile, which is needed here between two looks: so a mapping that
    was found in that moment has changed by the second one.

    Args:
        found: ``/proc/self/smaps``.
        later: ``/proc/self/maps``, read after it.
    """
    standing = set(later.splitlines())
    matches = (match for match in _MAPPING.finditer(found) if match[0].partition("\n")[0] in standing)
    return [(int(match[1], 16), int(match[2], 16)) for match in matches]


def size_of(key: object) -> int:
    """Give the bytes that a cache's key takes, with what stands in its tuples: a client may have made it long."""
    return sys.getsizeof(key) + (sum(map(size_of, key)) if isinstance(key, tuple) else 0)
