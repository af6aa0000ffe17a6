"""
Load both tool lists of a running registry with the SDK of one vendor, and call tools as that SDK does.

``python vendors.py CLIENT JOBS``, where JOBS is JSON: by server, its address, headers and calls (name and arguments).
Prints JSON: by server, the names of the tools that were built, and the answer of each call. A client that makes models
fill in every argument fills them in here too.
"""

import asyncio
import copy
import json
import sys
from contextlib import asynccontextmanager

# What OpenAI's API takes in the schema of a strict function; of numbers and lists also their limits.
STRICT_KEYWORDS = {
    *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "description"),
    *("pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems", "$ref", "$defs"),
}


def check_strict(schema):
    """Fail unless OpenAI's API takes *schema* for a strict function."""
    assert schema.keys() <= STRICT_KEYWORDS, schema
    if "properties" in schema:
        assert schema["additionalProperties"] is False, schema
        assert set(schema["required"]) == set(schema["properties"]), schema
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        check_strict(inner)
    if "items" in schema:
        check_strict(schema["items"])


def nothing(schema):
    """Return what a model sends for an argument that it must fill in and does not need."""
    kind = schema.get("type") or [each["type"] for each in schema["anyOf"]]
    kinds = kind if isinstance(kind, list) else [kind]
    if "null" in kinds:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "", "array": [], "object": {}, "boolean": False, "integer": schema.get("minimum", 1)}[kinds[0]]


def filled(properties, given):
    """Return the arguments of a model that must name every one of them: a page and an offset begin at the start."""
    start = {"page": 1, "pageSize": 25, "offset": 0, "waitSeconds": 0}
    return {name: given.get(name, start.get(name, nothing(schema))) for name, schema in properties.items()}


@asynccontextmanager
async def session_of(server):
    import httpx
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx.AsyncClient(headers=server["headers"], timeout=60) as http,
        streamable_http_client(server["url"], http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def google(server):
    """google-genai: numbers of a function call are all floats, as its wire format has them."""
    from google.genai import types
    from google.genai._adapters import McpToGenAiToolAdapter

    async with session_of(server) as session:
        adapter = McpToGenAiToolAdapter(session, await session.list_tools())
        built = [each.name for tool in adapter.tools for each in tool.function_declarations]
        answers = []
        for name, given in server["calls"]:
            args = json.loads(json.dumps(given), parse_int=float)
            answers.append((await adapter.call_tool(types.FunctionCall(name=name, args=args))).structuredContent)
        return built, answers


async def openai(server):
    """openai-agents with strict schemas: every argument is filled in, by null where it may be."""
    from agents.mcp import MCPServerStreamableHttp, MCPUtil
    from agents.tool_context import ToolContext

    params = {"url": server["url"], "headers": server["headers"]}
    async with MCPServerStreamableHttp(
        params, use_structured_content=True, client_session_timeout_seconds=60
    ) as connected:
        tools = {
            tool.name: MCPUtil.to_function_tool(tool, connected, convert_schemas_to_strict=True)
            for tool in await connected.list_tools()
        }
        for tool in tools.values():
            if tool.strict_json_schema:
                check_strict(tool.params_json_schema)
        loose = sorted(name for name, tool in tools.items() if not tool.strict_json_schema)
        assert loose == server["open"], loose
        answers = []
        for name, given in server["calls"]:
            tool = tools[name]
            whole = filled(tool.params_json_schema["properties"], given) if tool.strict_json_schema else given
            text = json.dumps(whole)
            context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)
            answers.append(json.loads(await tool.on_invoke_tool(context, text)))
        return list(tools), answers


async def llamaindex(server):
    """llama-index-tools-mcp: the dump of a model of all arguments, null where one is absent."""
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    client = BasicMCPClient(server["url"], headers=server["headers"])
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client).to_tool_list_async()}
    answers = []
    for name, given in server["calls"]:
        whole = tools[name].metadata.fn_schema(**given).model_dump()
        answers.append((await tools[name].acall(**whole)).raw_output.structuredContent)
    return list(tools), answers


async def langchain(server):
    """langchain-mcp-adapters: the tools of models by OpenAI, and calls by an agent."""
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.tools import load_mcp_tools

    async with session_of(server) as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        for tool in tools.values():
            assert convert_to_openai_tool(tool)["function"]["parameters"]["type"] == "object"
        answers = []
        for name, given in server["calls"]:
            message = await tools[name].ainvoke({"name": name, "args": given, "id": "1", "type": "tool_call"})
            answers.append(message.artifact["structured_content"])
        return list(tools), answers


def smolagents(server):
    """smolagents: every argument that may not be null is filled in, and its type is checked before the call."""
    from mcpadapt.core import MCPAdapt
    from mcpadapt.smolagents_adapter import SmolAgentsAdapter
    from smolagents.tools import validate_tool_arguments

    address = {"url": server["url"], "headers": server["headers"], "transport": "streamable-http"}
    with MCPAdapt(address, SmolAgentsAdapter(structured_output=True)) as found:
        tools = {tool.name: tool for tool in found}
        answers = []
        for name, given in server["calls"]:
            tool = tools[name]
            tool.validate_arguments()
            whole = filled(tool.inputs, given)
            validate_tool_arguments(tool, whole)
            answers.append(tool(**whole))
        return list(tools), answers


async def pydantic_ai(server):
    """pydantic-ai: the schemas of models by OpenAI (strict) and Google, and calls by a toolset."""
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
    from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

    async with MCPToolset(server["url"], headers=server["headers"]) as toolset:
        tools = {tool.name: tool for tool in await toolset.list_tools()}
        for tool in tools.values():
            OpenAIJsonSchemaTransformer(copy.deepcopy(tool.inputSchema), strict=True).walk()
            GoogleJsonSchemaTransformer(copy.deepcopy(tool.inputSchema), strict=None).walk()
        answers = []
        for name, given in server["calls"]:
            answers.append(await toolset.direct_call_tool(name, given))
        return list(tools), answers


CLIENTS = {each.__name__: each for each in (google, openai, llamaindex, langchain, smolagents, pydantic_ai)}

if __name__ == "__main__":
    client, result = CLIENTS[sys.argv[1]], {}
    for place, server in json.loads(sys.argv[2]).items():
        found = client(server) if client is smolagents else asyncio.run(client(server))
        result[place] = {"built": found[0], "answers": found[1]}
    sys.stdout.write("\n" + json.dumps(result))
