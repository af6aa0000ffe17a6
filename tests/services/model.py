"""A language model on loopback: a server of the chat-completions protocol with scripted replies."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "sk-harbour-key-of-the-tests"


@dataclass
class Asked:
    """A received request, with the contents of its two messages."""

    body: dict[str, Any]
    headers: dict[str, str]
    path: str
    tries: int = 1

    @property
    def criterion(self) -> dict[str, Any]:
        return json.loads(self.body["messages"][0]["content"].rpartition("The criterion:\n")[2])

    @property
    def passages(self) -> list[dict[str, Any]]:
        """Return the passages that may be quoted."""
        return json.loads(self.body["messages"][1]["content"])["passages"]


@dataclass
class Reply:
    """
    A scripted reply.

    Args:
        text: what the model says; with *raw* the whole body instead.
        wait_s: before anything is sent.
        cut: close the connection in the middle of the body.
        drip_s: seconds between two bytes of the body.
    """

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    wait_s: float = 0
    cut: bool = False
    drip_s: float = 0
    finish: str = "stop"
    tokens: Any = 100

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.status >= 400:
            # Some endpoints repeat the request: nothing of it may be reported.
            return json.dumps({"error": {"message": f"Refused: key {KEY}", "type": "refused"}}).encode()
        message = {"role": "assistant", "content": self.text}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": self.tokens}
        return json.dumps(
            {"id": "c", "object": "chat.completion", "created": 1, "model": "tide-1", "choices": [choice]}
            | ({} if self.tokens is None else {"usage": usage})
        ).encode()


def judged(asked: Asked, **more: Any) -> str:
    """Return a complete reply: the first passage, quoted for the highest level."""
    first = asked.passages[0]
    highest = asked.criterion["scale"]["highest"]
    return json.dumps(
        {
            "criterionId": asked.criterion["criterionId"],
            "quotes": [{"passage": first["passage"], "text": first["text"][:120], "level": highest}],
            "reason": "The profile shows it.",
            "level": highest,
            "confidence": 0.8,
        }
        | more
    )


def good(asked: Asked) -> Reply:
    return Reply(judged(asked))


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        model = self.server.model
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = Asked(body, {name.lower(): value for name, value in self.headers.items()}, self.path)
        with model._lock:
            model.asked.append(asked)
            asked.tries = sum(each.body == body for each in model.asked)
            model._now += 1
            model.at_once = max(model.at_once, model._now)
        try:
            self.say(model.answer(asked))
        except OSError:
            self.close_connection = True  # the client is gone
        finally:
            with model._lock:
                model._now -= 1

    def say(self, reply: Reply) -> None:
        stopping = self.server.model.stopping
        stopping.wait(reply.wait_s)
        body = reply.body()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if reply.cut:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif reply.drip_s:
            for byte in body:
                if stopping.wait(reply.drip_s):
                    break
                self.wfile.write(bytes([byte]))
        else:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


class _Server(ThreadingHTTPServer):
    model: "Model"
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Stay quiet: the client is gone."""


class Model:
    """The server; ``asked`` holds the requests, ``answer`` may be replaced at any time."""

    def __init__(self, answer: Callable[[Asked], Reply] = good) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Answers)
        self._server.model = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def criteria(self) -> list[str]:
        """Return the requested criteria in order."""
        return [asked.criterion["criterionId"] for asked in self.asked]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
