"""Declarations of a tool server: tools, resource templates, prompts, and its description."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from muniment.kernel.actor import Actor
from muniment.kernel.asgi import Receive, Scope
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.mcp.extensions import APP_TYPE, SKILLS, UI, Skill, TextResource
from muniment.store.published import ChangeRow

Arguments = JSONObject
JsonSchema = JSONMapping
PROVENANCE = "io.muniment/provenance"
"""The name of the marks in `_meta`: a prefix in reverse DNS notation, as the protocol asks for."""


class Marked(NamedTuple):
    """
    An encoded answer with the provenance of its items.

    Args:
        content: structuredContent.
        marks: the member `PROVENANCE` of the result's `_meta`; empty for none. See `muniment.mcp.tools.answers`.
    """

    content: bytes
    marks: bytes = b""


Answer = bytes | JSONMapping | Marked
"""structuredContent: a JSON object, encoded (compact UTF-8 JSON) or not; with its marks if it has free text."""

_LIMITS: Final = {"minimum": (1, 1_000_000), "maximum": (0, 1_000_000), "maxItems": (0, 30)}
"""Limits that models are shown: only those between two numbers."""
_SHOWN: Final = frozenset({"type", "enum", "properties", "required", "items", "anyOf", "format", "description"})
"""All other keywords that are published: what every client's SDK loads, also those that make schemas strict."""
_NULLABLE: Final = frozenset({"boolean", "integer", "number"})
ERROR_SCHEMA: JsonSchema = {"type": "object", "required": ["code", "message", "hint"]}


class NotAtOnce(Exception):  # noqa: N818 - a turn, not an error
    """The call takes long, and its caller does not wait."""


class InputRequired(Exception):  # noqa: N818 - a turn of the conversation, not an error
    """
    The client must ask its user, and repeat the call with the answer.

    Args:
        message: the message for the user.
        state: the client returns it with the answer.

    Source: MCP specification 2026-07-28, input required (SEP-2322).
    """

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.message, self.state = message, state

    def to_wire(self) -> JSONObject:
        """Return the members of the result."""
        form = {"mode": "form", "message": self.message, "requestedSchema": {"type": "object", "properties": {}}}
        requests = {INPUT: {"method": "elicitation/create", "params": form}}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": self.state}


INPUT: Final = "confirm"
"""The name of the question in `inputRequests`."""
Report = Callable[[int, int, str], Awaitable[None]]
"""Tells the client how much is done, of how much, and what."""
Follow = Callable[[Collection[str], Scope, Receive], AsyncGenerator[Sequence[ChangeRow], None]]
"""
Yields the changes that are published while the client of a request listens; none now and then.

It is given the names that the client keeps in memory meanwhile.
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """
    The caller of a tool.

    Args:
        actor: a visitor on the public server.
        client: the address for rate limits, after trusted proxies.
        request_id: the id for logs and internal errors.
        elicits: the client can ask its user by a form.
        answer: the user's answer to such a question: accept, decline or cancel; "" if there was none.
        state: the state of the question that the client returns.
        report: sends progress (done, total, words) to a client that asked for it.
        waits: whether the call may take long.
    """

    actor: Actor
    client: str
    request_id: str
    elicits: bool = False
    answer: str = ""
    state: str = ""
    report: Report | None = None
    waits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    A tool.

    Args:
        arguments: properties of the inputSchema; see `arguments.compile_arguments` for the supported keywords.
        validated_later: objects among them that the handler's operation validates, to report all faults at once.
        answer: properties of the outputSchema's object.
        promised: those that every answer has.
        handler: gets validated arguments and the caller; raises Problem for errors. It runs on the event loop, so it
            must return an awaitable for slow work.
        scope: the scope that the caller needs; None if none.
        keys: arguments that name documents, by their kind; they take addresses of the registry too.
        instant: the handler returns no awaitable to a caller who cannot wait; it raises NotAtOnce.
        view: the address of the view that clients may show with an answer; "" for none.
        waits: the handler waits, as long as the argument ``waitSeconds`` says or for a statement; it is canceled when
            the client goes away.

    Source: decisions, section 3.
    """

    name: str
    title: str
    description: str
    arguments: Mapping[str, JsonSchema]
    answer: Mapping[str, JsonSchema]
    handler: Callable[[Arguments, Caller], Answer | Awaitable[Answer]]
    promised: tuple[str, ...] = ("data",)
    required: tuple[str, ...] = ()
    validated_later: tuple[str, ...] = ()
    scope: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    instant: bool = False
    view: str = ""
    waits: bool = False
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    @property
    def input_schema(self) -> JSONObject:
        """Return the schema of the arguments with every limit; unknown arguments are refused too."""
        schema: JSONObject = {"type": "object", "properties": dict(self.arguments)}
        if self.required:
            schema["required"] = list(self.required)
        return schema

    @property
    def output_schema(self) -> JSONObject:
        """Return the outputSchema: an answer has what it promises, or `error`; some clients validate both."""
        return {
            "type": "object",
            "properties": {**self.answer, "error": ERROR_SCHEMA},
            "anyOf": [{"required": list(self.promised)}, {"required": ["error"]}],
        }

    def to_wire(self) -> JSONObject:
        wire: JSONObject = {}
        if self.view:
            wire["_meta"] = {"ui": {"resourceUri": self.view}}
        wire |= {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": published(self.input_schema),
            "outputSchema": self.output_schema,
            "annotations": {
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": False,
            },
        }
        return wire


def published(schema: JSONObject) -> JSONObject:
    """
    Return an inputSchema as clients load it, and as a model should see it, which pays for each byte.

    Limits that no ordinary value reaches are checked, but not shown; errors name them. Some clients make every argument
    required, so that null is taken for an optional one of which no other value says that it is absent.
    """
    found = _published(schema)
    required = schema.get("required", ())
    for name, inner in schema["properties"].items():
        if name not in required and "default" not in inner:
            found["properties"][name] = _or_null(found["properties"][name])
    return found


def _published(schema: JSONMapping, *, is_of_row: bool = False) -> JSONObject:
    """
    Return a schema inside.

    Args:
        is_of_row: it is a member of a row in a list: one without a value is left out, so that null is not shown.
    """
    found = _shown_keywords(_without_needless_null(schema, is_of_row=is_of_row))
    if type(found.get("type")) is list:
        kind, *_ = found["type"]
        # An empty text clears a field as null does.
        if is_of_row or kind == "string":
            found["type"] = kind
    if "enum" in found:
        found = {"type": "string", **found}  # some vendors take choices of declared strings alone
    if "properties" in found:
        members = found["properties"]
        found["properties"] = {name: _published(each, is_of_row=is_of_row) for name, each in members.items()}
    if "items" in found:
        found["items"] = _published(found["items"], is_of_row=True)
    if "anyOf" in found:
        found["anyOf"] = [_published(each, is_of_row=is_of_row) for each in found["anyOf"]]
    return found


def _shown_keywords(schema: JSONMapping) -> JSONObject:
    """Return the keywords of a schema that help a model; of the limits, those that ordinary values may reach."""
    shown = {}
    for keyword, value in schema.items():
        is_telling_limit = keyword in _LIMITS and _is_telling(keyword, value)
        if keyword in _SHOWN or is_telling_limit:
            shown[keyword] = value
    return shown


def _without_needless_null(schema: JSONMapping, *, is_of_row: bool) -> JSONMapping:
    """Return a schema whose alternatives lack null where an empty list says the same; a single one is by itself."""
    alternatives = schema.get("anyOf", ())
    takes_list = any("items" in each for each in alternatives)
    if not alternatives or not (takes_list or is_of_row):
        return schema
    kept = [each for each in alternatives if each != {"type": "null"}]
    rest = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    if len(kept) == 1:
        return {**kept[0], **rest}
    return {**rest, "anyOf": kept}


def _or_null(schema: JSONObject) -> JSONObject:
    """Return the schema of a value, or null where there is no empty value: text, lists and objects have one."""
    if "enum" in schema:
        # Not as a second type: some vendors refuse a list of types beside choices.
        choice = dict(schema)
        either: JSONObject = {"anyOf": [choice, {"type": "null"}]}
        if "description" in choice:
            either["description"] = choice.pop("description")
        return either
    if schema["type"] not in _NULLABLE:
        return schema
    return {**schema, "type": [schema["type"], "null"]}


def _is_telling(key: str, limit: int) -> bool:
    least, most = _LIMITS[key]
    return least < limit < most


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate:
    """
    Documents under one URI pattern.

    Args:
        uri: a URI, or a pattern with one variable in braces at its end.
        read: gets the variable's value ("" without one); returns JSON, raises NotFound.
        complete: returns at most a number of values of the variable that begin with a text.
    """

    uri: str
    name: str
    title: str
    description: str
    read: Callable[[str, Caller], Answer]
    complete: Callable[[str, int], list[str]] | None = None

    @property
    def variable(self) -> str:
        """Return the variable's name; "" for a plain URI."""
        return self.uri.partition("{")[2].removesuffix("}")

    @property
    def prefix(self) -> str:
        """Return the part before the variable."""
        return self.uri.partition("{")[0]

    def is_of(self, uri: str) -> bool:
        """Return whether *uri* is one of the pattern, or the plain URI itself."""
        return uri.startswith(self.prefix) if self.variable else uri == self.uri

    def to_wire(self) -> JSONObject:
        found = {"name": self.name, "title": self.title, "description": self.description}
        return {"uriTemplate" if self.variable else "uri": self.uri, **found, "mimeType": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """
    A prompt that a user picks.

    Args:
        arguments: name to description; all are required.
        render: gets the arguments' values, returns the user's message.
        complete: returns, by argument, the values that begin with a text.
    """

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    render: Callable[[Mapping[str, str]], str]
    complete: Mapping[str, Callable[[str, int], list[str]]] = field(default_factory=dict)

    def to_wire(self) -> JSONObject:
        given = [{"name": name, "description": text, "required": True} for name, text in self.arguments.items()]
        return {"name": self.name, "title": self.title, "description": self.description, "arguments": given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """
    Everything that a tool server declares.

    Args:
        icon_url: the URL of a square SVG; "" for none.
        changing_prompts: returns the prompts that change while the server runs, the same tuple until they do.
        list_ttl_ms: how long clients may cache lists.
        read_ttl_ms: how long clients may cache resources.
        shared: whether caches may be shared between users.
        drain: ends the calls that wait, before the process does.
        follow: yields the changes of published documents while a client listens; without it none can be subscribed to.
        views: HTML of the tools' views.
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
    changing_prompts: Callable[[], tuple[Prompt, ...]] = tuple
    views: tuple[TextResource, ...] = ()
    skills: tuple[Skill, ...] = ()
    list_ttl_ms: int = 3_600_000
    read_ttl_ms: int = 30_000
    shared: bool = True
    drain: Callable[[], None] = lambda: None
    follow: Follow | None = None

    @property
    def cache_scope(self) -> Literal["public", "private"]:
        """Return `shared` in the protocol's words."""
        return "public" if self.shared else "private"

    @property
    def texts(self) -> tuple[TextResource, ...]:
        """Return the texts of the server itself: views and skills."""
        return (*self.views, *(skill.resource for skill in self.skills))

    @property
    def all_prompts(self) -> tuple[Prompt, ...]:
        return (*self.prompts, *self.changing_prompts())

    @property
    def plain_resources(self) -> "tuple[ResourceTemplate | TextResource, ...]":
        """Return what has one address, without a variable."""
        return (*(each for each in self.resources if not each.variable), *self.texts)

    @property
    def extensions(self) -> dict[str, JSONObject]:
        """Return the extensions of the protocol that the server offers, with their settings."""
        found: dict[str, JSONObject] = {}
        if self.views:
            found[UI] = {"mimeTypes": [APP_TYPE]}
        if self.skills:
            found[SKILLS] = {}
        return found

    @property
    def server_info(self) -> JSONObject:
        info: JSONObject = {
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
    def capabilities(self) -> JSONObject:
        found: JSONObject = {}
        if self.prompts:
            found["prompts"] = {"listChanged": False}
        if self.resources or self.texts:
            # Only the modern generation has subscriptions here: `ToolServer` says so in its discovery.
            found["resources"] = {"subscribe": False, "listChanged": False}
        found["tools"] = {"listChanged": False}
        if any(resource.complete for resource in self.resources) or any(prompt.complete for prompt in self.prompts):
            found["completions"] = {}
        if self.extensions:
            found["extensions"] = self.extensions
        return found
