"""
Confirmation of a call that spends, removes, deletes or gives something away: the first asks, the second acts.

A client that declares elicitation (2026-07-28) is asked to ask its user; any other call is refused with a token, and
the same call with it acts. Both carry the same token. It proves that the caller was shown what follows, not that a
person agreed. It is signed, bound to the account, the credential, the tool and its arguments, and to what the call
changes, such as the listing's version, so that it is good once; it holds for ten minutes.

Source: MCP specification 2026-07-28, input required; decision 58.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import msgspec
from django.core import signing
from django.db import transaction

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict
from muniment.kernel.wire import timestamp
from muniment.mcp.declarations import Arguments, Caller, InputRequired

CONFIRM: Final[JSONObject] = {"type": "string", "maxLength": 400}
ARGUMENTS: Final[dict[str, JSONObject]] = {"confirm": CONFIRM, "dryRun": {"type": "boolean"}}
"""The arguments of a tool that asks; the server's instructions explain them."""
VALID_S: Final = 600
_SALT: Final = "muniment.mcp.confirmation"
_OTHERS: Final = frozenset({"confirm", "dryRun", "waitSeconds", "expectedVersion"})
"""Arguments that do not change what a call does."""


class ConfirmationRequired(Conflict):
    """The call must be repeated with the token; the answer says what it will do."""

    def __init__(self, shown: JSONObject) -> None:
        hint = "Show this to the user. If they agree, repeat the call with confirm."
        super().__init__(shown["message"], hint)
        self.shown = shown

    def to_wire(self) -> JSONObject:
        return {"error": {**self.shown, **super().to_wire()["error"], "reason": "confirmation_required"}}


class Declined(Conflict):
    """The user was asked and did not agree."""

    def to_wire(self) -> JSONObject:
        return {"error": {**super().to_wire()["error"], "reason": "declined"}}


class Confirmation:
    """
    What one call asks before it acts.

    Attributes:
        is_dry: the call only shows what it would do, and asks nothing.
    """

    def __init__(self, caller: Caller, tool: str, arguments: Arguments) -> None:
        self.is_dry = bool(arguments.get("dryRun", False))
        self._caller, self._tool, self._arguments = caller, tool, arguments
        self._shown: JSONObject | None = None

    def ask(self, message: str, *, bound: object, is_application: bool = False, **shown: Any) -> None:
        """
        Return if the call may act, or if it is dry.

        Args:
            message: what the call will do.
            bound: values that the call changes, so that its token is good once, and those that it depends on.
            is_application: it gives a report to another company; credentials from before ask before that alone.
            shown: the same as members, such as the price.

        Raises:
            ConfirmationRequired: the call must be repeated with the token.
            InputRequired: the client must ask its user.
            Declined: its user declined, or gave no answer.
        """
        actor = self._caller.owner
        if actor.asks == "none" or (actor.asks == "applications" and not is_application):
            return
        token = self._digest(bound)
        if not self.is_dry and self._is_confirmed(token):
            return
        if self._caller.elicits:
            if not self.is_dry:
                raise InputRequired(message, signing.dumps(token, salt=_SALT))
            self._shown = {"message": message, **shown}
            return
        expires_at = timestamp(now() + timedelta(seconds=VALID_S))
        confirm = signing.dumps(token, salt=_SALT)
        self._shown = {"message": message, "confirm": confirm, "expiresAt": expires_at, **shown}
        if not self.is_dry:
            raise ConfirmationRequired(self._shown)

    def marks(self) -> JSONObject:
        """Return the members that mark a dry run's answer, with what the call itself would ask."""
        if not self.is_dry:
            return {}
        return {"dryRun": True, **({"confirmation": self._shown} if self._shown else {})}

    def without(self, shown: JSONObject, *names: str) -> JSONObject:
        """Return the members of an answer; those of a dry run lack *names*, which only the call itself creates."""
        return {name: value for name, value in shown.items() if name not in names} if self.is_dry else shown

    def _is_confirmed(self, digest: str) -> bool:
        """
        Return whether the user, or a token in the arguments, has agreed to the call.

        The answer of a user counts only for what was shown: a changed call or listing is asked about again.
        """
        caller = self._caller
        if not caller.elicits:
            return _holds(self._arguments.get("confirm", ""), digest)
        if not caller.answer or not _holds(caller.state, digest):
            return False
        if caller.answer != "accept":
            raise Declined("The user did not agree. Nothing was changed.", "Do not repeat the call unless they ask.")
        return True

    def _digest(self, bound: object) -> str:
        actor = self._caller.owner
        rest = {name: value for name, value in self._arguments.items() if name not in _OTHERS}
        meant = [actor.account_id, actor.credential_id, self._tool, rest, bound]
        return hashlib.sha256(msgspec.json.encode(meant, order="deterministic")).hexdigest()[:32]


def _holds(token: str, digest: str) -> bool:
    try:
        return bool(signing.loads(token, salt=_SALT, max_age=VALID_S) == digest)
    except signing.BadSignature:
        return False


@contextmanager
def rehearsal(question: Confirmation) -> Iterator[None]:
    """Undo what the block does if the call is dry: its answer is that of the real call, with every check."""
    if not question.is_dry:
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
