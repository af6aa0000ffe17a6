"""Owners who change companies through the tools of running nodes, and remember what was acknowledged."""

import http.client
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from services.product import Product
from services.uploads import tool


def website(slug: str, number: int) -> str:
    return f"https://{slug}.example/{number}"


class Editors:
    """
    Threads that each number the website of one company, change after change, in a context.

    Args:
        nodes: which they use in turn.
        pause_s: between two changes of a thread.
    """

    def __init__(self, nodes: Sequence[Product], token: str, slugs: Sequence[str], *, pause_s: float = 0.05) -> None:
        self._nodes, self._token, self._pause_s = nodes, token, pause_s
        self._stop = threading.Event()
        self._is_on = threading.Event()
        self._is_on.set()
        self._idle = {slug: threading.Event() for slug in slugs}
        self.acknowledged: dict[str, int] = dict.fromkeys(slugs, 0)
        """The number of the last change that was answered without an error, by company."""
        self.total = 0
        self.refused: list[tuple[float, str]] = []
        """When a change was not acknowledged, and what was said."""
        self.answered_at = 0.0
        self._threads = [threading.Thread(target=self._edit, args=(slug,), daemon=True) for slug in slugs]

    def _edit(self, slug: str) -> None:
        number = 0
        while not self._stop.wait(self._pause_s):
            if not self._is_on.is_set():
                self._idle[slug].set()
                self._is_on.wait(1)
                continue
            self._idle[slug].clear()
            number += 1
            try:
                node = self._nodes[number % len(self._nodes)]
                found = tool(
                    node, self._token, "update_my_company", slug=slug, changes={"website": website(slug, number)}
                )
            except (OSError, http.client.HTTPException, AssertionError) as error:
                is_refused = "Answer(status=503" in repr(error)
                found = {"error": {"message": "503" if is_refused else repr(error)[:300]}}
            if "data" in found:
                self.acknowledged[slug] = number
                self.total += 1
                self.answered_at = time.monotonic()
            else:
                self.refused.append((time.monotonic(), found["error"]["message"]))
        self._idle[slug].set()

    def pause(self) -> None:
        """Wait until no change is on its way, and make no more."""
        self._is_on.clear()
        for event in self._idle.values():
            assert event.wait(60), "a change was not answered for a minute"

    def resume(self) -> None:
        for event in self._idle.values():
            event.clear()
        self._is_on.set()

    def messages(self) -> dict[str, int]:
        """Return what was said instead of an acknowledgement, and how often."""
        found: dict[str, int] = defaultdict(int)
        for _, message in self.refused:
            found[message] += 1
        return dict(found)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._is_on.set()
        for thread in self._threads:
            thread.join(60)
