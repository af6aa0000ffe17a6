"""
Admission: who calls a tool server, and the limit that the request is charged to, before its body is read.

Source: decisions, section 2, rate limit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from muniment.kernel import fairness
from muniment.kernel.actor import Actor
from muniment.kernel.asgi import Receive, Scope
from muniment.kernel.fairness import Fairness, Holder
from muniment.kernel.problems import Problem, TooLarge, TooMany, Unauthorized
from muniment.kernel.rate import Limiter
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
