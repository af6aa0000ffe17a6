"""
The owner-scoped tool server: authentication by bearer token, instructions and tools.

Source: tools, Owner-scoped server; decisions, sections 3 and 4.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from muniment import __version__
from muniment.kernel.actor import SCOPES, Actor
from muniment.kernel.asgi import Scope
from muniment.kernel.problems import Forbidden, Problem, Unauthorized
from muniment.kernel.rate import Limiter
from muniment.mcp.declarations import Declarations
from muniment.mcp.protocol.origin import OriginPolicy
from muniment.mcp.protocol.transport import Access, ToolServer
from muniment.mcp.tools.owner_companies import company_tools
from muniment.mcp.tools.owner_documents import document_tools
from muniment.mcp.tools.owner_reports import report_tools
from muniment.oauth.resources import manage_server as address_of
from muniment.oauth.token_authentication import Bridge, TokenAuthenticator
from muniment.schema.objects import Schema

METADATA_PATH: Final = "/.well-known/oauth-protected-resource/api/manage/mcp"
_MAX_CLIENT_CHARACTERS: Final = 120

_INSTRUCTIONS = """\
You act for one user, limited to what this user owns in the registry and to the scopes of your credential.

- Start with list_my_companies: its id is the slug that the other tools take. get_my_company returns a listing with \
its version, even before it is public.
- update_my_company changes only the fields in `changes`: absent fields stay, null clears, lists replace, objects \
merge by key. Try it with dryRun true, show the diff, then send it with expectedVersion. If the version has changed, \
read the listing again and repeat.
- Most changes are published at once. Changes to name, symbol and type of a published listing need review: \
awaitingReview lists them; do not send them again.
- list_company_form_options returns the accepted values and lengths.
- Documents: upload_document for up to 8,192 bytes. Larger files: create_document_upload, then the user runs its \
`command` in the file's folder on their computer, then complete_document_upload. Never paste a larger file into a call.
- New listings, logos and billing are on the pages at /manage; /manage/documents accepts files by drag and drop.
- A list that would be too large has fewer items: continue with the page and pageSize in its hint.
- A failure has error.code, message and hint; the hint says what to do instead.
"""


def owner_declarations(call: Bridge, *, base_url: str, registry_name: str, schema: Schema) -> Declarations:
    """Return the declarations of the owner-scoped server; *call* runs an operation in a thread."""
    return Declarations(
        name="muniment-manage",
        title=f"{registry_name} (manage)",
        version=__version__,
        description=f"{registry_name}: your own listings, profile and documents."[:100],
        instructions=_INSTRUCTIONS,
        website_url=base_url,
        icon_url=f"{base_url}/api/mcp/icon.svg",
        tools=(*company_tools(call, base_url, schema), *document_tools(call, base_url), *report_tools(call, base_url)),
        shared=False,
    )


class BearerAuthentication:
    """
    Authentication by the Authorization header only.

    Source: RFC 6750, sections 2 and 3; RFC 9728, section 5.1; decisions, section 4.
    """

    def __init__(self, authenticate_token: Callable[[str, str], Awaitable[Actor | None]], base_url: str) -> None:
        self._authenticate_token = authenticate_token
        self._metadata = f'resource_metadata="{base_url}{METADATA_PATH}"'

    async def authenticate(self, scope: Scope) -> Actor:
        """
        Return the actor of a request.

        Raises:
            Unauthorized: no token, an invalid one, or one in the URL.
        """
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        client = dict(scope["headers"]).get(b"user-agent", b"")
        if b"access_token=" in scope["query_string"] or b"mun_" in scope["query_string"]:
            raise self._unauthorized(
                "Tokens in the URL are not accepted, because logs and histories store URLs.", "invalid_request"
            )
        if not given:
            raise self._unauthorized("This server requires a bearer token.", "")
        kind, _, text = given[0].decode("latin-1").strip().partition(" ")
        if len(given) > 1 or kind.lower() != "bearer":
            raise self._unauthorized("The Authorization header must be one bearer token.", "invalid_token")
        actor = await self._authenticate_token(text.strip(), _plain(client))
        if actor is None:
            raise self._unauthorized("The token is unknown, expired or revoked.", "invalid_token")
        return actor

    def missing(self, scope: str) -> Problem:
        """Return the error for a missing scope (RFC 6750, section 3.1)."""
        return Forbidden(
            f"The credential does not permit {scope}.",
            f"Connect again and allow {scope}, or create a token with it at /manage/tokens.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}'},
        )

    def _unauthorized(self, message: str, error: str) -> Unauthorized:
        challenge = f'Bearer {self._metadata}, scope="{" ".join(SCOPES)}"'
        return Unauthorized(
            message,
            "Sign in with OAuth, or create a token at /manage/tokens and send it as Authorization: Bearer.",
            headers={"WWW-Authenticate": f'{challenge}, error="{error}"' if error else challenge},
        )


def _plain(client: bytes) -> str:
    text = client[: 2 * _MAX_CLIENT_CHARACTERS].decode("utf-8", "replace")
    return "".join(character for character in text if character.isprintable())[:_MAX_CLIENT_CHARACTERS]


def owner_server(
    call: Bridge, *, gate: OriginPolicy, limiter: Limiter | None, base_url: str, registry_name: str, schema: Schema
) -> ToolServer:
    authentication = BearerAuthentication(TokenAuthenticator(call, resource=address_of(base_url)), base_url)
    return ToolServer(
        owner_declarations(call, base_url=base_url, registry_name=registry_name, schema=schema),
        gate=gate,
        limiter=limiter,
        access=Access(authentication.authenticate, authentication.missing),
    )
