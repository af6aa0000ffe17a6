"""
Browser sessions: the cookie holds a secret, the row its digest, and what a session remembers is sealed.

A session remembers codes that were mailed, the secret of a second factor that is being set up, and forms that
wait for a sign-in. Both halves of a row are useless to whoever reads the database.

Source: decision 19.
"""

from typing import Any, Self, cast

from allauth.usersessions.models import UserSession
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore as Rows
from django.contrib.sessions.middleware import SessionMiddleware as Cookies
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse

from muniment.accounts.encryption import seal, unseal
from muniment.kernel.tokens import random_text, token_digest

SECRET_CHARACTERS = 43  # 256 bits
KEY_CHARACTERS = 40  # what the tables have room for: 160 bits of the digest
_PURPOSE = "session"


class Key(str):
    """
    The key under which a session is stored, with the secret that it is the digest of.

    A text with something beside it, because Django and allauth hand keys from one store to the next, and the
    secret has to arrive where the cookie is written.
    """

    __slots__ = ("secret",)
    secret: str

    @classmethod
    def of(cls, secret: str) -> Self:
        """Give the key of the session that a cookie names."""
        key = cls(token_digest(secret)[:KEY_CHARACTERS])
        key.secret = secret
        return key


class SessionStore(Rows):
    """Sessions in the database, sealed, each under the digest of its cookie."""

    def _get_new_session_key(self) -> str:
        return Key.of(random_text(SECRET_CHARACTERS))

    def encode(self, session_dict: dict[str, Any]) -> str:
        """Seal what a session remembers."""
        return seal(self.serializer().dumps(session_dict), _PURPOSE)

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Open what a session remembers; one that another key sealed is empty."""
        try:
            found: dict[str, Any] = self.serializer().loads(unseal(session_data, _PURPOSE))
        except InvalidToken:
            return {}
        return found


class SessionMiddleware(Cookies):
    """Reads the secret from the cookie and writes it there; from here on, a session goes by its key."""

    def process_request(self, request: HttpRequest) -> None:
        """Give the request its session."""
        secret = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        request.session = SessionStore(Key.of(secret) if secret else None)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Save the session, and give the browser the secret where Django gives it the key."""
        answer: HttpResponse = super().process_response(request, response)
        cookie = answer.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie is not None and cookie.value:
            key = cast("Key", request.session.session_key)
            answer.cookies[settings.SESSION_COOKIE_NAME] = key.secret
        return answer


def sweep_sessions() -> int:
    """Delete sessions that ended, and the list entries of those that are gone."""
    SessionStore.clear_expired()
    gone = UserSession.objects.exclude(session_key__in=Session.objects.values("session_key"))
    return int(gone.delete()[0])
