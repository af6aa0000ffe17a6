"""What a tool server offers, declared once: tools, resource templates, prompts, and how it introduces itself."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muniment.kernel.actor import Actor

Arguments = dict[str, Any]
JsonSchema = Mapping[str, Any]
Answer = bytes | Mapping[str, Any]
"""structuredContent: a JSON object, finished (compact UTF-8 JSON) or to be encoded."""

ERROR_SCHEMA: JsonSchema = {
    "type": "object",
    "required": ["code", "message", "hint"],
    "properties": {
        "code": {"enum": ["bad_request", "not_found", "method_not_allowed", "internal_error"]},
        "message": {"type": "string"},
        "hint": {"type": "string"},
    },
}


@dataclass(frozen=True, slots=True)
class Caller:
    """
    Who calls a tool.

    Args:
        actor: None on the public server.
        client: the address that rate limits count, after trusted proxies.
        request_id: what a log line or an internal error names.
    """

    actor: Actor | None
    client: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    One tool.

    Args:
        arguments: properties of the inputSchema; see `arguments.compile_object` for the keywords that are applied.
        required: the arguments that must be there.
        validated_later: objects among them that the handler's operation validates, to report all faults at once.
        answer: properties of the outputSchema's object; `data` is the required one.
        handler: gets validated arguments and the caller; raises Problem to refuse. May give an awaitable.
            What runs in the handler itself runs on the event loop, so anything slow is awaited.
        scope: what the caller's credential must permit; None asks for nothing.
        instant: its handler never gives an awaitable, so that a call can be answered without a task.

    Source: decisions, section 3.
    """

    name: str
    title: str
    description: str
    arguments: Mapping[str, JsonSchema]
    answer: Mapping[str, JsonSchema]
    handler: Callable[[Arguments, Caller], Answer | Awaitable[Answer]]
    required: tuple[str, ...] = ()
    validated_later: tuple[str, ...] = ()
    scope: str | None = None
    instant: bool = False
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """Give the inputSchema as clients see it."""
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.arguments), "additionalProperties": False}
        if self.required:
            schema["required"] = list(self.required)
        return schema

    @property
    def checked_schema(self) -> dict[str, Any]:
        """Return the part of the inputSchema that is checked before the handler is called."""
        schema = self.input_schema
        properties = schema["properties"] | {name: {"type": "object"} for name in self.validated_later}
        return {**schema, "properties": properties}

    @property
    def output_schema(self) -> dict[str, Any]:
        """Give the outputSchema: an answer has `data`, a failure has `error`, since some clients check both."""
        return {
            "type": "object",
            "properties": {**self.answer, "error": ERROR_SCHEMA},
            "anyOf": [{"required": ["data"]}, {"required": ["error"]}],
        }

    def to_wire(self) -> dict[str, Any]:
        """Give the tool as it stands in tools/list."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": {
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": False,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate:
    """
    Documents under one address pattern.

    Args:
        uri: an address, or a pattern with one variable in braces at its end.
        read: gets the variable's value ("" without one); gives finished JSON, raises NotFound.
        complete: gives values of the variable that begin with a text, at most as many as asked for.
    """

    uri: str
    name: str
    title: str
    description: str
    read: Callable[[str, Caller], bytes]
    complete: Callable[[str, int], list[str]] | None = None

    @property
    def variable(self) -> str:
        """Give the variable's name, or "" for a plain address."""
        return self.uri.partition("{")[2].removesuffix("}")

    @property
    def prefix(self) -> str:
        """Give what stands before the variable."""
        return self.uri.partition("{")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """
    A prompt that a person picks.

    Args:
        arguments: name to description; all are required.
        render: gets the arguments' values, gives the text that the user says.
        complete: by argument, values that begin with a text.
    """

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    render: Callable[[Mapping[str, str]], str]
    complete: Mapping[str, Callable[[str, int], list[str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """
    Everything that one tool server says about itself.

    Args:
        icon_url: address of a square SVG; "" for none.
        list_ttl_ms: how long a client may keep the lists.
        read_ttl_ms: how long a client may keep a resource.
        shared: whether what is kept may be shared between users.
    """

    name: str
    title: str
    version: str
    description: str
    instructions: str
    website_url: str
    icon_url: str = ""
    tools: tuple[Tool, ...] = ()
    resources: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    list_ttl_ms: int = 3_600_000
    read_ttl_ms: int = 30_000
    shared: bool = True

    @property
    def cache_scope(self) -> str:
        """Give the word for `shared` in results."""
        return "public" if self.shared else "private"

    @property
    def server_info(self) -> dict[str, Any]:
        """Give the Implementation object."""
        info: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "version": self.version,
            "description": self.description,
            "websiteUrl": self.website_url,
        }
        if self.icon_url:
            info["icons"] = [{"src": self.icon_url, "mimeType": "image/svg+xml", "sizes": ["any"]}]
        return info

    @property
    def capabilities(self) -> dict[str, Any]:
        """Give what clients may ask for: exactly what is served."""
        found: dict[str, Any] = {}
        if self.prompts:
            found["prompts"] = {"listChanged": False}
        if self.resources:
            found["resources"] = {"subscribe": False, "listChanged": False}
        found["tools"] = {"listChanged": False}
        if any(resource.complete for resource in self.resources) or any(prompt.complete for prompt in self.prompts):
            found["completions"] = {}
        return found
