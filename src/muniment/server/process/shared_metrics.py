"""The figures of every process that serves a port, in one file that they share: whoever is asked tells them all."""

import os
import zlib
from collections import defaultdict
from struct import Struct
from typing import Final

AREA_BYTES: Final = 64 << 10
_HEADER: Final = Struct("<II")
_TRIES: Final = 5


class SharedMetrics:
    """
    An area for each process in the file *descriptor*.

    Args:
        number: the process's own, from 1.
    """

    def __init__(self, descriptor: int, number: int) -> None:
        self._descriptor = descriptor
        self._number = number

    def put(self, text: str) -> None:
        """Leave the own figures, as Prometheus text, for the others."""
        content = zlib.compress(text.encode(), 1)
        if len(content) <= AREA_BYTES - _HEADER.size:
            place = (self._number - 1) * AREA_BYTES
            os.pwrite(self._descriptor, _HEADER.pack(len(content), zlib.crc32(content)) + content, place)

    def all(self) -> dict[int, str]:
        """Give the figures of every process that has left some, by its number."""
        areas = os.fstat(self._descriptor).st_size // AREA_BYTES
        found = {number: self._read(number) for number in range(1, areas + 1)}
        return {number: text for number, text in found.items() if text}

    def _read(self, number: int) -> str:
        for _ in range(_TRIES):
            area = os.pread(self._descriptor, AREA_BYTES, (number - 1) * AREA_BYTES)
            size, checksum = _HEADER.unpack_from(area)
            content = area[_HEADER.size : _HEADER.size + size]
            if not size:
                return ""
            if zlib.crc32(content) == checksum:  # or its process was writing just then
                return zlib.decompress(content).decode()
        return ""


def clear(descriptor: int, number: int) -> None:
    """Make the area of a process ready for another one."""
    os.ftruncate(descriptor, max(os.fstat(descriptor).st_size, number * AREA_BYTES))
    os.pwrite(descriptor, _HEADER.pack(0, 0), (number - 1) * AREA_BYTES)


def together(texts: dict[int, str]) -> list[str]:
    """Put Prometheus texts together: each sample gets the label ``process``, and those of a family stand together."""
    families: dict[str, list[str]] = defaultdict(list)
    heads: dict[str, list[str]] = defaultdict(list)
    for number, text in texts.items():
        family = ""
        for line in text.splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                if line not in heads[family]:
                    heads[family].append(line)
                continue
            name, brace, rest = line.partition("{")
            if brace:
                families[family].append(f'{name}{{process="{number}",{rest}')
            else:
                name, _, value = line.partition(" ")
                families[family].append(f'{name}{{process="{number}"}} {value}')
    return [line for family, head in heads.items() for line in (*head, *families[family])]
