"""Tool calls on the fast path: immediate responses of a public tool server."""

from muniment.kernel.problems import Problem
from muniment.kernel.rate import Verdict
from muniment.mcp.declarations import Caller
from muniment.mcp.protocol.http import Headers, Reply, headers_by_name
from muniment.mcp.protocol.transport import ToolCall, ToolServer


class PublicToolAnswers:
    """Immediate responses of the public tool *server*, equal to those of its ordinary path."""

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
        if not isinstance(asked, Reply) and not (isinstance(asked, ToolCall) and asked.bound.tool.instant):
            return None
        verdict = None
        if server.limiter is not None:
            verdict = server.limiter.take(caller.client)
            if not verdict.allowed:
                return None
        reply = asked if isinstance(asked, Reply) else server.call_now(asked, caller)
        if reply is None and server.limiter is not None:
            server.limiter.refund(caller.client)  # the ordinary path charges it
        return None if reply is None else (reply, verdict)
