"""
Confirmation of a call that gives something away: the first is refused with a token, the same call with it acts.

The token proves that the caller was shown what follows, not that a person agreed. It is signed, bound to the account,
the credential, the tool and its arguments, and to what the answer depends on, and holds for ten minutes. An operation
that can be done once makes it good once.
"""

import hashlib
from typing import Final

import msgspec
from django.core import signing

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict
from muniment.mcp.declarations import Arguments, Caller

ARGUMENT: Final[dict[str, JSONObject]] = {
    "confirm": {"type": "string", "maxLength": 400, "description": "the token, once the user agrees"}
}
VALID_S: Final = 600
_SALT: Final = "muniment.mcp.confirmation"


class ConfirmationRequired(Conflict):
    """The call must be repeated with the token; the answer says what it will do."""

    def __init__(self, message: str, token: str, shown: JSONObject) -> None:
        super().__init__(message, "Show this to the user. If they agree, repeat the call with confirm.")
        self.token, self.shown = token, shown

    def to_wire(self) -> JSONObject:
        members = {"reason": "confirmation_required", "confirm": self.token, **self.shown}
        return {"error": {**super().to_wire()["error"], **members}}


def require(
    caller: Caller, tool: str, arguments: Arguments, message: str, *, once: object = None, **shown: str | int
) -> None:
    """
    Raise ConfirmationRequired unless *arguments* have the token of the same call.

    Args:
        message: what the call will do.
        once: a value that the call changes, so that its token does not hold for another.
        shown: what the answer depends on, such as its price: if it has changed since, a token no longer holds.
    """
    rest = {name: value for name, value in arguments.items() if name != "confirm"}
    actor = caller.owner
    meant = msgspec.json.encode([actor.account_id, actor.credential, tool, rest, once, shown], order="deterministic")
    digest = hashlib.sha256(meant).hexdigest()[:32]
    try:
        if signing.loads(arguments.get("confirm", ""), salt=_SALT, max_age=VALID_S) == digest:
            return
    except signing.BadSignature:
        pass
    raise ConfirmationRequired(message, signing.dumps(digest, salt=_SALT), dict(shown))
