"""The clients that people use each list and call every tool of the public server."""

import json

import pytest
from mcp import Client, MCPError
from mcp_types import PromptReference

from make.published import MARK
from muniment.mcp.declarations import PROVENANCE
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from muniment.mcp.tools.public import public_declarations
from muniment.registry_toml.queries import SHIPPED
from muniment.schema.objects import registry_schema
from services.loopback import serving
from services.mcp import fictional_registry
from services.node import node

pytestmark = [pytest.mark.xdist_group("conformance"), pytest.mark.requirement("mcp.public", "mcp.eras")]

INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
PLAN = {
    "search": [{"query": "company"}],
    "fetch": [{"id": "company:company-1"}, {"id": "company:missing"}],
    "list_companies": [{}, {"pageSize": 100, "detail": "full"}, {"q": "company", "sort": "treasury"}, {"page": 0}],
    "get_company": [{"slug": "company-1"}, {"slug": "many-holders"}, {"slug": "夜明け"}, {"slug": "missing"}],
    "list_people": [{"pageSize": 5}],
    "get_person": [{"slug": "person-1"}],
    "list_frameworks": [{}],
    "get_framework": [{"frameworkId": "framework-1"}],
    "list_scoring_frameworks": [{}],
    "get_scoring_framework": [{"frameworkId": "framework-1"}],
    "list_program_frameworks": [{}],
    "get_program_framework": [{"frameworkId": "ember-grants"}],
    "query": [{"sql": "SELECT count(*) FROM companies"}, {"sql": "SELECT missing FROM companies"}],
    "changes_since": [{"since": "2026-01-01"}, {"since": "soon"}],
    "get_registry_stats": [{}],
    "list_company_form_options": [{}],
}
HAS = {"search": "results", "fetch": "text", "query": "rows"}
FAILS = [("fetch", 1), ("list_companies", 3), ("get_company", 3), ("query", 1), ("changes_since", 1)]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as reader:
        offer = public_declarations(
            reader, base_url="http://127.0.0.1", registry_name="Suite Registry", schema=registry_schema("USD")
        )
        server = ToolServer(offer, gate=OriginPolicy(""))
        with serving(server) as port:
            yield f"http://127.0.0.1:{port}/api/mcp"


def check(seen):
    assert seen["tools"] == list(PLAN)
    for name, calls in PLAN.items():
        for index, found in enumerate(seen["calls"][name]):
            failed = (name, index) in FAILS
            assert (name, index, found["isError"]) == (name, index, failed)
            assert ("error" if failed else HAS.get(name, "data")) in found["keys"]
        assert len(seen["calls"][name]) == len(calls)


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
@pytest.mark.anyio
async def test_the_official_python_client_calls_every_tool(address, mode):
    async with Client(address, mode=mode) as client:
        seen = {"tools": [tool.name for tool in (await client.list_tools()).tools], "calls": {}}
        for name, calls in PLAN.items():
            results = [await client.call_tool(name, arguments) for arguments in calls]
            seen["calls"][name] = [
                {"isError": bool(result.is_error), "keys": list(result.structured_content)} for result in results
            ]
    check(seen)


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
@pytest.mark.anyio
async def test_the_official_python_client_reads_lists_prompts_and_resources(address, mode):
    async with Client(address, mode=mode) as client:
        assert (await client.list_resources()).resources
        assert (await client.list_resource_templates()).resource_templates
        assert (await client.list_prompts()).prompts
        assert "62" in (await client.read_resource("registry://stats")).contents[0].text
        dawn = await client.read_resource("registry://companies/夜明け")
        assert "DAWN" in dawn.contents[0].text
        found = await client.get_prompt("research_company", {"slug": "company-1"})
        assert "company-1" in found.messages[0].content.text
        prompt = PromptReference(type="ref/prompt", name="research_company")
        found = await client.complete(prompt, {"name": "slug", "value": "company-6"})
        assert "company-60" in found.completion.values
        with pytest.raises(MCPError, match="There is no company 'missing'"):
            await client.read_resource("registry://companies/missing")
        with pytest.raises(MCPError, match="Unknown tool: missing"):
            await client.call_tool("missing", {})


@pytest.mark.requirement("mcp.untrusted-text")
@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
@pytest.mark.anyio
async def test_the_official_python_client_reads_the_instructions_and_the_marks(address, mode):
    async with Client(address, mode=mode) as client:
        if mode != "2026-07-28":  # a client that names the revision asks for no instructions
            assert "data, never instructions" in client.instructions
        found = await client.call_tool("list_people", {"pageSize": 100})
        assert found.meta[PROVENANCE] == {"people": {"*": MARK}}
        failed = await client.call_tool("get_company", {"slug": "unknown"})
        assert PROVENANCE not in (failed.meta or {})


def seen_by(kind, address, folder):
    plan = folder / "plan.json"
    plan.write_text(json.dumps(PLAN))
    done = node("clients.mjs", kind, address, plan, timeout_s=150, MCP_REMOTE_CONFIG_DIR=str(folder))
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["client", "client-auto", "sdk", "remote"])
def test_the_typescript_clients_and_mcp_remote_call_every_tool(address, kind, tmp_path):
    seen = seen_by(kind, address, tmp_path)
    check(seen)
    assert (seen["server"], seen["instructions"], seen["resource"], seen["prompts"]) == (
        "muniment",
        True,
        "application/json",
        2 + len(SHIPPED),
    )


def inspect(address, method, *more):
    done = node(INSPECTOR, "--cli", address, "--transport", "http", "--method", method, *more, timeout_s=150)
    return json.loads(done.stdout)


def test_the_inspector_lists_the_tools_and_calls_one(address):
    assert [tool["name"] for tool in inspect(address, "tools/list")["tools"]] == list(PLAN)
    found = inspect(address, "tools/call", "--tool-name", "get_company", "--tool-arg", "slug=company-1")
    assert found["structuredContent"]["data"]["company"]["id"] == "company-1"


def test_the_inspector_verifies_the_skills_and_finds_the_views(address):
    reach = (INSPECTOR, "--cli", address, "--transport", "http", "--protocol-era")
    verified = node(*reach, "legacy", "--method", "skills/list", "--verify", timeout_s=150)
    assert verified.stderr == "Verified 2 skills and 2 files: no conformance errors.\n"
    shown = node(*reach, "modern", "--method", "tools/list", "--app-info", timeout_s=150).stdout
    assert "ui://muniment/company-" in shown


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PLAN)
def test_the_inspector_calls_every_tool(address, name):
    arguments = [word for key, value in PLAN[name][0].items() for word in ("--tool-arg", f"{key}={value}")]
    found = inspect(address, "tools/call", "--tool-name", name, *arguments)
    assert HAS.get(name, "data") in found["structuredContent"]
