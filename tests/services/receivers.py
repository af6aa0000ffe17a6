"""Receivers of webhooks on loopback: they answer over TLS as a test says, and remember what they were sent."""

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from services.site import certificate_for


class Receivers:
    """
    Receivers on names below ``hooks.example``.

    Attributes:
        answers: by name, how it answers: a status, or a function that answers by itself.
        received: what each one was sent: headers and body.
        at_once: the most requests that each one had at once.
    """

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, Any] = {}
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        self.at_once: dict[str, int] = {}
        self._now: dict[str, int] = {}
        self._lock = threading.Lock()
        receivers = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                name = self.headers["Host"]
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receivers._lock:
                    receivers.received.append((name, dict(self.headers.items()), body))
                    receivers._now[name] = receivers._now.get(name, 0) + 1
                    receivers.at_once[name] = max(receivers.at_once.get(name, 0), receivers._now[name])
                try:
                    with contextlib.suppress(OSError):
                        receivers._answer(self, name)
                finally:
                    with receivers._lock:
                        receivers._now[name] -= 1

            def log_message(self, *_: object) -> None:
                pass

        certificate = certificate_for("*.hooks.example", folder)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.connection = {
            "deadline_s": 10.0,
            "resolve": lambda name, _: ["127.0.0.1"] if name.endswith("hooks.example") else [],
            "is_allowed": lambda address: address == "127.0.0.1",
            "port": self._server.server_port,
            "tls": ssl.create_default_context(cafile=certificate),
        }
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _answer(self, request: BaseHTTPRequestHandler, name: str) -> None:
        answer: int | Callable[[BaseHTTPRequestHandler], None] = self.answers.get(name, 204)
        if callable(answer):
            answer(request)
            return
        said = b"" if answer == 204 else b"as the test says"
        request.send_response(answer)
        request.send_header("Content-Length", str(len(said)))
        request.end_headers()
        request.wfile.write(said)

    def events(self, name: str = "a.hooks.example") -> list[dict[str, Any]]:
        """Return the bodies that a receiver was sent, in order."""
        return [json.loads(body) for host, _, body in self.received if host == name]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def receivers(folder: Path) -> Iterator[Receivers]:
    running = Receivers(folder)
    try:
        yield running
    finally:
        running.close()
