"""The optional virus scanner: streams files to clamd over its socket."""

import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from muniment import config
from muniment.kernel.phrases.phrase import Phrase
from muniment.outbound.addresses import addresses_of

ANSWER_S: Final = 5.0
"""Seconds for a trivial question, which tells a silent scanner before a file is sent to it."""
SCAN_S: Final = 120.0
"""Seconds for a file in all, as clamd's own limit of a scan (MaxScanTime) is."""
_LOOKUPS: Final = threading.BoundedSemaphore(2)


class ScannerUnavailable(Exception):  # noqa: N818 - names the condition
    """The scanner has no verdict on the file."""


class ScannerAway(ScannerUnavailable):
    """The scanner does not answer; the file waits for it."""


def is_on() -> bool:
    """Return whether a scanner is configured."""
    return bool(config.current().clamd)


def scan(pieces: Iterable[bytes]) -> str | None:
    """
    Return the virus that the scanner found, or None.

    Raises:
        ScannerUnavailable: it has no verdict; ScannerAway if it does not answer.

    Source: clamd(8), INSTREAM.
    """
    try:
        answer = _ask(b"PING", (), ANSWER_S)
        if answer == b"PONG":
            answer = _ask(b"INSTREAM", pieces, SCAN_S)
    except (OSError, UnicodeError) as error:
        raise ScannerAway(Phrase("the virus scanner does not answer: {error}", error=error)) from error
    words = answer.decode(errors="replace").removeprefix("stream: ")
    if words == "OK":
        return None
    if words.endswith(" FOUND"):
        return words.removesuffix(" FOUND")
    raise ScannerUnavailable(Phrase("the virus scanner rejected the file: {words}", words=words[:200]))


def _ask(command: bytes, pieces: Iterable[bytes], within_s: float) -> bytes:
    """Return the answer to a command, and to *pieces* after it; raise OSError if it is not complete in time."""
    end = time.monotonic() + within_s
    with _connected(config.current().clamd, end) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it answers early what it does not take
            connection.sendall(b"z%s\0" % command)
            for piece in pieces:
                connection.settimeout(_left(end))
                connection.sendall(len(piece).to_bytes(4, "big") + piece)
            if command == b"INSTREAM":
                connection.sendall(bytes(4))
        answer = b""
        while not answer.endswith(b"\0"):
            connection.settimeout(_left(end))
            more = connection.recv(4096)
            if not more:
                raise ConnectionError("it ended the connection without an answer")
            answer += more
    return answer.rstrip(b"\0")


def _connected(address: str, end: float) -> socket.socket:
    if address.startswith("/"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_left(end))
        connection.connect(address)
        return connection
    host, _, port = address.rpartition(":")
    fault = OSError("it has no address")
    for each in addresses_of(host, int(port), within_s=_left(end), slots=_LOOKUPS):
        try:
            return socket.create_connection((each, int(port)), _left(end))
        except OSError as error:
            fault = error
    raise fault


def _left(end: float) -> float:
    left_s = end - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("it took too long")
    return left_s
