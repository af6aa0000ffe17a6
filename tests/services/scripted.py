"""A server on loopback that answers as a test says, one answer after another."""

import json
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self


class Scripted(NamedTuple):
    """An answer; a body that is not bytes is sent as JSON."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012 - nothing changes it
    cut: bool = False
    """The connection ends before the body is complete."""


class ScriptedServer:
    """
    A server with prepared answers; the last one is repeated.

    Attributes:
        asked: method and target of each request, in order.
    """

    def __init__(self, *answers: Scripted | Callable[[BaseHTTPRequestHandler], None]) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.asked.append(f"{self.command} {self.path}")
                answer = server._answers[0] if len(server._answers) == 1 else server._answers.pop(0)
                if isinstance(answer, Scripted):
                    _send(self, answer)
                else:
                    answer(self)

            def do_POST(self) -> None:
                self.do_GET()

            def do_PUT(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def problem(status: int, **headers: str) -> Scripted:
    """Return a refusal in the form of the contract."""
    code = "internal_error" if status >= 500 else "bad_request"
    error = {"code": code, "message": f"Refused with {status}.", "hint": "As the test says."}
    return Scripted(status, {"error": error}, {name.replace("_", "-"): value for name, value in headers.items()})


def dripping(pieces: Iterable[bytes], pause: Callable[[], object]) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return an answer that is sent in pieces, with a pause before each."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        try:
            for piece in pieces:
                pause()
                request.wfile.write(piece)
        except OSError:
            pass  # the client has had enough
        request.close_connection = True

    return answer


def _send(request: BaseHTTPRequestHandler, answer: Scripted) -> None:
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    request.send_response(answer.status)
    for name, value in answer.headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body) + (10 if answer.cut else 0)))
    request.end_headers()
    request.wfile.write(body)
    if answer.cut:
        request.close_connection = True
