"""
The owner-scoped tool server: its callers' bearer tokens, its instructions and all its tools.

Source: tools, Owner-scoped server; decisions, sections 3 and 4.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from muniment import __version__
from muniment.kernel.actor import SCOPES, Actor
from muniment.kernel.problems import Forbidden, Problem, Unauthorized
from muniment.kernel.rate import Limiter
from muniment.mcp.declarations import Declarations
from muniment.mcp.protocol.http import Scope
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
You act for one person, within what this person owns in the registry, and within the scopes of your credential.

- list_my_companies first: its id is the slug that the other tools take. get_my_company shows a listing with its \
version, also before it is public.
- update_my_company changes only what `changes` names: absent stays, null clears, lists replace, objects merge by key. \
Try it with dryRun true, show the diff, then send it with expectedVersion. If the version has moved on, read again \
and repeat.
- Most changes are public at once. name, symbol and type of a published listing wait for a reviewer: awaitingReview \
says so; do not send them again.
- list_company_form_options gives values and lengths.
- Documents: upload_document up to 8,192 bytes. Larger: create_document_upload, then the user runs its `command` \
in the file's folder on their computer, then complete_document_upload. Never paste a larger file into a call.
- New listings, logos and billing are done on the pages, at /manage; /manage/documents takes files by drag and drop.
- A list that would grow too large has fewer items: go on with the page and the pageSize that its hint names.
- A failure has error.code, message and hint; the hint says what to do instead.
"""


def owner_declarations(call: Bridge, *, base_url: str, registry_name: str, schema: Schema) -> Declarations:
    """
    Return what the owner-scoped server declares.

    Args:
        call: runs an operation over the bridge.
        base_url: the public address, without a slash at its end.
        registry_name: what the registry calls itself.
        schema: of the registry's objects.
    """
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


class Bearers:
    """
    How the server knows its callers: by the Authorization header and nothing else.

    Args:
        doorkeeper: knows who a token speaks for.
        base_url: the public address.

    Source: RFC 6750, sections 2 and 3; RFC 9728, section 5.1; decisions, section 4.
    """

    def __init__(self, doorkeeper: Callable[[str, str], Awaitable[Actor | None]], base_url: str) -> None:
        self._doorkeeper = doorkeeper
        self._metadata = f'resource_metadata="{base_url}{METADATA_PATH}"'

    async def authenticate(self, scope: Scope) -> Actor:
        """
        Give the actor of a request.

        Raises:
            Unauthorized: no token, a dead one, or one in the address.
        """
        given: list[bytes] = []
        client = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                given.append(value)
            elif name == b"user-agent":
                client = value
        if b"access_token=" in scope["query_string"] or b"mun_" in scope["query_string"]:
            raise self._refused(
                "A token in the address is refused: addresses are kept in logs and histories.", "invalid_request"
            )
        if not given:
            raise self._refused("This server acts for somebody, and no token was sent.", "")
        kind, _, text = given[0].decode("latin-1").strip().partition(" ")
        if len(given) > 1 or kind.lower() != "bearer":
            raise self._refused("The Authorization header is not one bearer token.", "invalid_token")
        actor = await self._doorkeeper(text.strip(), _plain(client))
        if actor is None:
            raise self._refused("The token is unknown, expired or revoked.", "invalid_token")
        return actor

    def missing(self, scope: str) -> Problem:
        """Give the refusal of a tool that the credential does not reach (RFC 6750, section 3.1)."""
        return Forbidden(
            f"The credential does not permit {scope}.",
            f"Connect again and permit {scope}, or make a token with it at /manage/tokens.",
            headers={
                "WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}',
            },
        )

    def _refused(self, message: str, error: str) -> Unauthorized:
        asked = f'Bearer {self._metadata}, scope="{" ".join(SCOPES)}"'
        return Unauthorized(
            message,
            "Let the client sign in by OAuth, or make a token at /manage/tokens and send it as Authorization: Bearer.",
            headers={"WWW-Authenticate": f'{asked}, error="{error}"' if error else asked},
        )


def _plain(client: bytes) -> str:
    text = client[: 2 * _MAX_CLIENT_CHARACTERS].decode("utf-8", "replace")
    return "".join(character for character in text if character.isprintable())[:_MAX_CLIENT_CHARACTERS]


def owner_server(
    call: Bridge, *, gate: OriginPolicy, limiter: Limiter | None, base_url: str, registry_name: str, schema: Schema
) -> ToolServer:
    """Return the owner-scoped server."""
    bearers = Bearers(TokenAuthenticator(call, resource=address_of(base_url)), base_url)
    return ToolServer(
        owner_declarations(call, base_url=base_url, registry_name=registry_name, schema=schema),
        gate=gate,
        limiter=limiter,
        access=Access(bearers.authenticate, bearers.missing),
    )
