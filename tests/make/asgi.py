"""Call an ASGI application in process, with exactly the bytes that a client would send."""

import asyncio
import json
from typing import Any, NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        """Return the error object after checking the envelope."""
        assert set(self.json) == {"error"}
        error = self.json["error"]
        assert set(error) == {"code", "message", "hint"}
        assert all(isinstance(value, str) and value for value in error.values())
        assert self.headers["content-type"] == "application/json"
        return error


class Client:
    """A client of *application*."""

    def __init__(self, application) -> None:
        self.application = application

    def ask(self, target: str | bytes, method: str = "GET", **headers: str) -> Answer:
        """Send one request; header names use underscores for hyphens."""
        raw = target if isinstance(target, bytes) else target.encode("ascii")
        path, _, query = raw.partition(b"?")
        scope = {
            "type": "http",
            "method": method,
            "path": path.decode("latin-1"),
            "raw_path": path,
            "query_string": query,
            "headers": [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()],
            "state": {"request_id": "r-1"},
        }
        sent: list[dict[str, Any]] = []

        whole = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            # After the body, a client that waits for its answer says nothing more.
            return next(whole, None) or await asyncio.Event().wait()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.application(scope, receive, send))
        start, *bodies = sent
        names = [name for name, _ in start["headers"]]
        doubled = {name for name in names if names.count(name) > 1} - {b"link"}
        assert not doubled
        return Answer(
            start["status"],
            {name.decode(): value.decode("latin-1") for name, value in start["headers"]},
            b"".join(message["body"] for message in bodies),
        )
