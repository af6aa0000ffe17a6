"""Multi-process metrics: each process publishes its own in one shared file, so that any of them can expose all."""

import os
import tempfile
import zlib
from struct import Struct
from typing import Final

AREA_BYTES: Final = 64 << 10
_HEADER: Final = Struct("<II")
_TRIES: Final = 5


class SharedMetrics:
    """The file *descriptor* with one area per process."""

    def __init__(self, descriptor: int, number: int) -> None:
        self._descriptor = descriptor
        self._number = number

    def put(self, metrics: bytes) -> None:
        content = zlib.compress(metrics, 1)
        if len(content) <= AREA_BYTES - _HEADER.size:
            place = (self._number - 1) * AREA_BYTES
            os.pwrite(self._descriptor, _HEADER.pack(len(content), zlib.crc32(content)) + content, place)

    def all(self) -> dict[int, bytes]:
        """Return the published metrics of every process by its number."""
        areas = os.fstat(self._descriptor).st_size // AREA_BYTES
        found = {number: self._read(number) for number in range(1, areas + 1)}
        return {number: metrics for number, metrics in found.items() if metrics}

    def _read(self, number: int) -> bytes:
        for _ in range(_TRIES):
            area = os.pread(self._descriptor, AREA_BYTES, (number - 1) * AREA_BYTES)
            size, checksum = _HEADER.unpack_from(area)
            content = area[_HEADER.size : _HEADER.size + size]
            if not size:
                return b""
            if zlib.crc32(content) == checksum:  # otherwise its process is writing right now
                return zlib.decompress(content)
        return b""


def make() -> int:
    """Return the descriptor of a new file without a name, in memory: the data folder's disk may be full."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("muniment-metrics")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def clear(descriptor: int, number: int) -> None:
    os.ftruncate(descriptor, max(os.fstat(descriptor).st_size, number * AREA_BYTES))
    os.pwrite(descriptor, _HEADER.pack(0, 0), (number - 1) * AREA_BYTES)
