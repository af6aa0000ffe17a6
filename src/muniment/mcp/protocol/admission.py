"""
Admission: who calls a tool server, and the limit that the request is charged to, before its body is read.

`BearerAuthentication` is that of the owner-scoped server, by bearer token.

Source: decisions, section 2, rate limit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from muniment.kernel import fairness
from muniment.kernel.actor import SCOPES, Actor
from muniment.kernel.asgi import Receive, Scope
from muniment.kernel.fairness import Fairness, Holder, Limiter
from muniment.kernel.problems import Forbidden, Problem, TooLarge, TooMany, Unauthorized
from muniment.mcp import web_pages
from muniment.mcp.declarations import Caller, Tool
from muniment.mcp.protocol.http import MAX_PUBLIC_BODY_BYTES, read_body

PROMPT_BYTES: Final = MAX_PUBLIC_BODY_BYTES
PROMPT_S: Final = 1.0


class Admitted(NamedTuple):
    """A caller, and what a tool call answers instead if the caller is over the limit."""

    caller: Caller
    refusal: TooMany | None


def _never(_: Scope) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Access:
    """
    Authentication of the owner-scoped server, and its limits.

    Args:
        authenticate: gets the ASGI scope; returns the actor, or raises Unauthorized with WWW-Authenticate.
        missing: gets a scope that the credential lacks; returns the error (403).
        is_known: gets the ASGI scope; returns whether this process has seen the credential valid.
        fairness: the limits; none by default.
    """

    authenticate: Callable[[Scope], Awaitable[Actor]]
    missing: Callable[[str], Problem]
    is_known: Callable[[Scope], bool] = _never
    fairness: Fairness = field(default_factory=Fairness)

    async def admit(self, scope: Scope, client: str) -> tuple[Actor, TooMany | None]:
        """
        Authenticate a request, and charge it to the account, or to the address without a valid credential.

        A credential that was valid before does not depend on its address, so that users of one hosted agent do not
        share a limit. Other requests of an address over its limit are refused before a query.

        Raises:
            Unauthorized: no valid credential.
            TooMany: too many requests of this address had none.
        """
        limits = self.fairness
        state = scope.setdefault("state", {})
        is_known = self.is_known(scope)
        if not is_known:
            self._charge_address(state, client)
        try:
            actor = await self.authenticate(scope)
        except Unauthorized:
            if is_known:
                self._charge_address(state, client)
            raise
        if not is_known:
            limits.unauthenticated.refund(client)
        account = str(actor.account_id)
        fairness.holder.set(Holder(client, account))
        verdict = state["verdict"] = limits.credentials.take(account)
        if verdict.allowed:
            return actor, None
        return actor, limits.refuse("credentials", verdict)

    def hold_to_writes(self, tool: Tool, caller: Caller) -> None:
        """Charge a call of a tool that may change something; raise TooMany over the account's limit."""
        if not tool.read_only:
            self.fairness.take("writes", str(caller.owner.account_id))

    def _charge_address(self, state: dict[str, object], client: str) -> None:
        verdict = state["verdict"] = self.fairness.unauthenticated.take(client)
        if not verdict.allowed:
            raise self.fairness.refuse("unauthenticated", verdict, state)


def charge_public(limiter: Limiter, scope: Scope, client: str) -> TooMany | None:
    """Charge a request to the public server; return the refusal if its address is over the limit."""
    state = scope.setdefault("state", {})
    verdict = state["verdict"] = limiter.take(client)
    return None if verdict.allowed else fairness.current().refuse("requests", verdict, state)


async def read_prompt_body(headers: dict[bytes, bytes], receive: Receive, refusal: TooMany) -> bytes | None:
    """
    Return the body of a request over the limit, which names the call to answer; None if the client disconnected.

    Raises:
        TooMany: *refusal*, if the body is not small or does not arrive at once. The rest of it is not read.
    """
    try:
        async with asyncio.timeout(PROMPT_S):
            return await read_body(headers, receive, PROMPT_BYTES)
    except (TooLarge, TimeoutError):
        raise refusal from None


_METADATA_PATH: Final = "/.well-known/oauth-protected-resource/api/manage/mcp"
_MAX_CLIENT_CHARACTERS: Final = 120


class TokenSource(Protocol):
    """Finds the actor of a token."""

    async def __call__(self, text: str, client: str) -> Actor | None:
        """Return the actor of a token, or None if it is invalid."""

    def is_known(self, text: str) -> bool:
        """Return whether this process has seen the token valid."""


class BearerAuthentication:
    """
    Authentication by the Authorization header only.

    Source: RFC 6750, sections 2 and 3; RFC 9728, section 5.1; decisions, section 4.
    """

    def __init__(self, tokens: TokenSource, base_url: str) -> None:
        self._tokens = tokens
        self._base_url = base_url
        self._metadata = f'resource_metadata="{base_url}{_METADATA_PATH}"'

    async def authenticate(self, scope: Scope) -> Actor:
        """Return the actor; raise Unauthorized for no token, an invalid one, or one in the URL."""
        text = self._token(scope)
        client = dict(scope["headers"]).get(b"user-agent", b"")
        actor = await self._tokens(text, _plain(client))
        if actor is None:
            raise self._unauthorized("The token is unknown, expired or revoked.", "invalid_token")
        return actor

    def is_known(self, scope: Scope) -> bool:
        """Return whether this process has seen the token valid. Needs no query."""
        try:
            return self._tokens.is_known(self._token(scope))
        except Unauthorized:
            return False

    def _token(self, scope: Scope) -> str:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if b"access_token=" in scope["query_string"] or b"mun_" in scope["query_string"]:
            raise self._unauthorized(
                "Tokens in the URL are not accepted, because logs and histories store URLs.", "invalid_request"
            )
        if not given:
            raise self._unauthorized("This server requires a bearer token.", "")
        kind, _, text = given[0].decode("latin-1").strip().partition(" ")
        if len(given) > 1 or kind.lower() != "bearer":
            raise self._unauthorized("The Authorization header must be one bearer token.", "invalid_token")
        return str(text.strip())

    def missing(self, scope: str) -> Problem:
        """Return the error for a missing scope (RFC 6750, section 3.1)."""
        return Forbidden(
            f"The credential does not permit {scope}.",
            f"Connect again and allow {scope}, or create a token with it at {self._base_url}{web_pages.TOKENS}.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}'},
        )

    def _unauthorized(self, message: str, error: str) -> Unauthorized:
        challenge = f'Bearer {self._metadata}, scope="{" ".join(SCOPES)}"'
        return Unauthorized(
            message,
            f"Sign in with OAuth, or create a token at {self._base_url}{web_pages.TOKENS} and send it as "
            "Authorization: Bearer.",
            headers={"WWW-Authenticate": f'{challenge}, error="{error}"' if error else challenge},
        )


def _plain(client: bytes) -> str:
    text = client[: 2 * _MAX_CLIENT_CHARACTERS].decode("utf-8", "replace")
    return "".join(character for character in text if character.isprintable())[:_MAX_CLIENT_CHARACTERS]
