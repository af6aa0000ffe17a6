"""The SDKs of vendors load both tool lists whole, and their calls have the answers of plain ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.linters import folder
from services.owner import EMAIL, owned_instance
from services.product import run

HERE = Path(__file__).parent
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
CLIENTS = ("google", "openai", "llamaindex", "langchain", "smolagents", "pydantic_ai")


class Server:
    """One tool server of the demo, with the calls that every client makes of it."""

    def __init__(self, product, path, headers, calls, loose):
        self._product, self._path, self._headers = product, path, headers
        self.job = {"url": product.url + path, "headers": headers, "calls": calls, "open": loose}

    def result(self, method, **params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        return self._product.request("POST", self._path, {**HEADERS, **self._headers}, body).json()["result"]

    def answers(self):
        calls = self.job["calls"]
        return [self.result("tools/call", name=name, arguments=given)["structuredContent"] for name, given in calls]

    def names(self):
        return [tool["name"] for tool in self.result("tools/list")["tools"]]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with owned_instance(tmp_path_factory.mktemp("vendors")) as (product, slug):
        statement = {"sql": "SELECT slug FROM companies WHERE slug = :slug", "params": {"slug": slug}, "limit": 5}
        token = run("user", "token", EMAIL, "--name", "vendors", data=product.data).stdout.strip()
        headers = {"Authorization": f"Bearer {token}"}
        public = Server(
            product,
            "/api/mcp",
            {},
            [
                *(["list_companies", {"pageSize": 2}], ["list_companies", {"q": "grants"}]),
                *(["get_company", {"slug": slug}], ["query", statement]),
            ],
            # Without arguments there is nothing to be strict about, and a statement's parameters have any names.
            ["get_registry_stats", "list_company_form_options", "query"],
        )
        owner = Server(product, "/api/manage/mcp", headers, [["list_my_companies", {}]], [])
        change = {"slug": slug, "changes": {"description": "A test."}, "dryRun": True}
        owner.job["calls"] += [["get_my_company", {"slug": slug}], ["update_my_company", change]]
        owner.job["open"] = ["list_company_form_options", "query", "update_my_company"]
        yield {"public": public, "owner": owner}


@pytest.mark.whole(keeps=0)
@pytest.mark.requirement("mcp.tool-descriptions")
@pytest.mark.parametrize("client", CLIENTS)
def test_the_sdk_builds_every_tool_and_its_calls_have_the_answers_of_plain_ones(servers, client):
    packages = folder("clients")
    jobs = json.dumps({place: server.job for place, server in servers.items()})
    offline = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none"}
    done = subprocess.run(
        # Without the packages of this environment, which has another version of the protocol's SDK.
        [sys.executable, "-S", HERE / "vendors.py", client, jobs],
        env={**os.environ, "PYTHONPATH": str(packages), **offline},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads(done.stdout.rpartition("\n")[2])
    for place, server in servers.items():
        assert found[place]["built"] == server.names()
        assert found[place]["answers"] == server.answers()
        assert all("error" not in answer for answer in found[place]["answers"])
