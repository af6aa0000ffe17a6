"""
Confirmation of an application to a program: the first call shows what it would do, the second acts.

Every other call acts at once: it can be undone, or has shown its price before. A client that declares elicitation
(2026-07-28) is asked to ask its user; any other gets a token, and the same call with it acts. Both carry the same
token. It proves that the caller was shown what follows, not that a person agreed. It is signed, bound to the account,
the credential and the arguments, and to what the call changes, so that it is good once; it holds for ten minutes.

Source: MCP specification 2026-07-28, input required; decision 58.
"""

import hashlib
from datetime import timedelta
from typing import Final

import msgspec
from django.core import signing

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.mcp.declarations import Arguments, Caller, InputRequired

CONFIRM: Final[JSONObject] = {"type": "string", "maxLength": 400}
VALID_S: Final = 600
_SALT: Final = "muniment.mcp.confirmation"
_OTHERS: Final = frozenset({"confirm", "dryRun"})
"""Arguments that do not change what a call does."""


class Unconfirmed(Exception):  # noqa: N818 - an answer, not a fault
    """
    The call may not act yet, or its user declined.

    Args:
        question: the member `confirmation` of the answer.
    """

    def __init__(self, question: JSONObject) -> None:
        super().__init__(question["message"])
        self.question = question


def question(message: str, caller: Caller, arguments: Arguments, *, bound: object, **further: str) -> JSONObject:
    """
    Return what the call asks: the member `confirmation` of an answer.

    Args:
        message: what the call will do.
        bound: values that the call changes, so that its token is good once, and those that it depends on.
        further: the same as members.
    """
    if caller.elicits:  # its user is asked by the call itself, and no token replaces the answer
        return {"message": message, **further}
    return {
        "reason": "confirmation_required",
        "message": message,
        "hint": "Show this to the user. If they agree, repeat the call with confirm.",
        "confirm": signing.dumps(_digest(caller, arguments, bound), salt=_SALT),
        "expiresAt": timestamp(now() + timedelta(seconds=VALID_S)),
        **further,
    }


def require(asked: JSONObject, caller: Caller, arguments: Arguments, *, bound: object) -> None:
    """
    Return if the user, or a token in the arguments, has agreed to the call.

    The answer of a user counts only for what was shown: a changed call is asked about again.

    Args:
        asked: what :func:`question` returned.
        bound: as for :func:`question`.

    Raises:
        Unconfirmed: the call must be repeated with the token, or its user declined.
        InputRequired: the client must ask its user.
    """
    digest = _digest(caller, arguments, bound)
    if not caller.elicits:
        if not _holds(arguments.get("confirm", ""), digest):
            raise Unconfirmed(asked)
        return
    if not caller.answer or not _holds(caller.state, digest):
        raise InputRequired(asked["message"], signing.dumps(digest, salt=_SALT))
    if caller.answer != "accept":
        message, hint = "The user did not agree. Nothing was submitted.", "Do not repeat the call unless they ask."
        raise Unconfirmed({"reason": "declined", "message": message, "hint": hint})


def _digest(caller: Caller, arguments: Arguments, bound: object) -> str:
    actor = caller.owner
    rest = {name: value for name, value in arguments.items() if name not in _OTHERS}
    meant = [actor.account_id, actor.credential_id, rest, bound]
    return hashlib.sha256(msgspec.json.encode(meant, order="deterministic")).hexdigest()[:32]


def _holds(token: str, digest: str) -> bool:
    try:
        return bool(signing.loads(token, salt=_SALT, max_age=VALID_S) == digest)
    except signing.BadSignature:
        return False
