"""
Look-ups: one resource, prompt, completion or skill of what a server offers, the same for the thin path and the SDK.

A result is a JSON object without the members that only one generation of the protocol has.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Problem
from muniment.mcp import web_pages
from muniment.mcp.declarations import PROVENANCE, Answer, Caller, Declarations, Marked
from muniment.mcp.protocol.http import JSON_HEADERS, Reply
from muniment.mcp.protocol.messages import CompletionParams, LookupParams, NameParams
from muniment.mcp.protocol.replies import result

TOOL: Final = b"tools/call"
"""The method of a look-up of a tool that there is not."""
MAX_COMPLETIONS: Final = 100
INVALID_PARAMS: Final = -32602
_RESOURCE_NOT_FOUND_LEGACY: Final = -32002
_JSON: Final = "application/json"
_encode = msgspec.json.encode


class Unoffered(Exception):  # noqa: N818 - an answer of the protocol
    """
    The server does not offer what a request names.

    Args:
        data: the member of the error, if it has one.
        is_resource: whether a resource was named, whose error has a code of its own in the legacy protocols.
    """

    def __init__(self, message: str, data: JSONObject | None = None, *, is_resource: bool = False) -> None:
        super().__init__(message)
        self.message, self.data, self.is_resource = message, data, is_resource

    def code(self, *, is_modern: bool) -> int:
        return _RESOURCE_NOT_FOUND_LEGACY if self.is_resource and not is_modern else INVALID_PARAMS


class Lookup(NamedTuple):
    """A common look-up, with the end of a modern result; None for a legacy one."""

    request_id: bytes
    method: bytes
    params: LookupParams
    end: bytes | None

    def is_named(self, header: bytes | None) -> bool:
        """Return whether a modern request repeats the name of what it asks for in its *header*, if it has to."""
        if self.method == b"resources/read":
            return header == self.params.uri.encode()  # type: ignore[union-attr]  # the parameters of that method
        return not isinstance(self.params, NameParams) or header == self.params.name.encode()

    @classmethod
    def of_unknown_tool(cls, name: str, request_id: bytes, end: bytes | None) -> "Lookup":
        return cls(request_id, TOOL, NameParams(name=name), end)


def encoded(answer: Answer) -> Marked:
    if isinstance(answer, Marked):
        return answer
    return Marked(answer if isinstance(answer, bytes) else _encode(answer))


def methods(offer: Declarations) -> frozenset[bytes]:
    """Return the methods of look-ups that a server has."""
    there = {
        b"resources/read": "resources" in offer.capabilities,
        b"prompts/get": bool(offer.prompts),
        b"completion/complete": "completions" in offer.capabilities,
        b"skills/get": bool(offer.skills),
    }
    return frozenset(method for method, is_there in there.items() if is_there)


def meta(answer: Marked) -> JSONObject:
    """Return the `_meta` of a result with the marks of *answer*."""
    return {PROVENANCE: msgspec.json.decode(answer.marks)} if answer.marks else {}


def read_resource(offer: Declarations, uri: str, caller: Caller) -> JSONObject:
    """Return the contents of the resource at *uri*."""
    text = next((found for found in offer.texts if found.is_at(uri)), None)
    if text is not None:
        shown = {"_meta": dict(text.meta)} if text.meta else {}
        return {"contents": [{"uri": uri, "mimeType": text.mime_type, "text": text.text, **shown}]}
    message = f"Resource not found: {uri[:200]}."
    for found in offer.resources:
        if uri != found.uri if not found.variable else not uri.startswith(found.prefix):
            continue
        try:
            answer = encoded(found.read(unquote(uri.removeprefix(found.prefix)) if found.variable else "", caller))
        except Problem as problem:
            message = f"{problem.message} {problem.hint}"
            break
        marked = {"_meta": meta(answer)} if answer.marks else {}
        return {"contents": [{"uri": uri, "mimeType": _JSON, "text": answer.content.decode()}], **marked}
    raise Unoffered(message, {"uri": uri}, is_resource=True)


def get_prompt(offer: Declarations, name: str, arguments: Mapping[str, str] | None) -> JSONObject:
    """Return the messages of the prompt *name*."""
    found = next((prompt for prompt in offer.prompts if prompt.name == name), None)
    if found is None:
        raise Unoffered(f"Unknown prompt: {name[:100]}")
    given = arguments or {}
    for required in found.arguments:
        if not given.get(required, "").strip():
            raise Unoffered(f"The argument {required} of the prompt {found.name} is missing.")
    message = {"role": "user", "content": {"type": "text", "text": found.render(given)}}
    return {"description": found.description, "messages": [message]}


def get_skill(offer: Declarations, uri: str) -> JSONObject:
    """Return the skill at *uri*, with what the extension says of every result."""
    for skill in offer.skills:
        if skill.uri == uri:
            return {"skill": skill.to_wire(), "resultType": "complete", **kept(offer)}
    raise Unoffered(f"Skill not found: {uri[:200]}.", {"uri": uri})


def kept(offer: Declarations) -> JSONObject:
    """Return how long clients may keep what does not change while the server runs."""
    return {"ttlMs": offer.list_ttl_ms, "cacheScope": offer.cache_scope}


def complete(offer: Declarations, ref: Any, name: str, value: str) -> JSONObject:
    """Return completions of the argument *name* of a prompt, or of a resource's variable."""
    find = None
    uri = getattr(ref, "uri", None)
    if uri is not None:
        template = next((found for found in offer.resources if found.uri == uri), None)
        if template is not None and template.variable == name:
            find = template.complete
    else:
        prompt = next((found for found in offer.prompts if found.name == ref.name), None)
        find = prompt.complete.get(name) if prompt else None
    values = find(value, MAX_COMPLETIONS + 1) if find else []
    return {"completion": {"values": values[:MAX_COMPLETIONS], "hasMore": len(values) > MAX_COMPLETIONS}}


def answer(asked: Lookup, offer: Declarations, caller: Caller) -> Reply:
    """Return the reply to a common look-up."""
    end = asked.end
    try:
        found = _found(asked, offer, caller)
    except Unoffered as error:
        return refusal(asked.request_id, error, is_modern=end is not None)
    if end is None:
        return result(asked.request_id, _encode(found), b"}")
    marks = _encode(found.pop("_meta"))[1:-1] + b"," if "_meta" in found else b""
    return result(asked.request_id, _encode({**found, "resultType": "complete"})[:-1], b',"_meta":{', marks, end)


def refusal(request_id: bytes, error: Unoffered, *, is_modern: bool) -> Reply:
    """Return the reply to a request that names something else than what is offered."""
    found = {"code": error.code(is_modern=is_modern), "message": error.message}
    data = {} if error.data is None else {"data": error.data}
    body = b'{"jsonrpc":"2.0","id":' + request_id + b',"error":' + _encode({**found, **data}) + b"}"
    return Reply(400 if is_modern else 200, JSON_HEADERS, body)


def unknown_tool(name: str, offer: Declarations) -> Unoffered:
    return Unoffered(web_pages.unknown_tool(name, [tool.name for tool in offer.tools], offer.website_url))


def _found(asked: Lookup, offer: Declarations, caller: Caller) -> JSONObject:
    params = asked.params
    if isinstance(params, NameParams):
        if asked.method == TOOL:
            raise unknown_tool(params.name, offer)
        return get_prompt(offer, params.name, params.arguments)
    if isinstance(params, CompletionParams):
        return complete(offer, params.ref, params.argument.name, params.argument.value)
    if asked.method == b"skills/get":
        return get_skill(offer, params.uri)
    found = read_resource(offer, params.uri, caller)
    return found if asked.end is None else {**found, "ttlMs": offer.read_ttl_ms, "cacheScope": offer.cache_scope}
