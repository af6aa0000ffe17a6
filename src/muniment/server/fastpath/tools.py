"""Tool calls on the fast path: immediate responses of a public tool server, and refusals of the owners'."""

from muniment.kernel import fairness
from muniment.kernel.fairness import Verdict
from muniment.kernel.problems import Problem
from muniment.mcp.declarations import Caller
from muniment.mcp.protocol.http import Access, Headers, Reply, headers_by_name
from muniment.mcp.protocol.transport import ToolCall, ToolServer


class PublicToolAnswers:
    """Immediate responses of the public tool *server*, equal to those of its ordinary path."""

    surface = "mcp"

    def __init__(self, server: ToolServer) -> None:
        self._server = server

    def call(self, lines: Headers, body: bytes, caller: Caller) -> tuple[Reply, Verdict | None] | None:
        """Answer an ordinary call, or return None. The caller's rate is charged only for a response."""
        server = self._server
        headers = headers_by_name(lines)
        if len(body) > server.max_body_bytes:
            return None
        try:
            server.admit(headers)
        except Problem:
            return None
        asked = server.understood(headers, body, caller)
        limiter = server.limiter
        verdict = None
        if limiter is not None:
            verdict = limiter.refusal(caller.client)
        if verdict is not None:
            problem = fairness.current().refuse("requests", verdict)
            return server.refused(asked, problem, caller), verdict
        if not isinstance(asked, Reply) and not (isinstance(asked, ToolCall) and asked.bound.tool.instant):
            return None
        if limiter is not None:
            verdict = limiter.take(caller.client)
        reply = asked if isinstance(asked, Reply) else server.call_now(asked, caller)
        if reply is not None:
            return reply, verdict
        if limiter is not None:
            limiter.refund(caller.client)  # the ordinary path charges it
        return None


class OwnerRefusals:
    """Refusals of the owner tool *server*: of addresses that ask too often without a valid credential."""

    surface = "manage_mcp"

    def __init__(self, server: ToolServer, access: Access) -> None:
        self._server, self._access = server, access

    def call(self, lines: Headers, _body: bytes, caller: Caller) -> tuple[Reply, Verdict | None] | None:
        """Refuse a call, or return None."""
        limits = self._access.fairness
        verdict = limits.unauthenticated.refusal(caller.client)
        if verdict is None or self._access.is_known({"headers": lines, "query_string": b""}):
            return None
        headers = headers_by_name(lines)
        try:
            self._server.gate.admit(headers.get(b"host", b""), headers.get(b"origin", b""))
        except Problem:
            return None
        return self._server.error_reply(limits.refuse("unauthenticated", verdict)), verdict
