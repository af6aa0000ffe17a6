"""Authentication of the owner-scoped server by bearer token."""

from typing import Final, Protocol

from muniment.kernel.actor import SCOPES, Actor
from muniment.kernel.asgi import Scope
from muniment.kernel.problems import Forbidden, Problem, Unauthorized
from muniment.mcp import web_pages

_METADATA_PATH: Final = "/.well-known/oauth-protected-resource/api/manage/mcp"
_MAX_CLIENT_CHARACTERS: Final = 120


class TokenSource(Protocol):
    """Finds the actor of a token."""

    async def __call__(self, text: str, client: str) -> Actor | None:
        """Return the actor of a token, or None if it is invalid."""

    def is_known(self, text: str) -> bool:
        """Return whether this process has seen the token valid."""


class BearerAuthentication:
    """
    Authentication by the Authorization header only.

    Source: RFC 6750, sections 2 and 3; RFC 9728, section 5.1; decisions, section 4.
    """

    def __init__(self, tokens: TokenSource, base_url: str) -> None:
        self._tokens = tokens
        self._base_url = base_url
        self._metadata = f'resource_metadata="{base_url}{_METADATA_PATH}"'

    async def authenticate(self, scope: Scope) -> Actor:
        """Return the actor; raise Unauthorized for no token, an invalid one, or one in the URL."""
        text = self._token(scope)
        client = dict(scope["headers"]).get(b"user-agent", b"")
        actor = await self._tokens(text, _plain(client))
        if actor is None:
            raise self._unauthorized("The token is unknown, expired or revoked.", "invalid_token")
        return actor

    def is_known(self, scope: Scope) -> bool:
        """Return whether this process has seen the token valid. Needs no query."""
        try:
            return self._tokens.is_known(self._token(scope))
        except Unauthorized:
            return False

    def _token(self, scope: Scope) -> str:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if b"access_token=" in scope["query_string"] or b"mun_" in scope["query_string"]:
            raise self._unauthorized(
                "Tokens in the URL are not accepted, because logs and histories store URLs.", "invalid_request"
            )
        if not given:
            raise self._unauthorized("This server requires a bearer token.", "")
        kind, _, text = given[0].decode("latin-1").strip().partition(" ")
        if len(given) > 1 or kind.lower() != "bearer":
            raise self._unauthorized("The Authorization header must be one bearer token.", "invalid_token")
        return str(text.strip())

    def missing(self, scope: str) -> Problem:
        """Return the error for a missing scope (RFC 6750, section 3.1)."""
        return Forbidden(
            f"The credential does not permit {scope}.",
            f"Connect again and allow {scope}, or create a token with it at {self._base_url}{web_pages.TOKENS}.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}'},
        )

    def _unauthorized(self, message: str, error: str) -> Unauthorized:
        challenge = f'Bearer {self._metadata}, scope="{" ".join(SCOPES)}"'
        return Unauthorized(
            message,
            f"Sign in with OAuth, or create a token at {self._base_url}{web_pages.TOKENS} and send it as "
            "Authorization: Bearer.",
            headers={"WWW-Authenticate": f'{challenge}, error="{error}"' if error else challenge},
        )


def _plain(client: bytes) -> str:
    text = client[: 2 * _MAX_CLIENT_CHARACTERS].decode("utf-8", "replace")
    return "".join(character for character in text if character.isprintable())[:_MAX_CLIENT_CHARACTERS]
