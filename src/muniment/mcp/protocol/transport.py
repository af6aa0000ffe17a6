"""
The ASGI application of a tool server: stateless, JSON responses, both protocol generations.

Common requests are answered directly: msgspec decodes the body, the tool is called, bytes are sent. The SDK gets all
other requests unchanged, so its behavior defines the protocol's details. It takes 0.9 s and 28 MB to import, so it is
imported on first use.

Source: decisions, section 3; MCP specification 2026-07-28 and 2025-11-25, Streamable HTTP.
"""

import asyncio
import gc
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.kernel import tracing
from muniment.kernel.asgi import Message, Receive, Scope, Send
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Forbidden, MethodNotAllowed, Problem
from muniment.kernel.rate import Limiter
from muniment.mcp import web_pages
from muniment.mcp.arguments import Check, compile_arguments
from muniment.mcp.declarations import (
    INPUT,
    Caller,
    Declarations,
    InputRequired,
    Marked,
    NotAtOnce,
    Report,
    Tool,
)
from muniment.mcp.protocol import long_calls, lookups, messages
from muniment.mcp.protocol.admission import Access, Admitted, charge_public, read_prompt_body
from muniment.mcp.protocol.content_types import accepts_events, check_types
from muniment.mcp.protocol.finished import FinishedResults
from muniment.mcp.protocol.http import (
    ALLOW,
    MAX_BODY_BYTES,
    MAX_PUBLIC_BODY_BYTES,
    PREFLIGHT,
    Reply,
    deliver,
    error_reply,
    headers_by_name,
    read_body,
)
from muniment.mcp.protocol.long_calls import EventStream
from muniment.mcp.protocol.lookups import Lookup, encoded
from muniment.mcp.protocol.origin import OriginPolicy
from muniment.mcp.protocol.replies import ACCEPTED, BATCH, check_rate, input_required, result, tool_result
from muniment.mcp.protocol.sdk_exchange import SdkResponseSender, called_tool, normalize_headers
from muniment.store.database.faults import unexpected

if TYPE_CHECKING:
    from muniment.mcp.protocol.sdk_fallback import SdkFallback

ADMITTED = "muniment.mcp.admitted"
"""The key of the admitted caller in the scope's state, for the SDK's handlers."""

log = logging.getLogger("muniment.mcp")
_LEGACY_VERSIONS = frozenset(version.encode() for version in messages.LEGACY)
_MODERN_VERSION = messages.MODERN.encode()


@dataclass(frozen=True, slots=True)
class Bound:
    """A tool with the compiled check of its arguments."""

    tool: Tool
    check: Check


class ToolCall(NamedTuple):
    """A common tool call, with the end of a modern result; None for a legacy one."""

    request_id: bytes
    bound: Bound
    arguments: JSONObject | None
    end: bytes | None
    progress_token: int | str | None = None
    params: messages.ModernCallParams | None = None
    """Of a client that can ask its user."""

    @property
    def is_long(self) -> bool:
        return self.bound.tool.waits and bool(self.arguments and self.arguments.get("waitSeconds"))

    def by(self, caller: Caller, report: Report | None = None) -> Caller:
        """Return the caller with what the call says of questions and progress."""
        asked = self.params
        if asked is None:
            return caller if report is None else replace(caller, report=report)
        answer, state = asked.answer(INPUT), asked.state or ""
        return replace(caller, elicits=asked.elicits, answer=answer, state=state, report=report)


Asked = ToolCall | Lookup | Reply | None


class ToolServer:
    """
    A tool server.

    Args:
        limiter: limits requests by client; None for no limit.
        access: None for a public server, whose bodies are limited to 64 KB.
        reference: creates the SDK's server; the product's own by default.
    """

    def __init__(
        self,
        offer: Declarations,
        *,
        gate: OriginPolicy,
        limiter: Limiter | None = None,
        access: Access | None = None,
        reference: "Callable[[ToolServer], SdkFallback] | None" = None,
    ) -> None:
        self.offer = offer
        self.gate = gate
        self.limiter = limiter
        self.access = access
        self.max_body_bytes = MAX_PUBLIC_BODY_BYTES if access is None else MAX_BODY_BYTES
        self.tools = {
            tool.name: Bound(tool, compile_arguments(tool.input_schema, later=tool.validated_later, keys=tool.keys))
            for tool in offer.tools
        }
        self._build_reference = reference
        self._reference: asyncio.Future[SdkFallback] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._finished = FinishedResults(offer)
        self._own_meta = self._finished.own_meta
        self._lookups = lookups.methods(offer)

    # ------------------------------------------------------------------ life

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the server for the application's lifespan, which mounted applications do not receive."""
        try:
            yield
        finally:
            self._stopping.set()
            if self._keeper is not None:
                await self._keeper

    @staticmethod
    def warm() -> None:
        """Import the SDK, in a background thread. It stays, so no later garbage collection looks through it."""
        import muniment.mcp.protocol.sdk_fallback  # noqa: F401 - imported for its side effect

        gc.freeze()

    async def reference(self) -> "SdkFallback":
        """Return the SDK's server, starting it on first use."""
        if self._reference is None:
            self._reference = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep_reference(self._reference))
        return await asyncio.shield(self._reference)

    async def _keep_reference(self, ready: "asyncio.Future[SdkFallback]") -> None:
        """Import and run the SDK's server in one task, because its task group must open and close in the same task."""
        try:
            await asyncio.to_thread(self.warm)
            from muniment.mcp.protocol.sdk_fallback import SdkFallback

            reference = (self._build_reference or SdkFallback)(self)
            async with reference.manager.run(), reference.streams.run():
                ready.set_result(reference)
                await self._stopping.wait()
        except Exception as error:
            if ready.done():
                raise
            log.exception("the MCP SDK of %s did not start", self.offer.name)
            ready.set_exception(error)

    # ------------------------------------------------------------------ requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = await self._answer(scope, receive, send)
        except Problem as problem:
            reply = error_reply(problem)
        except Exception as error:
            request_id = _state(scope, "request_id")
            log.exception("%s failed (request %s)", self.offer.name, request_id)
            reply = error_reply(unexpected(error, request_id))
        if reply is not None:
            await deliver(reply, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply | None:
        """Return the reply; None if the SDK has sent it or the client disconnected."""
        headers, is_ambiguous = headers_by_name(scope["headers"])
        self.gate.admit(headers.get(b"host", b""), headers.get(b"origin", b""))
        method = scope["method"]
        if method == "OPTIONS":
            return Reply(204, PREFLIGHT, b"")
        admitted = await self._admit(scope)
        if method != "POST":
            check_rate(admitted.refusal)
            refused = MethodNotAllowed(method, ALLOW)
            refused.hint = "This is an MCP server, which uses POST; see /.well-known/mcp.json."
            raise refused
        check_types(headers)
        if admitted.refusal is None:
            body = await read_body(headers, receive, self.max_body_bytes)
        else:
            body = await read_prompt_body(headers, receive, admitted.refusal)
        if body is None or body[:1] == b"[" or body.lstrip()[:1] == b"[":
            return None if body is None else BATCH
        asked = None if is_ambiguous else self.understood(headers, body, admitted.caller)
        if asked is None:
            await self._forward_to_sdk(scope, receive, send, body=body, admitted=admitted)
            return None
        if not isinstance(asked, ToolCall):
            check_rate(admitted.refusal)
            return asked if isinstance(asked, Reply) else lookups.answer(asked, self.offer, admitted.caller)
        if not asked.is_long:
            return await self._answer_call(asked, admitted)
        stream = EventStream(send, asked.progress_token) if accepts_events(headers) else None
        return await long_calls.answer(partial(self._answer_call, asked, admitted), stream, receive)

    async def _admit(self, scope: Scope) -> Admitted:
        """Authenticate the caller, and charge the limit that applies."""
        client, actor, refusal = _state(scope, "client"), None, None
        if self.access is not None:
            actor, refusal = await self.access.admit(scope, client)
        elif self.limiter is not None:
            refusal = charge_public(self.limiter, scope, client)
        return Admitted(Caller(actor, client, _state(scope, "request_id")), refusal)

    async def _answer_call(self, asked: ToolCall, admitted: Admitted, report: Report | None = None) -> Reply:
        """Answer a common tool call."""
        caller, refusal = admitted
        if refusal is None:
            self.permit(asked.bound.tool, caller)
        try:
            answer, failed = await self.call(asked.bound, asked.arguments, Admitted(asked.by(caller, report), refusal))
        except InputRequired as question:
            return result(asked.request_id, input_required(question, self._own_meta))
        return result(asked.request_id, *tool_result(answer, asked.end, failed=failed))

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Raise a problem for a Host, an Origin or a content type that is not allowed."""
        self.gate.admit(headers.get(b"host", b""), headers.get(b"origin", b""))
        check_types(headers)

    def call_now(self, asked: "ToolCall", caller: Caller) -> Reply | None:
        """Call an instant tool for a caller who cannot wait, and return the reply; None if it takes long."""
        try:
            found: Any = asked.bound.tool.handler(asked.bound.check(asked.arguments or {}), caller)
            answer, failed = encoded(found), False
        except NotAtOnce:
            return None
        except Exception as error:  # noqa: BLE001 - handled by type there
            answer, failed = self._failure(error, asked.bound, caller), True
        return result(asked.request_id, *tool_result(answer, asked.end, failed=failed))

    def understood(self, headers: dict[bytes, bytes], body: bytes, caller: Caller) -> Asked:
        """Decode a common request: a tool call, a look-up, or a constant reply; None if it is for the SDK."""
        version = headers.get(b"mcp-protocol-version")
        try:
            if version == _MODERN_VERSION:
                return self._understood_modern(headers, messages.decode_modern(body), caller)
            if version is None or version in _LEGACY_VERSIONS:
                return self._understood_legacy(messages.decode_legacy(body), caller)
        except messages.DECODE_ERRORS:
            pass
        return None

    def _understood_modern(self, headers: dict[bytes, bytes], message: messages.Modern, caller: Caller) -> Asked:
        if isinstance(message, messages.Initialized | messages.Cancelled):
            return ACCEPTED
        request_id = messages.plain_id(message.id)
        method = headers.get(b"mcp-method")
        if request_id is None or message.params.meta.version != messages.MODERN or method != message.method:
            return None
        if isinstance(message, messages.ModernCall):
            return self._called(message.params, request_id, headers.get(b"mcp-name"))
        if isinstance(message, messages.MODERN_OFFERED):
            found = self._offered(message, request_id, caller, self._own_meta)
            is_named = not isinstance(found, Lookup) or found.is_named(headers.get(b"mcp-name"))
            return found if is_named else None
        return result(request_id, self._finished.discover)

    def _called(self, params: messages.ModernCallParams, request_id: bytes, header: bytes | None) -> Asked:
        """Return a modern call of a tool; None if the header has another name, or one that is not ASCII, in base64."""
        if header != params.name.encode():
            return None
        bound = self.tools.get(params.name)
        if bound is None:
            return Lookup.of_unknown_tool(params.name, request_id, self._own_meta)
        can_ask = params.meta.capabilities.elicitation is not None
        token, asked = params.meta.token, params if can_ask else None
        return ToolCall(request_id, bound, params.arguments, self._own_meta, token, asked)

    def _understood_legacy(self, message: messages.Legacy, caller: Caller) -> Asked:
        if isinstance(message, messages.Initialized | messages.Cancelled):
            return ACCEPTED
        request_id = messages.plain_id(message.id)
        if request_id is None:
            return None
        if isinstance(message, messages.LegacyCall):
            name, meta = message.params.name, message.params.meta
            bound, token = self.tools.get(name), meta.token if meta else None
            call = ToolCall(request_id, bound, message.params.arguments, None, token) if bound else None
            return call or Lookup.of_unknown_tool(name, request_id, None)
        if isinstance(message, messages.LEGACY_OFFERED):
            return self._offered(message, request_id, caller, None)
        if isinstance(message, messages.Initialize):
            return result(request_id, self._finished.initialize(message.params.protocol_version))
        return result(request_id, b"{}}")

    def _offered(
        self,
        message: messages.ModernList | messages.LegacyList | messages.ModernLookup | messages.LegacyLookup,
        request_id: bytes,
        caller: Caller,
        end: bytes | None,
    ) -> Lookup | Reply | None:
        """Return the reply to a list, or a look-up; None if the server has nothing of its kind, as the SDK answers."""
        if not isinstance(message, messages.LISTS):
            there = message.method in self._lookups
            return Lookup(request_id, message.method, message.params, end) if there else None
        found = self._finished.listing(message.method, caller.scopes)
        if found is None:
            return None
        modern, legacy = found
        return result(request_id, legacy if end is None else modern)

    # ------------------------------------------------------------------ shared with the SDK

    def permit(self, tool: Tool, caller: Caller) -> None:
        """Raise an error if the caller's credential lacks the tool's scope (403, naming the scope)."""
        if tool.scope is not None and tool.scope not in caller.scopes:
            raise self.access.missing(tool.scope) if self.access else Forbidden("This tool requires a credential.", "")

    def visible(self, caller: Caller) -> list[Tool]:
        """Return the tools that the caller may use, in order."""
        return self._finished.visible(caller.scopes)

    async def call(self, bound: Bound, arguments: JSONObject | None, admitted: Admitted) -> tuple[Marked, bool]:
        """Call a tool; return the answer and whether it failed, or raise InputRequired."""
        caller = admitted.caller
        try:
            check_rate(admitted.refusal)
            if self.access is not None:
                self.access.hold_to_writes(bound.tool, caller)
            with tracing.span(f"tool {bound.tool.name}", {"gen_ai.tool.name": bound.tool.name}):
                answer = bound.tool.handler(bound.check(arguments or {}), caller)
                if inspect.isawaitable(answer):
                    answer = await answer
            return encoded(answer), False
        except InputRequired:
            raise
        except Exception as error:  # noqa: BLE001 - handled by type there
            return self._failure(error, bound, caller), True

    def _failure(self, error: Exception, bound: Bound, caller: Caller) -> Marked:
        if isinstance(error, Problem):
            told = error.to_wire()
            return encoded({**told, "error": web_pages.with_addresses(told["error"], self.offer.website_url)})
        log.error("tool %s failed (request %s)", bound.tool.name, caller.request_id, exc_info=error)
        return encoded(unexpected(error, caller.request_id).to_wire())

    # ------------------------------------------------------------------ the SDK

    async def _forward_to_sdk(
        self, scope: Scope, receive: Receive, send: Send, *, body: bytes, admitted: Admitted
    ) -> None:
        called = self.tools.get(called_tool(body) or "")
        if called is None:
            check_rate(admitted.refusal)
        elif admitted.refusal is None:
            self.permit(called.tool, admitted.caller)
        reference = await self.reference()
        given, _ = headers_by_name(scope["headers"])
        replay = {
            **scope,
            "headers": normalize_headers(scope["headers"]),
            "state": {**scope.get("state", {}), ADMITTED: admitted},
        }
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        is_long = called is not None and called.tool.waits and b'"progressToken"' in body and accepts_events(given)
        manager = reference.streams if is_long else reference.manager
        await manager.handle_request(replay, again, SdkResponseSender(send))


def _state(scope: Scope, name: str) -> str:
    state = scope.get("state")
    return str(state.get(name, "")) if state else ""
