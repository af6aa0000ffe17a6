"""
The fallback to the SDK's server for uncommon requests, with the same declarations.

Importing the MCP SDK takes about 1.7 s of CPU, so nothing imports this before the socket listens.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import unquote

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
from muniment.kernel.problems import Problem
from muniment.mcp.declarations import INPUT, PROVENANCE, Caller, InputRequired, Marked
from muniment.mcp.protocol.admission import Admitted
from muniment.mcp.protocol.transport import ADMITTED, encoded

if TYPE_CHECKING:
    from muniment.mcp.protocol.transport import ToolServer

Context = ServerRequestContext[Any, Request]
_RESOURCE_NOT_FOUND_LEGACY = -32002
_JSON = "application/json"
MAX_COMPLETIONS = 100


def _one_page(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "This list has only one page; call it without a cursor.")


def _meta(answer: Marked) -> dict[str, Any] | None:
    return {PROVENANCE: msgspec.json.decode(answer.marks)} if answer.marks else None


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
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
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
            _meta=_meta(answer),
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
        caller = self._admitted(ctx).caller
        uri = params.uri
        text = next((found for found in self.front.offer.texts if found.is_at(uri)), None)
        if text is not None:
            shown = types.TextResourceContents(
                uri=uri, mime_type=text.mime_type, text=text.text, _meta=dict(text.meta) or None
            )
            return types.ReadResourceResult(contents=[shown])
        message = f"Resource not found: {uri[:200]}."
        for found in self.front.offer.resources:
            if uri != found.uri if not found.variable else not uri.startswith(found.prefix):
                continue
            try:
                answer = encoded(found.read(unquote(uri.removeprefix(found.prefix)) if found.variable else "", caller))
            except Problem as problem:
                message = f"{problem.message} {problem.hint}"
                break
            contents = types.TextResourceContents(uri=uri, mime_type=_JSON, text=answer.content.decode())
            return types.ReadResourceResult(contents=[contents], _meta=_meta(answer))
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(types.INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND_LEGACY, message, {"uri": uri})

    async def list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        _one_page(params)
        prompts = [types.Prompt.model_validate(found.to_wire()) for found in self.front.offer.prompts]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        found = next((prompt for prompt in self.front.offer.prompts if prompt.name == params.name), None)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        given = params.arguments or {}
        for name in found.arguments:
            if not given.get(name, "").strip():
                raise MCPError(types.INVALID_PARAMS, f"The argument {name} of the prompt {found.name} is missing.")
        content = types.TextContent(type="text", text=found.render(given))
        return types.GetPromptResult(
            description=found.description, messages=[types.PromptMessage(role="user", content=content)]
        )

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> JSONObject:
        _one_page(params)
        return self._skills_result(skills=[skill.to_wire() for skill in self.front.offer.skills])

    async def get_skill(self, _: Context, params: SkillParams) -> JSONObject:
        for skill in self.front.offer.skills:
            if skill.uri == params.uri:
                return self._skills_result(skill=skill.to_wire())
        raise MCPError(types.INVALID_PARAMS, f"Skill not found: {params.uri[:200]}.", {"uri": params.uri})

    def _skills_result(self, **members: Any) -> JSONObject:
        offer = self.front.offer
        return {
            "resultType": "complete",
            **members,
            "ttlMs": offer.list_ttl_ms,
            "cacheScope": offer.cache_scope,
        }

    async def complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return completions of a template's variable or a prompt's argument."""
        ref, asked = params.ref, params.argument
        find = None
        if isinstance(ref, types.ResourceTemplateReference):
            template = next((found for found in self.front.offer.resources if found.uri == ref.uri), None)
            if template is not None and template.variable == asked.name:
                find = template.complete
        else:
            prompt = next((found for found in self.front.offer.prompts if found.name == ref.name), None)
            find = prompt.complete.get(asked.name) if prompt else None
        values = find(asked.value, MAX_COMPLETIONS + 1) if find else []
        return types.CompleteResult(
            completion=types.Completion(values=values[:MAX_COMPLETIONS], has_more=len(values) > MAX_COMPLETIONS)
        )
