"""
Cards as pictures: drawn by one process of their own, kept by the version of the document.

A card costs about 40 ms of CPU, so what a visitor may cause is bounded: by address (``drawing`` of the limits), by one
process that draws one card at a time, by two requests that wait for it, and by the bytes that are kept.
"""

import contextlib
import json
import os
import subprocess
import threading
import time
from typing import Final

from cachetools import LRUCache

from muniment import child_process
from muniment.kernel import fairness
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Unavailable
from muniment.web.cards.drawing import HEAD, MEMORY_BYTES

KEPT_BYTES: Final = 6_000_000
WAITING: Final = 3
"""Requests at once: the one that is drawn, and two that wait."""
DEADLINE_S: Final = 5.0
MAX_PICTURE_BYTES: Final = 4 << 20
MAX_USED_S: Final = 60.0
"""Maximum seconds of CPU that a card is charged for: a card that took over the process could report any number."""
PNG: Final = b"\x89PNG\r\n\x1a\n"


class Renderer:
    """The process that draws, started when it is needed; it ends by itself when it is idle."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(WAITING)

    def draw(self, card: JSONObject) -> tuple[bytes, float]:
        """
        Return a card as a PNG, empty if it cannot be drawn, and the seconds that it took: of CPU, as far as known.

        Raises:
            Unavailable: too many wait.
        """
        if not self._room.acquire(blocking=False):
            raise Unavailable("Other cards are being drawn.", "Try again in a second.", retry_after_s=1)
        try:
            with self._lock:
                return self._drawn(json.dumps(card).encode() + b"\n")
        finally:
            self._room.release()

    def _drawn(self, line: bytes) -> tuple[bytes, float]:
        lost_s = 0.0
        for _ in range(2):  # an idle process may end while it is asked
            process = self._running()
            assert process.stdin is not None  # noqa: S101 - a pipe
            assert process.stdout is not None  # noqa: S101 - a pipe
            began_s = time.monotonic()
            try:
                process.stdin.write(line)
                end = began_s + DEADLINE_S
                size, used_s = HEAD.unpack(_read(process.stdout.fileno(), HEAD.size, end))
                if size > MAX_PICTURE_BYTES or not 0 <= used_s <= MAX_USED_S:
                    raise BrokenPipeError("the picture or its cost is too large")
                drawn = _read(process.stdout.fileno(), size, end)
                if drawn and not drawn.startswith(PNG):
                    raise BrokenPipeError("the answer is not a picture")
            except OSError:
                self.close()
                lost_s += time.monotonic() - began_s
            else:
                return drawn, lost_s + used_s
        return b"", lost_s

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            pipe, memory_bytes = subprocess.PIPE, child_process.memory_limit(MEMORY_BYTES)
            # Without a limit of CPU time: it draws one card after another, and each has a deadline.
            command = child_process.command("muniment.web.cards.drawing", cpu_s=0, memory_bytes=memory_bytes)
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0, env={}
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _read(pipe: int, size: int, end: float) -> bytes:
    found = b""
    while len(found) < size:
        chunk = os.read(pipe, min(size - len(found), 1 << 16)) if child_process.has_said(pipe, end) else b""
        if not chunk:
            raise BrokenPipeError("the renderer has ended or takes too long")
        found += chunk
    return found


_renderer = Renderer()
_kept: LRUCache[str, tuple[str, bytes]] = LRUCache(KEPT_BYTES, getsizeof=lambda each: len(each[1]) + 300)
_lock = threading.Lock()


def card_picture(name: str, version: str, card: JSONObject, client: str) -> bytes:
    """
    Return the picture of a card, drawn once in each *version*.

    Args:
        name: the name of the card; only the last version is kept.
        client: the address that is charged for drawing, also if it fails.

    Raises:
        TooMany: the client has let too many cards be drawn.
        Unavailable: as :meth:`Renderer.draw`, or it could not be drawn.
    """
    with _lock:
        found = _kept.get(name)
    if found is not None and found[0] == version:
        return found[1]
    limits = fairness.current()
    limits.check("drawing", client)
    drawn, used_s = _renderer.draw(card)
    limits.drawing.charge(client, used_s * 1_000)
    if not drawn:
        raise Unavailable("The card could not be drawn.", "Try again later.", retry_after_s=60)
    with _lock, contextlib.suppress(ValueError):  # larger than all room
        _kept[name] = (version, drawn)
    return drawn


def forget() -> None:
    """Forget every card and end the process."""
    with _lock:
        _kept.clear()
    _renderer.close()
