"""The interface of the fast path: what may answer at once, and what it costs the client's rate."""

import logging
from collections.abc import Sequence
from typing import Protocol

import msgspec

from muniment.api.responses import Answer, Response
from muniment.kernel.rate import Limiter, Verdict
from muniment.mcp.declarations import Caller
from muniment.mcp.protocol.http import Reply
from muniment.server.fastpath.rest import Detail, RestAnswers
from muniment.server.http.client_address import Header

log = logging.getLogger("muniment.server")


class Ready(msgspec.Struct, frozen=True, gc=False):
    """A finished response, and what it left of the client's rate."""

    response: Response
    verdict: Verdict


class ToolAnswers(Protocol):
    """A tool server whose ordinary calls need no waiting."""

    def call(self, lines: list[Header], body: bytes, caller: Caller) -> tuple[Reply, Verdict | None] | None:
        """Answer a call and charge the caller's rate, or return None to leave it to the ordinary path."""


class Waiting(Protocol):
    """A connection whose answer is looked up at the end of this turn of the event loop."""

    @property
    def waits_for(self) -> Detail | None:
        """Return the detail to look up; None when the client has gone."""

    def answer_late(self, answers: dict[bytes, Answer]) -> None:
        """Send the answer, or take the ordinary path when there is none."""

    def abort(self) -> None:
        """Close the connection without an answer."""


class FastPath:
    """
    What the fast path may answer.

    Args:
        limiter: the one that the ordinary path charges too.
    """

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self.rest: RestAnswers | None = None
        """REST answers; None until there is a registry to read."""
        self.tools: dict[bytes, ToolAnswers] = {}
        """Tool servers by request target."""
        self.waiting: list[Waiting] = []
        """Connections whose details are looked up together at the end of this turn of the event loop."""

    def get(
        self,
        target: bytes,
        accept_encoding: bytes,
        if_none_match: bytes,
        client: str,
        answer: Answer | None = None,
    ) -> Ready | None:
        """
        Answer a GET from memory. The client's rate is charged only when there is an answer.

        Args:
            target: path and query as in the request line.
            accept_encoding: the header's value, empty when absent.
            if_none_match: the same.
            client: whose rate to charge.
            answer: what :meth:`look_up` returned for *target*; not needed for what is cached.

        Returns:
            None when the ordinary path has to answer: nothing is ready, or the rate is used up.
        """
        if self.rest is None:
            return None
        response = self.rest.get(target, accept_encoding, if_none_match, answer)
        if response is None:
            return None
        if response.status == 304:
            return Ready(response, self._limiter.look(client))
        verdict = self._limiter.take(client)
        return Ready(response, verdict) if verdict.allowed else None

    def not_modified(self, target: bytes, accept_encoding: bytes, if_none_match: bytes, client: str) -> Ready | None:
        """Answer a conditional GET with 304 without charging the client's rate, also when that is used up."""
        if self.rest is None:
            return None
        response = self.rest.not_modified(target, accept_encoding, if_none_match)
        return None if response is None else Ready(response, self._limiter.look(client))

    def detail(self, target: bytes) -> Detail | None:
        """Return the detail that a GET of *target* asks for, if one look-up answers it."""
        return self.rest.detail(target) if self.rest is not None else None

    def look_up(self, details: Sequence[Detail]) -> dict[bytes, Answer]:
        """Look up *details* in one query; return the answers by target, without those that do not exist."""
        return self.rest.look_up(details) if self.rest is not None else {}

    def answer_waiting(self) -> None:
        """Look up in one query what the waiting connections ask for, and answer them in their order."""
        waiting, self.waiting = self.waiting, []
        asked = [(each, detail) for each in waiting if (detail := each.waits_for) is not None]
        try:
            answers = self.look_up([detail for _, detail in asked])
        except Exception:  # noqa: BLE001 - the ordinary path meets it again, logs it and answers it with its id
            answers = {}
        for each, _ in asked:
            try:
                each.answer_late(answers)
            except Exception:
                # As the event loop does when reading fails: this connection ends, the others are answered.
                log.exception("an answer that waited for the end of its turn failed")
                each.abort()
