"""HTTP as bytes: requests that a client library would correct are sent unchanged."""

import re
import socket

LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")


def exchange(port: int, sent: bytes, *, answers: int = 1, within_s: float = 60, hang_up: bool = False) -> list[bytes]:
    """
    Send *sent* on one connection and return the raw responses.

    Args:
        answers: how many to wait for; fewer arrive if the server closes first.
        hang_up: half-close after sending.
    """
    found: list[bytes] = []
    with socket.create_connection(("127.0.0.1", port), timeout=within_s) as connection:
        try:
            connection.sendall(sent)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before all of it was sent: the answer tells
        received = b""
        while len(found) < answers:
            head, separator, rest = received.partition(b"\r\n\r\n")
            if separator:
                has_body = status(head) not in {204, 304} and not sent.startswith(b"HEAD ")
                length = LENGTH.search(head)
                size = int(length[1]) if length and has_body else 0
                if len(rest) >= size:
                    found.append(head + separator + rest[:size])
                    received = rest[size:]
                    continue
            try:
                chunk = connection.recv(1 << 16)
            except ConnectionResetError:
                break
            if not chunk:
                break
            received += chunk
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])
