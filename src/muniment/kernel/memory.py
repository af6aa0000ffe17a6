"""Memory: the size of cache keys, and returning freed memory to the system."""

import contextlib
import ctypes
import sys


def give_back() -> None:
    """Return to the system what the C library keeps of what was freed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # only GNU's C library has it


def size_of(key: object) -> int:
    """Give the bytes that a cache's key takes, with what stands in its tuples: a client may have made it long."""
    return sys.getsizeof(key) + (sum(map(size_of, key)) if isinstance(key, tuple) else 0)
