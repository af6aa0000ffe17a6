"""The interface of the fast path: immediate responses, charged to the client's rate limit."""

import logging
from typing import Protocol

from muniment.api.responses import Answer, Response
from muniment.kernel.asgi import Header
from muniment.kernel.fairness import Verdict
from muniment.mcp.declarations import Caller
from muniment.mcp.protocol.http import Reply
from muniment.server.charging import Charging, is_free
from muniment.server.fastpath.heads import KnownHeads
from muniment.server.fastpath.pages import PageAnswers
from muniment.server.fastpath.rest import Detail, RestAnswers

log = logging.getLogger("muniment.server")


Ready = tuple[Response, Verdict | None, str]
"""
A finished response, the client's remaining rate, and the surface: a plain tuple for speed, made at every request.

No rate if the response counts against another limit, which no header shows. If the rate is exceeded, the verdict says
so, of whichever limit, and the response must not be sent.
"""


class ToolAnswers(Protocol):
    """A tool server that answers ordinary calls, or refuses them, without waiting."""

    surface: str

    def call(self, lines: list[Header], body: bytes, caller: Caller) -> tuple[Reply, Verdict | None] | None:
        """Answer a call and charge the caller's rate, or refuse it; return None for the ordinary path."""


class Waiting(Protocol):
    """A connection whose look-up is made at the end of this turn of the event loop."""

    @property
    def waits_for(self) -> Detail | None:
        """Return the detail to look up; None if the client is gone."""

    def answer_late(self, answers: dict[bytes, Answer]) -> None:
        """Send the response, or take the ordinary path without one."""

    def abort(self) -> None:
        """Close the connection without a response."""


class FastPath:
    """Handlers of the fast path."""

    def __init__(self, charging: Charging) -> None:
        self._take = charging.take_for_ready
        self.rest: RestAnswers | None = None
        """REST responses; None until there is a registry to read."""
        self.pages: PageAnswers | None = None
        """Responses of public pages; None until there is a registry to read."""
        self.tools: dict[bytes, ToolAnswers] = {}
        """Tool servers by request target."""
        self.heads = KnownHeads()
        self.waiting: list[Waiting] = []
        """Connections whose details are looked up together at the end of this turn of the event loop."""

    def get(
        self, target: bytes, accept_encoding: bytes, if_none_match: bytes, client: str, answer: Answer | None = None
    ) -> Ready | None:
        """
        Answer a GET from memory, or return None if nothing is ready. The client's rate is charged only for a response.

        Args:
            target: path and query as in the request line.
            answer: what :meth:`RestAnswers.look_up` returned for *target*; not needed for cached responses.
        """
        if self.rest is None:
            return None
        response = self.rest.get(target, accept_encoding, if_none_match, answer)
        if response is None:
            return None
        # A 304 is free only from the cache: with *answer*, a look-up was made for it.
        unchanged = response.status == 304 and answer is None and is_free(if_none_match)
        return response, self._take("api", client, is_free=unchanged), "api"

    def repeat(self, request: bytes, client: str) -> Ready | None:
        """Answer a whole request by its bytes, as :meth:`get` answered the same bytes before, or return None."""
        rest = self.rest
        if rest is None or (response := rest.by_request.get(request)) is None:
            return None
        rest.api.hits += 1
        # "If-None-Match: *", whose 304 is charged, is never remembered: see the caller of remember.
        return response, self._take("api", client, is_free=response.status == 304), "api"

    def remember(self, request: bytes, target: bytes, response: Response) -> None:
        """Remember *response* to a GET of *target*, which may be charged, by the bytes of the whole request."""
        if self.rest is not None:
            self.rest.remember(request, target, response)

    def has_page(self, target: bytes) -> bool:
        return self.pages is not None and target in self.pages

    def page(  # noqa: PLR0917 - what chooses the response, without the cost of names
        self,
        target: bytes,
        accept_encoding: bytes,
        if_none_match: bytes,
        client: str,
        accept_language: bytes = b"",
        cookie: bytes = b"",
    ) -> Ready | None:
        """Answer a GET with a kept page or static file, charged as on the ordinary path, or return None."""
        if self.pages is None:
            return None
        found = self.pages.get(target, accept_encoding, if_none_match, accept_language, cookie)
        if found is None:
            return None
        page, response = found
        unchanged = response.status == 304 and is_free(if_none_match)
        return response, self._take(page.surface, client, is_free=unchanged), page.surface

    def not_modified(self, target: bytes, accept_encoding: bytes, if_none_match: bytes, client: str) -> Ready | None:
        """Answer a conditional GET with 304 from memory. Not charged to the client's rate, and not limited by it."""
        if self.rest is None:
            return None
        response = self.rest.not_modified(target, accept_encoding, if_none_match)
        return None if response is None else (response, self._take("api", client, is_free=True), "api")

    def detail(self, target: bytes) -> Detail | None:
        """Return the detail that a GET of *target* needs, if one look-up answers it."""
        return self.rest.detail(target) if self.rest is not None else None

    def answer_waiting(self) -> None:
        """Look up the details of all waiting connections in one query, and answer them in order."""
        waiting, self.waiting = self.waiting, []
        asked = [(connection, connection.waits_for) for connection in waiting if connection.waits_for is not None]
        details = [detail for _, detail in asked]
        try:
            answers = self.rest.look_up(details) if self.rest is not None else {}
        except Exception:  # noqa: BLE001 - the ordinary path repeats, logs and reports it
            answers = {}
        for connection, _ in asked:
            try:
                connection.answer_late(answers)
            except Exception:
                # Like a failed read in the event loop: close this connection, answer the others.
                log.exception("a delayed response failed")
                connection.abort()
