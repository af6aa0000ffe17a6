"""Memory: the size of cache keys, and returning freed memory to the system."""

import contextlib
import ctypes
import sys


def release_free_memory() -> None:
    """Return freed memory, which the C library keeps, to the system."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # only in glibc


def size_of(key: object) -> int:
    """Return the size in bytes of a cache key with its nested tuples: a client may make it long."""
    return sys.getsizeof(key) + (sum(map(size_of, key)) if isinstance(key, tuple) else 0)
