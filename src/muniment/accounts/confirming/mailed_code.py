"""Confirm an identity by a mailed code, for accounts that have neither a password nor a second factor."""

import time
from typing import Final, Self

from allauth.account import app_settings
from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import record_authentication
from allauth.account.signals import login_code_rejected
from allauth.core import ratelimit
from django.http import HttpRequest

from muniment.accounts.models import Account

_KEPT: Final = "step_up_code"


class MailedCode:
    """
    A code that was mailed to the session's account; it expires and ends as the codes of a sign-in do.

    Only a session that still is of the same account can use it, because it is kept in the session.
    """

    def __init__(self, request: HttpRequest, account: Account, *, code: str, sent_at: float, wrong: int = 0) -> None:
        self.request = request
        self.account = account
        self.code = code
        self._sent_at = sent_at
        self._wrong = wrong

    @classmethod
    def begin(cls, request: HttpRequest, account: Account) -> Self | None:
        """Mail a new code to the account's address; return None if too many were requested."""
        # The limit is shared with codes for signing in: the same mailbox receives both.
        address = account.email
        if not ratelimit.consume(request, action="request_login_code", key=address.lower()):
            return None
        adapter = get_adapter()
        made = cls(request, account, code=adapter.generate_login_code(), sent_at=time.time())
        adapter.send_mail("account/email/step_up_code", address, {"code": made.code})
        made._keep()
        return made

    @classmethod
    def resume(cls, request: HttpRequest, account: Account) -> Self | None:
        """Return the code that waits in the session; None if there is none for the account, or it expired."""
        state = request.session.get(_KEPT)
        if not isinstance(state, dict) or state.get("account") != str(account.pk):
            return None
        waiting = cls(request, account, code=state["code"], sent_at=state["at"], wrong=state["wrong"])
        if time.time() - state["at"] > app_settings.LOGIN_BY_CODE_TIMEOUT:
            waiting._discard()
            return None
        return waiting

    def record_invalid_attempt(self) -> bool:
        """Count a wrong code, as a wrong code of a sign-in is; return whether there are attempts left."""
        self._wrong += 1
        has_attempts_left = self._wrong < app_settings.LOGIN_BY_CODE_MAX_ATTEMPTS
        if has_attempts_left:
            self._keep()
        else:
            self._discard()
        login_code_rejected.send(
            sender=MailedCode, request=self.request, user=self.account, last_attempt=not has_attempts_left
        )
        return bool(has_attempts_left)

    def finish(self) -> None:
        """Record that the account confirmed its identity."""
        self._discard()
        record_authentication(self.request, self.account, "code", email=self.account.email, reauthenticated=True)

    def _keep(self) -> None:
        self.request.session[_KEPT] = {
            "account": str(self.account.pk),
            "code": self.code,
            "at": self._sent_at,
            "wrong": self._wrong,
        }

    def _discard(self) -> None:
        self.request.session.pop(_KEPT, None)
