"""
The fallback to the SDK's server for uncommon requests, with the same declarations.

Importing the MCP SDK takes 0.9 s of CPU and 28 MB, so nothing imports this before the first such request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import mcp_types as types
import msgspec
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from muniment.kernel.json import JSONObject
from muniment.mcp.declarations import INPUT, Caller, InputRequired
from muniment.mcp.protocol import lookups
from muniment.mcp.protocol.admission import Admitted
from muniment.mcp.protocol.lookups import Unoffered
from muniment.mcp.protocol.transport import ADMITTED

if TYPE_CHECKING:
    from muniment.mcp.protocol.transport import ToolServer

Context = ServerRequestContext[Any, Request]


def _one_page(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "This list has only one page; call it without a cursor.")


@contextmanager
def _as_errors(*, is_modern: bool = True) -> Iterator[None]:
    try:
        yield
    except Unoffered as error:
        raise MCPError(error.code(is_modern=is_modern), error.message, error.data) from None


def _plain(result: HandlerResult) -> JSONObject:
    assert isinstance(result, types.Result)  # noqa: S101 - `initialize` has an answer
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


class SkillParams(types.RequestParams):
    """The parameters of `skills/get`."""

    uri: str


def _asking(caller: Caller, ctx: Context, params: types.CallToolRequestParams) -> Caller:
    """Return the caller with what the request says of questions and progress, see `transport.ToolCall.by`."""
    known = ctx.session.client_capabilities if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else None
    modes = known.elicitation if known else None
    answer = (params.input_responses or {}).get(INPUT)
    return replace(
        caller,
        elicits=modes is not None and (modes.form is not None or modes.url is None),
        answer=answer.action if isinstance(answer, types.ElicitResult) else "",
        state=params.request_state or "",
        report=ctx.session.report_progress,
    )


class SdkFallback:
    """The SDK's server behind one tool server."""

    def __init__(self, front: "ToolServer") -> None:
        self.front = front
        offer = front.offer
        info = offer.server_info
        lists = CacheHint(offer.list_ttl_ms, offer.cache_scope)
        read = CacheHint(offer.read_ttl_ms, offer.cache_scope)
        handlers: JSONObject = {"on_list_tools": self.list_tools, "on_call_tool": self.call_tool}
        if "resources" in offer.capabilities:
            handlers["on_list_resources"] = self.list_resources
            handlers["on_list_resource_templates"] = self.list_templates
            handlers["on_read_resource"] = self.read_resource
        if offer.prompts:
            handlers["on_list_prompts"] = self.list_prompts
            handlers["on_get_prompt"] = self.get_prompt
        if "completions" in offer.capabilities:
            handlers["on_completion"] = self.complete
        self.server: Server[Any] = Server(
            offer.name,
            version=offer.version,
            title=offer.title,
            description=offer.description,
            instructions=offer.instructions,
            website_url=offer.website_url,
            icons=[types.Icon.model_validate(icon) for icon in info["icons"]] if "icons" in info else None,
            cache_hints={**dict.fromkeys(get_args(CacheableMethod), lists), "resources/read": read},
            get_tool_input_schema=self.input_schema,
            **handlers,
        )
        self.server.extensions = offer.extensions
        if offer.extensions:
            self.server.middleware.append(self._with_extensions)
        if offer.skills:
            self.server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
            self.server.add_request_handler("skills/get", SkillParams, self.get_skill)
        # The front has already checked Host and Origin, by rules that the SDK's settings cannot express.
        self.manager, self.streams = (
            StreamableHTTPSessionManager(
                app=self.server,
                json_response=json_response,
                stateless=True,
                security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
                max_request_body_size=front.max_body_bytes,
            )
            for json_response in (True, False)
        )

    @staticmethod
    def _admitted(ctx: Context) -> Admitted:
        assert ctx.request is not None  # noqa: S101 - HTTP requests always have one
        found: Admitted = ctx.request.scope["state"][ADMITTED]
        return found

    async def _with_extensions(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Add the extensions to the answer to `initialize`: the SDK drops them there (modelcontextprotocol#3364)."""
        result = await call_next(ctx)
        if ctx.method != "initialize":
            return result
        found = result if isinstance(result, dict) else _plain(result)
        return {**found, "capabilities": {**found["capabilities"], "extensions": self.front.offer.extensions}}

    def input_schema(self, name: str) -> JSONObject | None:
        """Return a tool's inputSchema, against which the SDK checks Mcp-Param headers."""
        bound = self.front.tools.get(name)
        return bound.tool.input_schema if bound else None

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        _one_page(params)
        caller = self._admitted(ctx).caller
        tools = [types.Tool.model_validate(tool.to_wire()) for tool in self.front.visible(caller)]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        bound = self.front.tools.get(params.name)
        if bound is None:
            with _as_errors():
                raise lookups.unknown_tool(params.name, self.front.offer)
        admitted = self._admitted(ctx)
        admitted = admitted._replace(caller=_asking(admitted.caller, ctx, params))
        try:
            answer, failed = await self.front.call(bound, params.arguments, admitted)
        except InputRequired as question:
            return types.InputRequiredResult.model_validate(question.to_wire())
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.content.decode())],
            structured_content=msgspec.json.decode(answer.content),
            is_error=failed,
            _meta=lookups.meta(answer) or None,
        )

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the resources without a variable."""
        _one_page(params)
        plain = self.front.offer.plain_resources
        return types.ListResourcesResult(resources=[types.Resource.model_validate(found.to_wire()) for found in plain])

    async def list_templates(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        _one_page(params)
        templates = (found for found in self.front.offer.resources if found.variable)
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate.model_validate(found.to_wire()) for found in templates]
        )

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        with _as_errors(is_modern=modern):
            found = lookups.read_resource(self.front.offer, params.uri, self._admitted(ctx).caller)
        return types.ReadResourceResult.model_validate(found)

    async def list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        _one_page(params)
        prompts = [types.Prompt.model_validate(found.to_wire()) for found in self.front.offer.prompts]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        with _as_errors():
            found = lookups.get_prompt(self.front.offer, params.name, params.arguments)
        return types.GetPromptResult.model_validate(found)

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> JSONObject:
        _one_page(params)
        offer = self.front.offer
        skills = [skill.to_wire() for skill in offer.skills]
        return {"resultType": "complete", "skills": skills, **lookups.kept(offer)}

    async def get_skill(self, _: Context, params: SkillParams) -> JSONObject:
        with _as_errors():
            return lookups.get_skill(self.front.offer, params.uri)

    async def complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return completions of a template's variable or a prompt's argument."""
        asked = params.argument
        found = lookups.complete(self.front.offer, params.ref, asked.name, asked.value)
        return types.CompleteResult.model_validate(found)
