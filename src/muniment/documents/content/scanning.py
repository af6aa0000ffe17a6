"""The optional virus scanner: streams files to clamd over its socket."""

import socket
from collections.abc import Iterable
from typing import Final

from muniment import config
from muniment.kernel.phrases.phrase import Phrase

TIMEOUT_S: Final = 60.0


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
        with _connect(config.current().clamd) as connection:
            connection.sendall(b"zINSTREAM\0")
            for piece in pieces:
                connection.sendall(len(piece).to_bytes(4, "big") + piece)
            connection.sendall(bytes(4))
            answer = b""
            while b"\0" not in answer and (more := connection.recv(4096)):
                answer += more
    except OSError as error:
        raise ScannerAway(Phrase("the virus scanner does not answer: {error}", error=error)) from error
    words = answer.rstrip(b"\0").decode(errors="replace").removeprefix("stream: ")
    if words == "OK":
        return None
    if words.endswith(" FOUND"):
        return words.removesuffix(" FOUND")
    raise ScannerUnavailable(Phrase("the virus scanner rejected the file: {words}", words=words[:200]))


def _connect(address: str) -> socket.socket:
    if address.startswith("/"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(TIMEOUT_S)
        connection.connect(address)
        return connection
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), TIMEOUT_S)
