"""The official SDK's server over the declarations of one of ours: what it answers, ours should."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, get_args

import mcp_types as types
import msgspec
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import Problem
from muniment.mcp.declarations import Caller
from muniment.mcp.protocol import transport
from muniment.mcp.protocol.transport import INVALID_PARAMS, RESOURCE_NOT_FOUND, Fault, ToolServer
from services.mcp import Answer, Headers, ask

Context = ServerRequestContext[Any, Request]
CALLER = Caller(VISITOR, "127.0.0.1", "r-1")


@contextlib.contextmanager
def as_errors(*, is_modern: bool = True) -> Iterator[None]:
    try:
        yield
    except Fault as fault:
        code = INVALID_PARAMS if is_modern and fault.code == RESOURCE_NOT_FOUND else fault.code
        raise MCPError(code, fault.message, fault.data) from None


def one_page(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "This list has only one page; call it without a cursor.")


class SkillParams(types.RequestParams):
    """The parameters of `skills/get`."""

    uri: str


class Reference:
    """The SDK's server, which offers what *front* does."""

    def __init__(self, front: ToolServer) -> None:
        self.front = front
        offer = front.offer
        lists = CacheHint(offer.list_ttl_ms, offer.cache_scope)
        read = CacheHint(offer.read_ttl_ms, offer.cache_scope)
        self.server: Server[Any] = Server(
            offer.name,
            version=offer.version,
            title=offer.title,
            description=offer.description,
            instructions=offer.instructions,
            website_url=offer.website_url,
            icons=[types.Icon.model_validate(icon) for icon in offer.server_info["icons"]],
            cache_hints={**dict.fromkeys(get_args(CacheableMethod), lists), "resources/read": read},
            get_tool_input_schema=lambda _: None,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )
        self.server.extensions = offer.extensions
        self.server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        self.server.add_request_handler("skills/get", SkillParams, self.get_skill)
        self.manager = StreamableHTTPSessionManager(
            app=self.server,
            json_response=True,
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self.loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        started: asyncio.Future[None] = self.loop.create_future()
        self._running = self.loop.create_task(self._run(started))
        self.loop.run_until_complete(started)

    async def _run(self, started: "asyncio.Future[None]") -> None:
        async with self.manager.run():
            started.set_result(None)
            await self._stop.wait()

    def close(self) -> None:
        self._stop.set()
        self.loop.run_until_complete(self._running)
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def ask(self, headers: Headers, body: bytes) -> Answer:
        return self.loop.run_until_complete(ask(self.manager.handle_request, headers, body))

    async def list_tools(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        one_page(params)
        tools = [types.Tool.model_validate(bound.tool.to_wire()) for bound in self.front.tools.values()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, _: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        bound = self.front.tools.get(params.name)
        if bound is None:
            with as_errors():
                raise transport.unknown_tool(params.name, self.front.offer)
        try:
            found = bound.tool.handler(bound.check(params.arguments or {}), CALLER)
            if asyncio.isfuture(found) or asyncio.iscoroutine(found):
                found = await found
            answer, failed = transport.encoded(found), False
        except Problem as problem:
            answer, failed = self.front._failure(problem, bound, CALLER), True
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.content.decode())],
            structured_content=msgspec.json.decode(answer.content),
            is_error=failed,
            _meta=transport.meta(answer) or None,
        )

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the resources without a variable."""
        one_page(params)
        plain = self.front.offer.plain_resources
        return types.ListResourcesResult(resources=[types.Resource.model_validate(found.to_wire()) for found in plain])

    async def list_templates(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        one_page(params)
        templates = (found for found in self.front.offer.resources if found.variable)
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate.model_validate(found.to_wire()) for found in templates]
        )

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        with as_errors(is_modern=modern):
            found = transport.read_resource(self.front.offer, params.uri, CALLER)
        return types.ReadResourceResult.model_validate(found)

    async def list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        one_page(params)
        prompts = [types.Prompt.model_validate(found.to_wire()) for found in self.front.offer.all_prompts]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        with as_errors():
            found = transport.get_prompt(self.front.offer, params.name, params.arguments)
        return types.GetPromptResult.model_validate(found)

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        one_page(params)
        offer = self.front.offer
        skills = [skill.to_wire() for skill in offer.skills]
        return {"resultType": "complete", "skills": skills, **transport.kept(offer)}

    async def get_skill(self, _: Context, params: SkillParams) -> dict[str, Any]:
        with as_errors():
            return transport.get_skill(self.front.offer, params.uri)

    async def complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return completions of a template's variable or a prompt's argument."""
        asked = params.argument
        found = transport.complete(self.front.offer, params.ref, asked.name, asked.value)
        return types.CompleteResult.model_validate(found)
