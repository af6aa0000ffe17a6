"""
Browser sessions: the cookie holds a secret, the row its digest, and the session data is encrypted.

Session data includes emailed codes and the secret of a second factor during set-up. Reading the database reveals
neither the cookie nor the data.

A visitor without an account has a session while they sign up or sign in, and to be told something once. Anyone can
cause such sessions, so they are small, last two hours, and are limited by address and in all.

Source: decision 19.
"""

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Final, Self, cast

from allauth.usersessions.models import UserSession
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as Rows
from django.contrib.sessions.middleware import SessionMiddleware as Cookies
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from muniment.accounts.models import Account
from muniment.accounts.security import origin
from muniment.encryption import seal, unseal_under
from muniment.kernel import fairness
from muniment.kernel.fairness import VISITOR_SESSIONS_AN_HOUR, too_many
from muniment.kernel.http.addresses import rate_key
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Problem, TooMany
from muniment.kernel.tokens import random_text, token_digest

SECRET_CHARACTERS = 43  # 256 bits
KEY_CHARACTERS = 40  # the length of the column: 160 bits of the digest
HINT_COOKIE = "signed_in"
"""Tells scripts that an account may be signed in. It proves nothing and names no account."""
PURPOSE = "session"
VISITOR_S: Final = 2 * 3600
"""Seconds that the session of a visitor without an account lasts after its last change."""
MAX_VISITOR_CHARACTERS: Final = 8_000
"""Maximum characters of the stored data of such a session."""
MAX_VISITOR_SESSIONS: Final = 10_000
"""Maximum sessions of visitors; above it, those that end first are removed."""
HOURS: Final = 3
"""Hours of the clock in which a session of two hours counts."""
_COUNTED_EVERY: Final = 50
_made = count()

refusal_page: Callable[[HttpRequest, Problem], HttpResponse] | None = None
"""Returns the page for a visitor who gets no session; set by the pages."""


class Key(str):
    """
    The key of a stored session, which also carries the secret whose digest it is.

    A str with an attribute, because Django and allauth pass keys between stores, and the secret must reach the code
    that sets the cookie.
    """

    __slots__ = ("secret",)
    secret: str

    @classmethod
    def of(cls, secret: str) -> Self:
        key = cls(token_digest(secret)[:KEY_CHARACTERS])
        key.secret = secret
        return key


class SessionStore(Rows):
    """Encrypted sessions in the database, each under the digest of its cookie."""

    _is_of_sign_in = False

    @property
    def is_loaded(self) -> bool:
        """Whether its data is known already, so that looking at it asks nothing of the database."""
        return "_session_cache" in vars(self)

    @property
    def is_visitors(self) -> bool:
        return SESSION_KEY not in self

    def get_session_cookie_age(self) -> int:
        """Return how long the session lasts without a request; `set_expiry` overrides it."""
        return VISITOR_S if self.is_visitors else super().get_session_cookie_age()

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002 - Django's signature
        """
        Store the session; a new one of a visitor only within the limits.

        Raises:
            TooMany: visitors of this address started too many sessions.
            BadRequest: the visitor's data is too large.
        """
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]  # private: not in the stubs
        if must_create and data and self.is_visitors and not self._is_of_sign_in:
            self._take_place()
        super().save(must_create=must_create)

    def cycle_key(self) -> None:
        """Replace the secret of the session, as a sign-in does: it has an account a moment later."""
        self._is_of_sign_in = True
        try:
            super().cycle_key()
        finally:
            self._is_of_sign_in = False

    def _take_place(self) -> None:
        try:
            fairness.current().take("visitor_sessions", rate_key(origin.current().address))
            most, least = MAX_VISITOR_SESSIONS, VISITOR_SESSIONS_AN_HOUR
            if not origin.take_share("sessions", in_all=most, least=least, hours=HOURS):
                fairness.current().count_refusal("visitor_sessions")
                raise too_many("visitor_sessions", 3_600)
        except TooMany:
            self._session_key = None  # it has no row
            raise
        if next(_made) % _COUNTED_EVERY == 0:
            _remove_excess()

    def _get_new_session_key(self) -> str:
        return Key.of(random_text(SECRET_CHARACTERS))

    def encode(self, session_dict: JSONObject) -> str:
        stored = seal(self.serializer().dumps(session_dict), PURPOSE)
        if SESSION_KEY not in session_dict and len(stored) > MAX_VISITOR_CHARACTERS:
            raise BadRequest("The request is too long to be remembered.", "Shorten the address, or start again.")
        return stored

    def decode(self, session_data: bytes | str) -> JSONObject:
        """Decrypt session data; return an empty session if it was encrypted with another key."""
        try:
            key, content = unseal_under((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS), session_data, PURPOSE)
        except InvalidToken:
            return {}
        found = cast("JSONObject", self.serializer().loads(content))
        return found if key == settings.SECRET_KEY else _under_current_key(found, key)


def _under_current_key(content: JSONObject, key: str) -> JSONObject:
    """
    Return a session that was encrypted with another key of this instance, with its proof of the password renewed.

    Django would renew it by replacing the session, which signs out a browser that sends two requests at once.
    """
    proof, account_id = content.get(HASH_SESSION_KEY), content.get(SESSION_KEY)
    account = Account.objects.filter(pk=account_id).first() if proof and account_id else None
    if account is None or not constant_time_compare(str(proof), account.session_hash_under(key)):
        return content
    return {**content, HASH_SESSION_KEY: account.get_session_auth_hash()}


class SessionMiddleware(Cookies):
    """Reads the secret from the cookie and writes it there; all other code uses the key."""

    def process_request(self, request: HttpRequest) -> None:
        secret = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        request.session = SessionStore(Key.of(secret) if secret else None)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """
        Save the session, and put the secret into the cookie where Django puts the key.

        A cookie of an unknown session stays: a request of another tab, on its way while the session got another
        secret, would otherwise remove the new cookie.
        """
        was_ended = request.session.modified
        try:
            answer: HttpResponse = super().process_response(request, response)
        except Problem as refused:
            request.session = SessionStore()
            return refusal_page(request, refused) if refusal_page is not None else HttpResponse(status=refused.status)
        cookie = answer.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie is not None and not cookie.value and not was_ended:
            del answer.cookies[settings.SESSION_COOKIE_NAME]
        if cookie is not None and cookie.value:
            answer.cookies[settings.SESSION_COOKIE_NAME] = cast("Key", request.session.session_key).secret
        _hint(request, answer)
        return answer


def _hint(request: HttpRequest, response: HttpResponse) -> None:
    """
    Set the cookie for scripts while an account is signed in, and remove it after.

    It lives as long as the session's. A request that did not look at the session says nothing about it.
    """
    session = cast("SessionStore", request.session)
    if not session.is_loaded:
        return
    is_told, is_signed_in = HINT_COOKIE in request.COOKIES, SESSION_KEY in session
    if is_told and not is_signed_in:
        response.delete_cookie(HINT_COOKIE, samesite="Lax")
    elif is_signed_in and (not is_told or settings.SESSION_COOKIE_NAME in response.cookies):
        lifetime_s = None if session.get_expire_at_browser_close() else session.get_expiry_age()
        response.set_cookie(
            HINT_COOKIE,
            "1",
            max_age=lifetime_s,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=False,
            samesite="Lax",
        )


def sweep_sessions() -> int:
    SessionStore.clear_expired()
    gone = UserSession.objects.exclude(session_key__in=Session.objects.values("session_key"))
    return int(gone.delete()[0])


def _remove_excess() -> None:
    """Remove the sessions of visitors that end first, if there are too many; a tenth more, to have time until then."""
    soon_over = Session.objects.filter(expire_date__lte=now() + timedelta(seconds=VISITOR_S))
    of_visitors = soon_over.exclude(session_key__in=UserSession.objects.values("session_key")).order_by("expire_date")
    excess = of_visitors.count() - MAX_VISITOR_SESSIONS
    if excess >= 0:
        removed = of_visitors.values_list("session_key", flat=True)[: excess + MAX_VISITOR_SESSIONS // 10]
        Session.objects.filter(session_key__in=list(removed)).delete()
