"""Hand the descriptions of the REST API and of the tool servers to the pages that document them."""

from muniment.api.contract import openapi_document
from muniment.config import Config
from muniment.declared_fields import instance_schema
from muniment.kernel.json import JSONObject
from muniment.mcp.declarations import Declarations
from muniment.mcp.tools.owner.server import owner_declarations
from muniment.mcp.tools.public import public_declarations
from muniment.registry_toml.applied import registry_name
from muniment.server.app.app import MANAGE_PATH, PUBLIC_PATH
from muniment.server.app.threads import Bridge
from muniment.web.reference.interfaces import DescribedServer, Interfaces, describe
from muniment.web.requests.page_cache import reader


def describe_interfaces(config: Config, bridge: Bridge) -> None:
    """Let ``/docs`` describe the interfaces of this process."""
    schema = instance_schema(config)

    def openapi() -> JSONObject:
        return openapi_document(config, schema)

    def public() -> DescribedServer:
        found = public_declarations(reader(), base_url=config.base_url, registry_name=registry_name(), schema=schema)
        return _as_seen(PUBLIC_PATH, found)

    def owner() -> DescribedServer:
        found = owner_declarations(
            bridge.call, base_url=config.base_url, registry_name=registry_name(), schema=schema, reader=reader
        )
        return _as_seen(MANAGE_PATH, found)

    describe(Interfaces(openapi, public, owner))


def _as_seen(path: str, declared: Declarations) -> DescribedServer:
    tools = tuple(tool.to_wire() for tool in declared.tools)
    scopes = {tool.name: tool.scope for tool in declared.tools if tool.scope}
    return DescribedServer(path, declared.instructions, tools, scopes)
