"""
The conformance suite's fixture tools, resources and prompts on the product's own transport.

Two tools are ordinary and take the thin path; the others need what only the SDK's leg can do (streams, requests to
the client, further rounds), so the front does not know them and hands them over.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from muniment.kernel.problems import BadRequest
from muniment.mcp.declarations import Declarations, Prompt, ResourceTemplate, Tool
from muniment.mcp.protocol.lookups import Lookup
from muniment.mcp.protocol.messages import Initialize
from muniment.mcp.protocol.origin import OriginPolicy
from muniment.mcp.protocol.sdk_fallback import Context, SdkFallback
from muniment.mcp.protocol.transport import ToolServer

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
KEY = b"a key that only signs states of this suite"
TEXT = {"type": "string"}
DIALECT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": TEXT, "city": TEXT}}},
    "properties": {
        "name": TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": TEXT,
        "email": TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
Outcome = types.CallToolResult | types.InputRequiredResult
Native = Callable[[Context, types.CallToolRequestParams], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTool(Tool):
    """A tool of the SDK's leg: no outputSchema, since its results are content of every type."""

    schema: dict[str, Any]

    def to_wire(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def text(content: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=content)])


OK = types.TextContent(type="text", text="ok")
IMAGE = types.ImageContent(type="image", data=PNG, mime_type="image/png")
AUDIO = types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")


def embedded(uri: str, mime_type: str, content: str) -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return types.EmbeddedResource(type="resource", resource=resource)


def content(*blocks: Any) -> Native:
    async def call(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
        return types.CallToolResult(content=list(blocks))

    return call


async def with_logging(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
    for entry in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", entry, related_request_id=ctx.request_id)
        await asyncio.sleep(0.05)
    return text("done")


async def with_progress(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(0.05)
    return text("done")


async def sampling(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=params.arguments["prompt"]))
    answer = await ctx.session.create_message([said], max_tokens=100, related_request_id=ctx.request_id)
    return text(f"LLM response: {answer.content.text}")


def eliciting(message: str | None, properties: dict[str, Any], prefix: str) -> Native:
    async def call(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
        schema = {"type": "object", "properties": properties, "required": list(properties)[:2]}
        asked = message or params.arguments["message"]
        answer = await ctx.session.elicit_form(asked, schema, related_request_id=ctx.request_id)
        return text(f"{prefix}: action={answer.action}, content={answer.content}")

    return call


async def missing_capability(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
    if ctx.session.client_capabilities is None or ctx.session.client_capabilities.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs sampling.",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return text("done")


def form(message: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def question(said: str, tokens: int = 100) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": said}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", name="string")
_required = TypeAdapter(types.InputRequiredResult)


def ask(requests: dict[str, Any], state: str | None = None) -> types.InputRequiredResult:
    found = {"resultType": "input_required", "inputRequests": requests}
    return _required.validate_python({**found, **({} if state is None else {"requestState": signed(state)})})


def signed(state: str) -> str:
    return f"{state}.{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def opened(params: types.CallToolRequestParams) -> str:
    """Return the state that the client brought back, "" without one; refuse one that is not ours."""
    if params.request_state is None:
        return ""
    state = params.request_state.rpartition(".")[0]
    if not hmac.compare_digest(signed(state), params.request_state):
        raise MCPError(types.INVALID_PARAMS, "The requestState is not one of this server.")
    return state


def once(requests: dict[str, Any], state: str | None = None) -> Native:
    """Ask until every answer is there."""

    async def call(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
        given = params.input_responses or {}
        brought = opened(params)
        if set(requests) - set(given) or (state is not None and brought != state):
            return ask(requests, state)
        shown = {key: given[key].model_dump(mode="json", exclude_none=True) for key in requests}
        return text(f"state-ok {shown}")

    return call


async def multi_round(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
    given, state = params.input_responses or {}, opened(params)
    if state == "two" and "step2" in given:
        return text("done")
    if state == "one" and "step1" in given:
        return ask({"step2": form("Step 2: What is your favorite color?", color="string")}, "two")
    return ask({"step1": form("Step 1: What is your name?", name="string")}, "one")


async def by_capabilities(ctx: Context, params: types.CallToolRequestParams) -> Outcome:
    held = ctx.session.client_capabilities
    asked = {}
    if held.sampling is not None:
        asked["capital"] = question("What is the capital of France?")
    if held.elicitation is not None:
        asked["user_name"] = NAME
    return ask(asked) if asked and not params.input_responses else text("done")


_STATUS = ["active", "inactive", "pending"]
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
NATIVE: dict[str, tuple[Native, dict[str, Any]]] = {
    "test_image_content": (content(IMAGE), {}),
    "test_audio_content": (content(AUDIO), {}),
    "test_embedded_resource": (
        content(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
        {},
    ),
    "test_multiple_content_types": (
        content(
            types.TextContent(type="text", text="Multiple content types test:"),
            IMAGE,
            embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ),
        {},
    ),
    "test_tool_with_logging": (with_logging, {}),
    "test_logging_tool": (with_logging, {}),
    "test_tool_with_progress": (with_progress, {}),
    "test_sampling": (sampling, {"prompt": TEXT}),
    "test_elicitation": (eliciting(None, {"username": TEXT, "email": TEXT}, "User response"), {"message": TEXT}),
    "test_elicitation_sep1034_defaults": (
        eliciting(
            "Please provide user information",
            {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": _STATUS, "default": "active"},
                "verified": {"type": "boolean", "default": True},
            },
            "Elicitation completed",
        ),
        {},
    ),
    "test_elicitation_sep1330_enums": (
        eliciting(
            "Please choose",
            {
                "untitledSingle": {"type": "string", "enum": _OPTIONS},
                "titledSingle": {"type": "string", "oneOf": _TITLED},
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
                "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
            },
            "Elicitation completed",
        ),
        {},
    ),
    "test_missing_capability": (missing_capability, {}),
    "test_streaming_elicitation": (once({"user_name": NAME}), {}),
    "test_custom_headers": (content(OK), {"region": {**TEXT, "x-mcp-header": "Region"}}),
    "test_input_required_result_elicitation": (once({"user_name": NAME}), {}),
    "test_input_required_result_sampling": (once({"capital_question": question("What is the capital of France?")}), {}),
    "test_input_required_result_list_roots": (once({"client_roots": ROOTS}), {}),
    "test_input_required_result_request_state": (once({"confirm": form("Please confirm", ok="boolean")}, "asked"), {}),
    "test_input_required_result_tampered_state": (once({"confirm": form("Please confirm", ok="boolean")}, "asked"), {}),
    "test_input_required_result_multiple_inputs": (
        once({"user_name": NAME, "greeting": question("Generate a greeting", 50), "client_roots": ROOTS}, "asked"),
        {},
    ),
    "test_input_required_result_multi_round": (multi_round, {}),
    "test_input_required_result_capabilities": (by_capabilities, {}),
    "json_schema_2020_12_tool": (content(OK), {}),
}  # fmt: skip


def native_schema(name: str) -> dict[str, Any]:
    return DIALECT if name == "json_schema_2020_12_tool" else {"type": "object", "properties": NATIVE[name][1]}


def said(*blocks: Any) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in blocks])


class Suite(SdkFallback):
    """The SDK's leg with everything that the suite asks for."""

    def __init__(self, front: ToolServer, *, sessions: bool) -> None:
        super().__init__(front)
        self.manager.json_response, self.manager.stateless = False, not sessions

        async def agree(ctx: Context, params: Any) -> types.EmptyResult:
            return types.EmptyResult()

        for method, shape in (
            ("logging/setLevel", types.SetLevelRequestParams),
            ("resources/subscribe", types.SubscribeRequestParams),
            ("resources/unsubscribe", types.UnsubscribeRequestParams),
        ):
            self.server.add_request_handler(method, shape, agree)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        return native_schema(name) if name in NATIVE else super().input_schema(name)

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        if params.name in NATIVE:
            return await NATIVE[params.name][0](ctx, params)
        return await super().call_tool(ctx, params)

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = params.uri
        found: Any = None
        if uri == "test://static-text":
            said_there = "This is the content of the static text resource."
            found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=said_there)
        elif uri == "test://static-binary":
            found = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        elif uri.startswith("test://template/") and uri.endswith("/data"):
            key = uri.removeprefix("test://template/").removesuffix("/data")
            body = f'{{"id":"{key}","templateTest":true,"data":"Data for ID: {key}"}}'
            found = types.TextResourceContents(uri=uri, mime_type="application/json", text=body)
        if found is None:
            return await super().read_resource(ctx, params)
        return types.ReadResourceResult(contents=[found])

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        given = params.arguments or {}
        after = types.TextContent(type="text", text="Please process the embedded resource above.")
        match params.name:
            case "test_prompt_with_embedded_resource":
                there = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
                return said(there, after)
            case "test_prompt_with_image":
                return said(IMAGE, types.TextContent(type="text", text="Please analyze the image above."))
            case "test_input_required_result_prompt":
                if "user_context" not in (params.input_responses or {}):
                    asked = form("What context should the prompt use?", context="string")
                    return ask({"user_context": asked})
                return said(types.TextContent(type="text", text="With your context."))
            case _:
                return await super().get_prompt(ctx, params)


def fail(arguments: Any, caller: Any) -> bytes:
    raise BadRequest("This tool intentionally returns an error for testing", "There is no way around it.")


def fixture_offer() -> Declarations:
    ordinary = (
        Tool(
            name="test_simple_text",
            title="Simple text",
            description="Answers with a text.",
            arguments={},
            answer={"data": {"type": "object"}},
            handler=lambda arguments, caller: {"data": {"text": "This is a simple text response for testing."}},
        ),
        Tool(
            name="test_error_handling",
            title="Error",
            description="Always fails.",
            arguments={},
            answer={"data": {"type": "object"}},
            handler=fail,
        ),
    )
    native = tuple(
        NativeTool(
            name=name,
            title=name,
            description=f"The suite's {name}.",
            arguments={},
            answer={},
            handler=fail,
            schema=native_schema(name),
        )
        for name in NATIVE
    )

    def nothing(key: str, caller: Any) -> bytes:
        raise BadRequest("There is nothing here.", "Ask for another.")

    def no_values(prefix: str, limit: int) -> list[str]:
        return []

    def resource(uri: str, name: str, complete: Any = None) -> ResourceTemplate:
        return ResourceTemplate(uri=uri, name=name, title=name, description=name, read=nothing, complete=complete)

    def prompt(name: str, render: str, **arguments: str) -> Prompt:
        return Prompt(
            name=name,
            title=name,
            description=name,
            arguments=arguments,
            render=lambda given: render.format(**given),
            complete=dict.fromkeys(arguments, no_values),
        )

    return Declarations(
        name="fixtures",
        title="Fixtures",
        version="1",
        description="The conformance suite's fixtures.",
        instructions="For the conformance suite.",
        website_url="http://127.0.0.1",
        tools=(*ordinary, *native),
        resources=(
            resource("test://static-text", "text"),
            resource("test://static-binary", "binary"),
            resource("test://watched-resource", "watched"),
            resource("test://template/{id}/data", "template", no_values),
        ),
        prompts=(
            prompt("test_simple_prompt", "This is a simple prompt for testing."),
            prompt(
                "test_prompt_with_arguments",
                "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'",
                arg1="First test argument",
                arg2="Second test argument",
            ),
            prompt("test_prompt_with_embedded_resource", "", resourceUri="URI of the resource to embed"),
            prompt("test_prompt_with_image", ""),
            prompt("test_input_required_result_prompt", ""),
        ),
    )


NATIVE_PROMPTS = {
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_input_required_result_prompt",
}


class FixtureServer(ToolServer):
    """Leaves the look-ups to the SDK for which :class:`Suite` has answers that only the SDK can express."""

    def understood(self, headers, body, caller):
        asked = super().understood(headers, body, caller)
        return None if isinstance(asked, Lookup) and is_native(asked.params) else asked


def is_native(params) -> bool:
    name, uri = getattr(params, "name", ""), getattr(params, "uri", "")
    return name in NATIVE or name in NATIVE_PROMPTS or uri.startswith("test://")


class SessionServer(FixtureServer):
    """Hands what belongs to a session to the SDK: initialize, and every GET and DELETE."""

    async def _answer(self, scope, receive, send):
        if scope["method"] not in {"GET", "DELETE"}:
            return await super()._answer(scope, receive, send)
        admitted = await self._admit(scope)
        await self._forward_to_sdk(scope, receive, send, body=b"", admitted=admitted)
        return None

    def _understood_legacy(self, message, caller):
        return None if isinstance(message, Initialize) else super()._understood_legacy(message, caller)


def fixture_server(*, sessions: bool) -> ToolServer:
    """
    Return the fixtures behind the product's transport.

    Args:
        sessions: as the scenarios need in which the server asks the client, in the older eras.
    """
    kind = SessionServer if sessions else FixtureServer
    server = kind(fixture_offer(), gate=OriginPolicy(""), reference=lambda front: Suite(front, sessions=sessions))
    for name in NATIVE:
        del server.tools[name]
    return server
