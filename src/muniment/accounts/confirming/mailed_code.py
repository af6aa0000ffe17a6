"""Confirm an identity by a mailed code, for accounts that have neither a password nor a second factor."""

from typing import Final, Self

from allauth.account import app_settings
from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.code_verification import AbstractCodeVerificationProcess
from allauth.account.internal.flows.login import record_authentication
from allauth.account.signals import login_code_rejected
from allauth.core import ratelimit
from django.http import HttpRequest

from muniment.accounts.models import Account

_KEPT: Final = "step_up_code"


class MailedCode(AbstractCodeVerificationProcess):  # type: ignore[misc]  # allauth ships no types
    """
    A code that was mailed to the session's account; it expires and ends as the codes of a sign-in do.

    Only a session that still is of the same account can use it, because it is kept in the session.
    """

    def __init__(self, request: HttpRequest, account: Account, state: dict[str, object]) -> None:
        self.request = request
        self.account = account
        super().__init__(
            max_attempts=app_settings.LOGIN_BY_CODE_MAX_ATTEMPTS,
            timeout=app_settings.LOGIN_BY_CODE_TIMEOUT,
            state=state,
            user=account,
        )

    @classmethod
    def begin(cls, request: HttpRequest, account: Account) -> Self | None:
        """Mail a new code to the account's address; return None if too many were requested."""
        # The limit is shared with codes for signing in: the same mailbox receives both.
        address = account.email
        if not ratelimit.consume(request, action="request_login_code", key=address.lower()):
            return None
        made = cls(request, account, cls.initial_state(account, email=address))
        made.send()
        made.persist()
        return made

    @classmethod
    def resume(cls, request: HttpRequest, account: Account) -> Self | None:
        """Return the code that waits in the session; None if there is none for the account, or it expired."""
        state = request.session.get(_KEPT)
        if not isinstance(state, dict) or state.get("user_id") != str(account.pk):
            return None
        found: Self | None = cls(request, account, state).abort_if_invalid()
        return found

    def send(self) -> None:
        adapter = get_adapter()
        self.state["code"] = adapter.generate_login_code()
        adapter.send_mail("account/email/step_up_code", self.account.email, {"code": self.code})

    def persist(self) -> None:
        self.request.session[_KEPT] = self.state

    def abort(self) -> None:
        self.request.session.pop(_KEPT, None)

    def record_invalid_attempt(self) -> bool:
        """Count a wrong code, as a wrong code of a sign-in is; return whether there are attempts left."""
        has_attempts_left: bool = super().record_invalid_attempt()
        login_code_rejected.send(
            sender=MailedCode, request=self.request, user=self.account, last_attempt=not has_attempts_left
        )
        return has_attempts_left

    def finish(self) -> None:
        """Record that the account confirmed its identity."""
        self.abort()
        record_authentication(self.request, self.account, "code", email=self.account.email, reauthenticated=True)
