"""
Look-ups: one resource, prompt, completion or skill of what a server offers.

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
from muniment.mcp.protocol.http import Reply
from muniment.mcp.protocol.messages import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    CompletionParams,
    Fault,
    LookupParams,
    NameParams,
    UriParams,
)
from muniment.mcp.protocol.replies import fault_reply, result

TOOL: Final = "tools/call"
"""The method of a look-up of a tool that there is not."""
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
