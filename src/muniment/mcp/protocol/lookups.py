"""
Look-ups: one resource, prompt, completion or skill of what a server offers.

A result is a JSON object without the members that only one generation of the protocol has.

`Finished` results depend only on what a server offers and on the caller's scopes, and are encoded once: discovery, the
handshake and the lists, without the request's id.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Problem
from muniment.mcp import web_pages
from muniment.mcp.declarations import PROVENANCE, Answer, Caller, Declarations, Marked, Tool
from muniment.mcp.protocol import messages
from muniment.mcp.protocol.http import Reply
from muniment.mcp.protocol.messages import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    CompletionParams,
    Fault,
    LookupParams,
    NameParams,
    UriParams,
    fault_reply,
    result,
)

TOOL: Final = "tools/call"
"""The method of a look-up of an unknown tool."""
MAX_COMPLETIONS: Final = 100
_JSON: Final = "application/json"
_encode = msgspec.json.encode


class Lookup(NamedTuple):
    """A look-up, with the end of a modern result; None for a legacy one."""

    request_id: bytes
    method: str
    params: LookupParams
    end: bytes | None


def encoded(answer: Answer) -> Marked:
    if isinstance(answer, Marked):
        return answer
    return Marked(answer if isinstance(answer, bytes) else _encode(answer))


def shapes(offer: Declarations) -> dict[str, type[LookupParams]]:
    """Return the methods of look-ups that a server has, with the shape of their parameters."""
    found: dict[str, type[LookupParams]] = {}
    if "resources" in offer.capabilities:
        found["resources/read"] = UriParams
    if offer.prompts:
        found["prompts/get"] = NameParams
    if "completions" in offer.capabilities:
        found["completion/complete"] = CompletionParams
    if offer.skills:
        found["skills/get"] = UriParams
    return found


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
    raise Fault(RESOURCE_NOT_FOUND, message, {"uri": uri})


def get_prompt(offer: Declarations, name: str, arguments: Mapping[str, str] | None) -> JSONObject:
    """Return the messages of the prompt *name*."""
    found = next((prompt for prompt in offer.prompts if prompt.name == name), None)
    if found is None:
        raise Fault(INVALID_PARAMS, f"Unknown prompt: {name[:100]}")
    given = arguments or {}
    for required in found.arguments:
        if not given.get(required, "").strip():
            raise Fault(INVALID_PARAMS, f"The argument {required} of the prompt {found.name} is missing.")
    message = {"role": "user", "content": {"type": "text", "text": found.render(given)}}
    return {"description": found.description, "messages": [message]}


def get_skill(offer: Declarations, uri: str) -> JSONObject:
    """Return the skill at *uri*, with what the extension says of every result."""
    for skill in offer.skills:
        if skill.uri == uri:
            return {"skill": skill.to_wire(), "resultType": "complete", **kept(offer)}
    raise Fault(INVALID_PARAMS, f"Skill not found: {uri[:200]}.", {"uri": uri})


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
    """Return the reply to a look-up."""
    end = asked.end
    try:
        found = _found(asked, offer, caller)
    except Fault as fault:
        return fault_reply(fault, asked.request_id, is_modern=end is not None)
    if end is None:
        return result(asked.request_id, _encode(found), b"}")
    marks = _encode(found.pop("_meta"))[1:-1] + b"," if "_meta" in found else b""
    return result(asked.request_id, _encode({**found, "resultType": "complete"})[:-1], b',"_meta":{', marks, end)


def unknown_tool(name: str, offer: Declarations) -> Fault:
    message = web_pages.unknown_tool(name, [tool.name for tool in offer.tools], offer.website_url)
    return Fault(INVALID_PARAMS, message)


def _found(asked: Lookup, offer: Declarations, caller: Caller) -> JSONObject:
    params = asked.params
    if isinstance(params, NameParams):
        if asked.method == TOOL:
            raise unknown_tool(params.name, offer)
        return get_prompt(offer, params.name, params.arguments)
    if isinstance(params, CompletionParams):
        return complete(offer, params.ref, params.argument.name, params.argument.value)
    if asked.method == "skills/get":
        return get_skill(offer, params.uri)
    found = read_resource(offer, params.uri, caller)
    return found if asked.end is None else {**found, "ttlMs": offer.read_ttl_ms, "cacheScope": offer.cache_scope}


TOOLS: Final = "tools/list"
_encode_result = msgspec.json.encode


class FinishedResults:
    """The finished results of a server that offers *offer*, each with all closing braces."""

    def __init__(self, offer: Declarations) -> None:
        info = _encode_result(offer.server_info)
        self.own_meta = b'"io.modelcontextprotocol/serverInfo":' + info + b"}}}"
        """The end of the `_meta` of a modern result."""
        self._offer = offer
        self._end = b',"resultType":"complete","_meta":{' + self.own_meta
        self._tools: dict[frozenset[str], tuple[bytes, bytes]] = {}
        self._lists = {**self._of_resources(), **self._of_prompts(), **self._of_skills()}
        instructions, capabilities = _encode_result(offer.instructions), _encode_result(offer.capabilities)
        self.discover = (
            b'{"supportedVersions":["%s"],"capabilities":' % messages.MODERN.encode() + capabilities
            + b',"instructions":' + instructions + self._cached + self._end
        )  # fmt: skip
        self._initialize = {
            version: b'{"protocolVersion":"' + version.encode() + b'","capabilities":' + capabilities
            + b',"serverInfo":' + info + b',"instructions":' + instructions + b"}}"
            for version in messages.LEGACY
        }  # fmt: skip

    @property
    def _cached(self) -> bytes:
        return b',"ttlMs":%d,"cacheScope":"%s"' % (self._offer.list_ttl_ms, self._offer.cache_scope.encode())

    def initialize(self, version: str) -> bytes:
        """Return the handshake's result for the *version* that a client asks for, or for the latest one."""
        return self._initialize.get(version) or self._initialize[messages.LATEST_LEGACY]

    def visible(self, scopes: frozenset[str]) -> list[Tool]:
        """Return the tools that a caller with *scopes* may use, in order."""
        return [tool for tool in self._offer.tools if tool.scope is None or tool.scope in scopes]

    def listing(self, method: str, scopes: frozenset[str]) -> tuple[bytes, bytes] | None:
        """Return the result of a list, modern and legacy; None if the server has no such list."""
        if method != TOOLS:
            return self._lists.get(method)
        found = self._tools.get(scopes)
        if found is None:
            tools = b'{"tools":' + _encode_result([tool.to_wire() for tool in self.visible(scopes)])
            found = self._tools[scopes] = (tools + self._cached + self._end, tools + b"}}")
        return found

    def _of_resources(self) -> dict[str, tuple[bytes, bytes]]:
        offer = self._offer
        if "resources" not in offer.capabilities:
            return {}
        plain = [each.to_wire() for each in offer.plain_resources]
        templates = [each.to_wire() for each in offer.resources if each.variable]
        return {
            "resources/list": self._list("resources", plain),
            "resources/templates/list": self._list("resourceTemplates", templates),
        }

    def _of_prompts(self) -> dict[str, tuple[bytes, bytes]]:
        if not self._offer.prompts:
            return {}
        return {"prompts/list": self._list("prompts", [each.to_wire() for each in self._offer.prompts])}

    def _of_skills(self) -> dict[str, tuple[bytes, bytes]]:
        if not self._offer.skills:
            return {}
        # The extension has the same result in both generations.
        found = {"resultType": "complete", "skills": [each.to_wire() for each in self._offer.skills]}
        whole = _encode_result(found)[:-1] + self._cached
        return {"skills/list": (whole + b',"_meta":{' + self.own_meta, whole + b"}}")}

    def _list(self, name: str, items: list[dict[str, object]]) -> tuple[bytes, bytes]:
        kept = {"cacheScope": self._offer.cache_scope, "resultType": "complete", "ttlMs": self._offer.list_ttl_ms}
        modern = msgspec.json.encode({name: items, **kept}, order="sorted")
        legacy = msgspec.json.encode({name: items}, order="sorted")
        return modern[:-1] + b',"_meta":{' + self.own_meta, legacy + b"}"
