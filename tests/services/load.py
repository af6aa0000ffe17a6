"""Clients that read without a pause and record failures."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

PATHS = ("/api/v1/companies", "/api/v1/stats", "/api/v1/companies?pageSize=3", "/api/v1/changes")


class Load:
    """
    Threads that read public responses, each on a persistent connection.

    Args:
        ports: of the servers; the threads are distributed over them.
        pause_s: between two requests of a thread.
        observe: called with the port and the headers of every response.
    """

    def __init__(
        self,
        ports: Sequence[int],
        *,
        paths: Sequence[str] = PATHS,
        threads: int = 4,
        pause_s: float = 0.0,
        observe: Callable[[int, dict[str, str]], None] | None = None,
    ) -> None:
        self._paths = paths
        self._pause_s = pause_s
        self._observe = observe
        self._stop = threading.Event()
        self.failures: list[tuple[float, int, str]] = []
        """Time, port and failure."""
        self.answered: Counter[int] = Counter()
        """Complete responses by port."""
        self._threads = [
            threading.Thread(target=self._ask, args=(ports[number % len(ports)],), daemon=True)
            for number in range(threads)
        ]

    @property
    def total(self) -> int:
        return sum(self.answered.values())

    def _ask(self, port: int) -> None:
        connection: http.client.HTTPConnection | None = None
        number = 0
        while not self._stop.wait(self._pause_s):
            number += 1
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", self._paths[number % len(self._paths)])
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    self.failures.append(
                        (time.time(), port, f"{response.status} {self._paths[number % len(self._paths)]}")
                    )
                else:
                    self.answered[port] += 1
                if self._observe is not None:
                    self._observe(port, {name.lower(): value for name, value in response.getheaders()})
                if response.will_close:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                self.failures.append((time.time(), port, repr(error)))
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(0.02)
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(15)
