"""
Step-up authentication: what opens or gives away an account needs a sign-in or a confirmation within 15 minutes.

allauth keeps in the session how and when its account authenticated, and shows the pages that confirm; a sign-in counts
as a confirmation. An account with neither a password nor a second factor confirms by a mailed code. At an identity
provider, the moment counts that the provider states in the ID token (``auth_time``): it may answer from a session
of its own that is days old, without asking the person.

Source: decision 38; OpenID Connect Core 1.0, sections 2 and 3.1.2.1.
"""

import time
from typing import Any, Final, Self

from allauth.account import app_settings
from allauth.account.adapter import get_adapter
from allauth.account.authentication import AUTHENTICATION_METHODS_SESSION_KEY, get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.account.signals import authentication_step_completed, login_code_rejected
from allauth.core import ratelimit
from allauth.usersessions.models import UserSession
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest

from muniment.accounts.models import Account
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping
from muniment.kernel.problems import Forbidden

VALID_S: Final = 15 * 60
SKEW_S: Final = 60
"""Tolerated difference between the clocks of nodes and of an identity provider."""
_LATEST_S: Final = 1 << 36  # beyond it, there is no date
_METHODS: Final = {"socialaccount": "single sign-on"}
CLAIMS: Final = "_identity_claims"
"""Attribute of a request that returns from an identity provider: the claims of the ID token."""


def is_confirmed(request: HttpRequest) -> bool:
    """Return whether the session's account signed in or confirmed its identity within 15 minutes."""
    user = request.user
    if not isinstance(user, Account):
        return False
    moments = (_moment(record) for record in get_authentication_records(request, user))
    return any(is_recent(moment) for moment in moments)


def require_confirmed(actor: Actor) -> None:
    """Raise Forbidden for a browser session that has to confirm its identity first."""
    if not actor.confirmed:
        raise Forbidden("Confirm that it's you first.", "Open /accounts/reauthenticate/, then try again.")


def is_recent(moment: object) -> bool:
    """Return whether *moment*, in seconds since the epoch, is within 15 minutes, and not in the future."""
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        return False
    return -SKEW_S <= time.time() - moment < VALID_S


def stated_moment(claims: JSONMapping) -> float | None:
    """
    Return when a provider's ID token says that the person authenticated; None if it does not say.

    A provider whose clock is slow is forgiven within the skew.
    """
    stated, at = claims.get("auth_time"), time.time()
    if isinstance(stated, bool) or not isinstance(stated, int | float) or not 0 <= stated <= _LATEST_S:
        return None
    return min(stated + SKEW_S, at) if stated <= at + SKEW_S else stated


def watch_sign_ins() -> None:
    """Keep how a session signed in, and renew it when its account confirms its identity."""
    user_logged_in.connect(_signed_in, dispatch_uid="muniment.step_up.signed_in")
    authentication_step_completed.connect(_authenticated, dispatch_uid="muniment.step_up.authenticated")


def _moment(record: JSONMapping) -> object:
    """Return the moment of a record of allauth; None for a sign-in at a provider that stated none."""
    return record.get("stated_at") if record.get("method") == "socialaccount" else record.get("at")


def _signed_in(*, request: HttpRequest | None, user: Account, **_: Any) -> None:
    """Record a sign-in for which allauth keeps no record: the one that ends a sign-up."""
    if request is not None and not get_authentication_records(request, user):
        record_authentication(request, user, "signup")


def _authenticated(*, request: HttpRequest, user: Account, method: str, **how: Any) -> None:
    if method == "socialaccount" and "stated_at" not in how:
        _keep_stated_moment(request, user)
    if how.get("reauthenticated"):
        _renew(request)
        by = _METHODS.get(method) or str(how.get("type") or method)
        record(Event.REAUTHENTICATED, account=user, detail={"method": by})


def _keep_stated_moment(request: HttpRequest, user: Account) -> None:
    claims = getattr(request, CLAIMS, None)
    moment = stated_moment(claims) if claims else None
    if moment is not None:
        records = [dict(record) for record in get_authentication_records(request, user)]
        records[-1]["stated_at"] = moment
        request.session[AUTHENTICATION_METHODS_SESSION_KEY] = records


def _renew(request: HttpRequest) -> None:
    """Change the session's secret: a cookie that was copied before stops working."""
    before = request.session.session_key
    request.session.cycle_key()
    UserSession.objects.filter(session_key=before).update(session_key=request.session.session_key)


_CODE_IN_SESSION: Final = "step_up_code"


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
        state = request.session.get(_CODE_IN_SESSION)
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
        self.request.session[_CODE_IN_SESSION] = {
            "account": str(self.account.pk),
            "code": self.code,
            "at": self._sent_at,
            "wrong": self._wrong,
        }

    def _discard(self) -> None:
        self.request.session.pop(_CODE_IN_SESSION, None)
