"""
Browser sessions: the cookie holds a secret, the row its digest, and the session data is encrypted.

Session data includes emailed codes, the secret of a second factor during set-up, and forms that wait for a sign-in.
Reading the database reveals neither the cookie nor the data.

Source: decision 19.
"""

from typing import Self, cast

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
from muniment.encryption import seal, unseal_under
from muniment.kernel.json import JSONObject
from muniment.kernel.tokens import random_text, token_digest

SECRET_CHARACTERS = 43  # 256 bits
KEY_CHARACTERS = 40  # the length of the column: 160 bits of the digest
HINT_COOKIE = "signed_in"
"""Tells scripts that an account may be signed in. It proves nothing and names no account."""
PURPOSE = "session"


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

    @property
    def is_loaded(self) -> bool:
        """Whether its data is known already, so that looking at it asks nothing of the database."""
        return "_session_cache" in vars(self)

    def _get_new_session_key(self) -> str:
        return Key.of(random_text(SECRET_CHARACTERS))

    def encode(self, session_dict: JSONObject) -> str:
        return seal(self.serializer().dumps(session_dict), PURPOSE)

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
        answer: HttpResponse = super().process_response(request, response)
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
