"""A mirror of the public change feed, which joins by number and chain, and is told when its past is gone."""

import http.client
import json
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self


class Follower:
    """Follows the nodes at *ports* in turn, in a thread, in a context."""

    def __init__(self, ports: Sequence[int], *, pause_s: float = 0.1) -> None:
        self._ports, self._pause_s = ports, pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.at: tuple[int, str] | None = None
        """The number and the chain of the last change that was heard of; None before the first."""
        self.history: list[tuple[int, str]] = []
        """Every change of the history that it is in."""
        self.told: list[dict[str, Any]] = []
        """The errors by which it learnt that its past is gone."""
        self.failures: list[str] = []

    def _follow(self) -> None:
        number = 0
        while not self._stop.wait(self._pause_s):
            number += 1
            try:
                self._ask(self._ports[number % len(self._ports)])
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))

    def _ask(self, port: int) -> None:
        after = "" if self.at is None else f"&chain={self.at[1]}"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", f"/api/v1/changes?after={self.at[0] if self.at else 0}{after}")
            response = connection.getresponse()
            found = json.loads(response.read())
        finally:
            connection.close()
        if response.status == http.client.BAD_REQUEST:
            self.told.append(found["error"])
            self.at, self.history = None, []
        elif response.status == http.client.OK:
            self.history += [(each["sequence"], each["chain"]) for each in found["data"]]
            self.at = self.history[-1] if self.history else None
        else:
            self.failures.append(f"{response.status} {found}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(20)
