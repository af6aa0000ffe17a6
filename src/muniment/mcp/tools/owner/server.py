"""
The owner-scoped tool server: instructions and tools.

Source: tools, Owner-scoped server; decisions, sections 3 and 4.
"""

from collections.abc import Callable

from muniment import __version__
from muniment.assessments.operations import standings
from muniment.kernel.fairness import Fairness
from muniment.mcp import web_pages
from muniment.mcp.apps.views import OWNER, with_views
from muniment.mcp.arguments import taking_addresses
from muniment.mcp.declarations import Declarations
from muniment.mcp.protocol.http import Access, BearerAuthentication, OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from muniment.mcp.skills.skills import OWNER as OWNER_SKILLS
from muniment.mcp.skills.skills import PROMPTS, skills
from muniment.mcp.tools.answers import ABOUT_TEXTS
from muniment.mcp.tools.form_options import form_options_tool
from muniment.mcp.tools.owner.companies import company_tools
from muniment.mcp.tools.owner.documents import document_tools
from muniment.mcp.tools.owner.frameworks import owner_framework_tools, readable
from muniment.mcp.tools.owner.profile import profile_tools
from muniment.mcp.tools.owner.reports import Waiting, report_tools
from muniment.mcp.tools.owner.sharing import sharing_tools
from muniment.mcp.tools.query import query_tool
from muniment.oauth.resources import manage_server as address_of
from muniment.oauth.token_authentication import Bridge, TokenAuthenticator
from muniment.schema.objects import Schema
from muniment.store.reader import Reader


def _instructions(base_url: str) -> str:
    return f"""\
You act for one user, limited to what this user owns in the registry and to the scopes of your credential.

- Start with list_my_companies: its id is the slug that the other tools take; page addresses and exact names work \
too. get_my_company returns a listing with its version, even before it is public. query answers SQL about all that is \
public.
{ABOUT_TEXTS}\
- update_my_company changes only the fields in `changes`: absent fields stay, null clears, lists replace, objects \
merge by key. Try it with dryRun true, show the diff, then send it with expectedVersion. If the version has changed, \
read the listing again and repeat.
- Most changes are published at once. Changes to name, symbol and type of a published listing need review: \
awaitingReview lists them; do not send them again.
- list_company_form_options returns the accepted values and lengths.
- Documents: upload_document for up to 8,192 bytes. Larger files: create_document_upload, then the user opens its \
`url` in a browser or runs its `command` in the file's folder, then complete_document_upload. Never paste a larger \
file into a call.
- Only in the web app: new listings {base_url}{web_pages.NEW_LISTING}, logos {base_url}{web_pages.LISTINGS}, billing \
{base_url}{web_pages.CREDITS}, tokens and connected apps {base_url}{web_pages.TOKENS}. \
{base_url}{web_pages.DOCUMENTS} accepts files by drag and drop.
- Calls act at once: changes and deletions can be undone, and start_report_run shows the price before \
execute_report_run holds it. Only submit_application asks first: show its confirmation to the user, and if they agree \
repeat the call with its confirm. dryRun true shows what any call would do.
- An answer has at most 60 KB, mostly below 3 KB; get_my_company with parts ["company"] takes about 2 KB, and fields \
returns only what it names. A larger list has fewer items: continue with the page and pageSize in its hint.
- A failure has error.code, message and hint; the hint says what to do instead.
"""


def owner_declarations(
    call: Bridge, *, base_url: str, registry_name: str, schema: Schema, reader: Callable[[], Reader | None]
) -> Declarations:
    """
    Return the declarations of the owner-scoped server.

    Args:
        call: runs an operation in a thread.
        reader: returns the reader of the published file, None while it cannot be read.
    """
    waiting = Waiting(call, standings)
    tools = (
        *company_tools(call, base_url, schema),
        *profile_tools(call, base_url, schema),
        form_options_tool(
            schema,
            "The values and lengths that update_my_company accepts. Fields listed in `open` accept other values too.",
            "companies:read",
            reader,
        ),
        *document_tools(call, base_url),
        *report_tools(call, base_url, waiting),
        *sharing_tools(call, base_url),
        *owner_framework_tools(call, reader, base_url, schema, "reports:read"),
        query_tool(schema, lambda: readable(reader)),
    )
    declared, views = with_views(taking_addresses(tools, base_url), OWNER, base_url)
    return Declarations(
        name="muniment-manage",
        title=f"{registry_name} (manage)",
        version=__version__,
        description=f"{registry_name}: your own listings, profile and documents."[:100],
        instructions=_instructions(base_url),
        website_url=base_url,
        icon_url=f"{base_url}/api/mcp/icon.svg",
        tools=declared,
        views=views,
        prompts=PROMPTS,
        skills=skills(OWNER_SKILLS),
        shared=False,
        drain=waiting.stop,
    )


def owner_server(
    call: Bridge,
    *,
    reader: Callable[[], Reader | None],
    gate: OriginPolicy,
    fairness: Fairness,
    base_url: str,
    registry_name: str,
    schema: Schema,
) -> ToolServer:
    authentication = BearerAuthentication(TokenAuthenticator(call, resource=address_of(base_url)), base_url)
    return ToolServer(
        owner_declarations(call, base_url=base_url, registry_name=registry_name, schema=schema, reader=reader),
        gate=gate,
        access=Access(authentication.authenticate, authentication.missing, authentication.is_known, fairness),
    )
