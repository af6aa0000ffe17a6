"""Record what django-allauth reports: sign-ins, failures, passwords, addresses, second factors and sessions."""

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from allauth.account import signals as account_signals
from allauth.account.authentication import get_authentication_records
from allauth.account.models import EmailAddress
from allauth.mfa import signals as factor_signals
from allauth.mfa.models import Authenticator
from allauth.socialaccount import signals as identity_signals
from allauth.usersessions.adapter import DefaultUserSessionsAdapter
from allauth.usersessions.models import UserSession
from django.contrib.auth.signals import user_login_failed
from django.core.cache import cache
from django.http import HttpRequest

from muniment.accounts.identity_providers import set_role_from
from muniment.accounts.models import Account
from muniment.accounts.security import mailing
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.ids import now
from muniment.languages.speaking import language

BROWSER_COOKIE: Final = "author"
"""Signed cookie with the account that was last signed in; a sign-in without it is one from a new browser."""
EACH_FAILURE: Final = 10
"""Failed sign-ins that an account's log has one by one in a day; after them, the 20th, the 40th, and so on doubled."""
_METHODS: Final = {
    "password": "password",
    "code": "code",
    "socialaccount": "single sign-on",
    "link": "link of the operator",
}


def watch() -> None:
    """Connect to every signal."""
    for signal, receiver in (
        (account_signals.user_signed_up, _signed_up),
        (account_signals.user_logged_in, _signed_in),
        (user_login_failed, _password_refused),
        (account_signals.login_code_rejected, _code_refused),
        (account_signals.password_reset_code_rejected, _reset_code_refused),
        (factor_signals.authentication_failed, _factor_refused),
        (account_signals.password_changed, _password_changed),
        (account_signals.password_set, _password_changed),
        (account_signals.password_reset, _password_reset),
        (account_signals.email_changed, _email_changed),
        (account_signals.email_removed, _email_removed),
        (factor_signals.authenticator_added, _factor_added),
        (factor_signals.authenticator_removed, _factor_removed),
        (factor_signals.authenticator_reset, _codes_created),
        (factor_signals.authenticator_used, _factor_used),
        (identity_signals.social_account_added, _identity_added),
        (identity_signals.social_account_removed, _identity_removed),
    ):
        signal.connect(receiver, dispatch_uid=f"muniment.security.{receiver.__name__}.{id(signal)}")


class SessionsAdapter(DefaultUserSessionsAdapter):  # type: ignore[misc]  # allauth ships no types
    """Ends sessions, and records that."""

    def end_sessions(self, sessions: Iterable[UserSession]) -> None:
        ended = list(sessions)
        super().end_sessions(ended)
        if ended:
            record(Event.SESSIONS_ENDED, account=ended[0].user_id, detail={"sessions": len(ended)})


def _signed_up(user: Account, **_: Any) -> None:
    record(Event.ACCOUNT_CREATED, account=user)


def _signed_in(request: HttpRequest, user: Account, **told: Any) -> None:
    if told.get("sociallogin") is not None:
        set_role_from(told["sociallogin"], user)
    user.remember_language(language())
    is_first = not SecurityEvent.objects.filter(account=user, event=Event.SIGNED_IN).exists()
    event = record(Event.SIGNED_IN, account=user, detail={"method": _methods(request, user)})
    if not is_first and request.get_signed_cookie(BROWSER_COOKIE, default=None) != str(user.pk):
        mailing.send_mail(event, to=[user.email])


def _methods(request: HttpRequest, user: Account) -> list[str]:
    found = []
    for each in get_authentication_records(request, user):
        if each["method"] == "mfa":
            found.append("passkey" if each.get("passwordless") else "second factor")
        else:
            found.append(_METHODS.get(each["method"], str(each["method"])[:40]))
    return found


def _password_refused(credentials: dict[str, Any], **_: Any) -> None:
    email = str(credentials.get("email") or credentials.get("username") or "").strip().lower()
    _refused(Account.objects.filter(email=email, deleted_at=None).first(), email, "password")


def _code_refused(user: Account, **_: Any) -> None:
    _refused(user, user.email, "code")


def _reset_code_refused(user: Account, **_: Any) -> None:
    _refused(user, user.email, "reset code")


def _factor_refused(user: Account, **_: Any) -> None:
    _refused(user, user.email, "second factor")


def _refused(account: Account | None, email: str, method: str) -> None:
    """Record a failed sign-in, bounded: anyone can cause them. An unknown address is counted like a known one."""
    key = f"sign-ins-failed:{hashlib.sha256(email.encode()).hexdigest()[:32]}:{now():%Y%m%d}"
    cache.add(key, 0, timeout=90_000)
    attempts = cache.incr(key)
    if account is not None and _is_recorded(attempts):
        record(Event.SIGN_IN_FAILED, account=account, detail={"method": method, "attempts": attempts}, by=None)


def _is_recorded(attempts: int) -> bool:
    times, rest = divmod(attempts, EACH_FAILURE)
    return attempts <= EACH_FAILURE or (rest == 0 and times.bit_count() == 1)


def _password_changed(user: Account, request: HttpRequest | None = None, **_: Any) -> None:
    record(Event.PASSWORD_CHANGED, account=user)
    mailing.show_credentials(request, user.pk)


def _password_reset(user: Account, request: HttpRequest | None = None, **_: Any) -> None:
    record(Event.PASSWORD_RESET, account=user)
    mailing.show_credentials(request, user.pk)


def _email_changed(
    user: Account, from_email_address: EmailAddress | None, to_email_address: EmailAddress, **_: Any
) -> None:
    if from_email_address is not None:  # without one, it is the first address of a new account
        addresses = {"from": from_email_address.email, "to": to_email_address.email}
        record(Event.EMAIL_CHANGED, account=user, detail=addresses, mail_to=tuple(addresses.values()))


def _email_removed(user: Account, email_address: EmailAddress, **_: Any) -> None:
    addresses = (user.email, email_address.email) if email_address.verified else (user.email,)
    record(Event.EMAIL_REMOVED, account=user, detail={"email": email_address.email}, mail_to=addresses)


def _factor_added(user: Account, authenticator: Authenticator, **_: Any) -> None:
    is_codes = authenticator.type == Authenticator.Type.RECOVERY_CODES
    event = Event.RECOVERY_CODES_CREATED if is_codes else Event.FACTOR_ADDED
    record(event, account=user, detail=_factor(authenticator))


def _factor_removed(user: Account, authenticator: Authenticator, **_: Any) -> None:
    record(Event.FACTOR_REMOVED, account=user, detail=_factor(authenticator))


def _codes_created(user: Account, **_: Any) -> None:
    record(Event.RECOVERY_CODES_CREATED, account=user)


def _factor_used(user: Account, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        record(Event.RECOVERY_CODE_USED, account=user)


def _factor(authenticator: Authenticator) -> dict[str, Any]:
    name = str(authenticator.data.get("name") or "")[:80]
    return {"factor": str(authenticator.type), **({"name": name} if name else {})}


def _identity_added(sociallogin: Any, **_: Any) -> None:
    record(Event.IDENTITY_ADDED, account=sociallogin.user, detail={"provider": sociallogin.account.provider})


def _identity_removed(socialaccount: Any, **_: Any) -> None:
    record(Event.IDENTITY_REMOVED, account=socialaccount.user, detail={"provider": socialaccount.provider})
