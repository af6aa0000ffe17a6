"""
Step-up authentication: what opens or gives away an account needs a sign-in or a confirmation within 15 minutes.

allauth keeps in the session how and when its account authenticated, and shows the pages that confirm; a sign-in counts
as a confirmation. At an identity provider, the moment counts that the provider states in the ID token (``auth_time``):
it may answer from a session of its own that is days old, without asking the person.

Source: decision 38; OpenID Connect Core 1.0, sections 2 and 3.1.2.1.
"""

import time
from typing import Any, Final

from allauth.account.authentication import AUTHENTICATION_METHODS_SESSION_KEY, get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.account.signals import authentication_step_completed
from allauth.usersessions.models import UserSession
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest

from muniment.accounts.models import Account
from muniment.accounts.security import log
from muniment.accounts.security.events import Event
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
        log.record(Event.REAUTHENTICATED, account=user, detail={"method": by})


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
