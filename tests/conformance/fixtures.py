"""
The conformance suite's fixture tools, resources and prompts on the product's own transport.

Some are ordinary declarations. The others have results that no tool of the product has (pictures, sounds, several
questions at once), so the server here writes those results itself; everything before and after is the product's.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from muniment.kernel.problems import BadRequest
from muniment.mcp.declarations import Declarations, Prompt, Report, ResourceTemplate, Tool
from muniment.mcp.extensions import TextResource
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.protocol.transport import (
    INVALID_PARAMS,
    CallParams,
    Fault,
    Lookup,
    ToolCall,
    ToolServer,
    fault_reply,
    result,
)

MISSING_CAPABILITY = -32021
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
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
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A call of a fixture tool, or of a prompt."""

    params: CallParams
    capabilities: dict[str, Any]
    report: Report | None = None

    @property
    def answers(self) -> dict[str, Any]:
        return self.params.answers or {}


Native = Callable[[Asked], Awaitable[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTool(Tool):
    """A tool without an outputSchema, since its results are content of every type."""

    schema: dict[str, Any]

    def to_wire(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def text(content: str) -> Result:
    return {"content": [{"type": "text", "text": content}], "isError": False}


OK = {"type": "text", "text": "ok"}
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def embedded(uri: str, mime_type: str, content: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": content}}


def content(*blocks: Any) -> Native:
    async def call(asked: Asked) -> Result:
        return {"content": list(blocks), "isError": False}

    return call


async def with_progress(asked: Asked) -> Result:
    for done in (0, 50, 100):
        if asked.report is not None:
            await asked.report(done, 100, f"{done} of 100")
        await asyncio.sleep(0.05)
    return text("done")


async def missing_capability(asked: Asked) -> Result:
    if "sampling" not in asked.capabilities:
        raise Fault(MISSING_CAPABILITY, "This tool needs sampling.", {"requiredCapabilities": {"sampling": {}}})
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


def ask(requests: dict[str, Any], state: str | None = None) -> Result:
    found = {"resultType": "input_required", "inputRequests": requests}
    return found if state is None else {**found, "requestState": signed(state)}


def signed(state: str) -> str:
    return f"{state}.{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def opened(params: CallParams) -> str:
    """Return the state that the client brought back, "" without one; refuse one that is not ours."""
    if params.state is None:
        return ""
    state = params.state.rpartition(".")[0]
    if not hmac.compare_digest(signed(state), params.state):
        raise Fault(INVALID_PARAMS, "The requestState is not one of this server.")
    return state


def once(requests: dict[str, Any], state: str | None = None) -> Native:
    """Ask until every answer is there."""

    async def call(asked: Asked) -> Result:
        brought = opened(asked.params)
        if set(requests) - set(asked.answers) or (state is not None and brought != state):
            return ask(requests, state)
        return text(f"state-ok { {key: asked.answers[key] for key in requests} }")

    return call


async def multi_round(asked: Asked) -> Result:
    state = opened(asked.params)
    if state == "two" and "step2" in asked.answers:
        return text("done")
    if state == "one" and "step1" in asked.answers:
        return ask({"step2": form("Step 2: What is your favorite color?", color="string")}, "two")
    return ask({"step1": form("Step 1: What is your name?", name="string")}, "one")


async def by_capabilities(asked: Asked) -> Result:
    questions = {}
    if "sampling" in asked.capabilities:
        questions["capital"] = question("What is the capital of France?")
    if "elicitation" in asked.capabilities:
        questions["user_name"] = NAME
    return ask(questions) if questions and not asked.answers else text("done")


NATIVE: dict[str, Native] = {
    "test_image_content": content(IMAGE),
    "test_audio_content": content(AUDIO),
    "test_embedded_resource": content(
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": content(
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_tool_with_progress": with_progress,
    "test_logging_tool": content(OK),  # which logs nothing, as it must without a level
    "test_missing_capability": missing_capability,
    "test_streaming_elicitation": once({"user_name": NAME}),
    "test_input_required_result_elicitation": once({"user_name": NAME}),
    "test_input_required_result_sampling": once({"capital_question": question("What is the capital of France?")}),
    "test_input_required_result_list_roots": once({"client_roots": ROOTS}),
    "test_input_required_result_request_state": once({"confirm": form("Please confirm", ok="boolean")}, "asked"),
    "test_input_required_result_tampered_state": once({"confirm": form("Please confirm", ok="boolean")}, "asked"),
    "test_input_required_result_multiple_inputs": once(
        {"user_name": NAME, "greeting": question("Generate a greeting", 50), "client_roots": ROOTS}, "asked"
    ),
    "test_input_required_result_multi_round": multi_round,
    "test_input_required_result_capabilities": by_capabilities,
    "json_schema_2020_12_tool": content(OK),
}


def native_schema(name: str) -> dict[str, Any]:
    return DIALECT if name == "json_schema_2020_12_tool" else {"type": "object", "properties": {}}


def said(*blocks: Any) -> Result:
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


def native_lookup(asked: Lookup, answers: dict[str, Any]) -> Result | None:
    """Return the result of a look-up that no declaration of the product has; None for any other."""
    uri, name = getattr(asked.params, "uri", ""), getattr(asked.params, "name", "")
    if asked.method == "resources/read" and uri == "test://static-binary":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PNG}]}
    if asked.method == "resources/read" and uri.startswith("test://template/") and uri.endswith("/data"):
        key = uri.removeprefix("test://template/").removesuffix("/data")
        body = f'{{"id":"{key}","templateTest":true,"data":"Data for ID: {key}"}}'
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": body}]}
    return native_prompt(name, asked, answers)


def native_prompt(name: str, asked: Lookup, answers: dict[str, Any]) -> Result | None:
    if name == "test_prompt_with_embedded_resource":
        there = embedded(asked.params.arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return said(there, {"type": "text", "text": "Please process the embedded resource above."})
    if name == "test_prompt_with_image":
        return said(IMAGE, {"type": "text", "text": "Please analyze the image above."})
    if name == "test_input_required_result_prompt":
        if "user_context" not in answers:
            return ask({"user_context": form("What context should the prompt use?", context="string")})
        return said({"type": "text", "text": "With your context."})
    return None


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
            waits=True,
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
            resource("test://static-binary", "binary"),
            resource("test://watched-resource", "watched"),
            resource("test://template/{id}/data", "template", no_values),
        ),
        views=(
            TextResource(
                uri="test://static-text",
                name="text",
                title="text",
                description="text",
                mime_type="text/plain",
                text="This is the content of the static text resource.",
            ),
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


class FixtureServer(ToolServer):
    """Writes the results that no tool of the product has."""

    def _asked(self, headers, message, request_id, caller, *, is_modern):
        asked = super()._asked(headers, message, request_id, caller, is_modern=is_modern)
        params = message.params or {}
        if isinstance(asked, ToolCall) and asked.bound.tool.name in NATIVE:
            capabilities = params["_meta"][CAPABILITIES] if is_modern else {}
            # A call that may report progress is one that waits.
            asked.params.arguments = {"capabilities": capabilities, "waitSeconds": 1}
        if isinstance(asked, Lookup):
            found = native_lookup(asked, params.get("inputResponses", {}))
            return asked if found is None else self._native(request_id, found, asked.end, **lifetime(asked))
        return asked

    async def _answer_call(self, asked, admitted, report=None):
        native = NATIVE.get(asked.bound.tool.name)
        if native is None:
            return await super()._answer_call(asked, admitted, report)
        try:
            found = await native(Asked(asked.params, asked.params.arguments["capabilities"], report))
        except Fault as fault:
            return fault_reply(fault, asked.request_id, is_modern=asked.end is not None)
        return self._native(asked.request_id, found, asked.end)

    @staticmethod
    def _native(request_id, found, end, **kept):
        if end is None:
            return result(request_id, msgspec.json.encode(found), b"}")
        return result(
            request_id, msgspec.json.encode({"resultType": "complete", **found, **kept})[:-1], b',"_meta":{', end
        )


def lifetime(asked: Lookup) -> dict[str, Any]:
    return {"ttlMs": 0, "cacheScope": "public"} if asked.method == "resources/read" else {}


def fixture_server() -> ToolServer:
    """Return the fixtures behind the product's transport."""
    return FixtureServer(fixture_offer(), gate=OriginPolicy(""))
