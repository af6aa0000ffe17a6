"""A witness on loopback: it cosigns what continues what it has cosigned, until a test says how it answers."""

import base64
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tlog_scales import tlog

from muniment.kernel.signed_notes import Checkpoint, WitnessKey, cosign, parse


class Asked(NamedTuple):
    """A request to the witness."""

    old_size: int
    hashes: list[bytes]
    note: str

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint.parse(parse(self.note).text)


class Said(NamedTuple):
    """An answer of the witness."""

    status: int
    body: bytes
    content_type: str = "text/plain"


class WitnessSite:
    """
    A witness, whose proofs another implementation verifies.

    Attributes:
        answer: how it answers instead of itself; a function that is given the request, and may write by itself.
        asked: the requests, in order.
        cosigned: the latest checkpoint that it has cosigned, by origin.
    """

    def __init__(self, number: int) -> None:
        self.private = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
        self.key = WitnessKey(f"witness{number}.example", self.private.public_key().public_bytes_raw())
        self.answer: Callable[[BaseHTTPRequestHandler, Asked], Said | None] | None = None
        self.asked: list[Asked] = []
        self.cosigned: dict[str, Checkpoint] = {}
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                with site._lock:
                    site._now += 1
                    site.most_at_once = max(site.most_at_once, site._now)
                try:
                    asked = read_request(self.rfile.read(int(self.headers["Content-Length"])))
                    site.asked.append(asked)
                    with contextlib.suppress(OSError):
                        said = site.judge(asked) if site.answer is None else site.answer(self, asked)
                        if said is not None:
                            send(self, said)
                finally:
                    with site._lock:
                        site._now -= 1

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def judge(self, asked: Asked) -> Said:
        """Answer as c2sp.org/tlog-witness says."""
        found = asked.checkpoint
        known = self.cosigned.get(found.origin, Checkpoint(found.origin, 0, b""))
        if asked.old_size != known.size:
            return Said(409, f"{known.size}\n".encode(), "text/x.tlog.size")
        if known.size == found.size and known.root != found.root:
            return Said(422, b"another root")
        if known.size:
            try:
                tlog.ConsistencyProof(known.size, found.size, asked.hashes).check(known.root, found.root)
            except tlog.ConsistencyProofInvalid:
                return Said(422, b"the proof does not hold")
        self.cosigned[found.origin] = found
        return Said(200, self.line(asked).encode())

    def line(self, asked: Asked, at: int | None = None) -> str:
        moment = int(time.time()) if at is None else at
        return cosign(parse(asked.note).text, self.key.name, self.private, moment)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def read_request(body: bytes) -> Asked:
    head, _, note = body.decode().partition("\n\n")
    first, *hashes = head.split("\n")
    assert first.startswith("old ")
    return Asked(int(first.removeprefix("old ")), [base64.b64decode(each) for each in hashes], note)


def send(handler: Any, said: Said) -> None:
    handler.send_response(said.status)
    handler.send_header("Content-Type", said.content_type)
    handler.send_header("Content-Length", str(len(said.body)))
    handler.end_headers()
    handler.wfile.write(said.body)


@contextlib.contextmanager
def witness_site(number: int = 1) -> Iterator[WitnessSite]:
    site = WitnessSite(number)
    try:
        yield site
    finally:
        site.close()
