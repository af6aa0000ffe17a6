"""A real client, a real browser and the running product: sign-in, consent, tools, renewal, and what is left behind."""

import asyncio
import json
import re
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from services.issuer import Issuer, upstream
from services.leaks import PLANTED, PLANTS, left_behind, look_through, sqlite_dump
from services.mail import Mailbox
from services.node import node
from services.owner import EMAIL, PASSWORD, Agent, agree, answers, by_browser, owned_instance, result_of, spoil
from services.ports import SEEN_WITHIN_S, free_port, wait_until
from services.product import run
from services.walk import Walk

TOOLS = {
    "list_my_companies",
    "get_my_company",
    "update_my_company",
    "get_my_profile",
    "update_my_profile",
    "list_company_form_options",
}
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
MOST_CALLS, MOST_BYTES = 5, 12_000


@pytest.fixture(scope="module")
def surroundings():
    with Mailbox() as mailbox, Issuer({"sub": "7", "email": "ada@harbour.example", "email_verified": True}) as issuer:
        yield mailbox, issuer


@pytest.fixture(scope="module")
def instance(tmp_path_factory, surroundings):
    mailbox, issuer = surroundings
    settings = {"log_requests": "on", "mail_url": mailbox.url, **upstream(issuer)}
    with owned_instance(tmp_path_factory.mktemp("owned"), **settings) as (product, slug):
        yield product, slug


@pytest.fixture(scope="module")
def walk(instance, surroundings):
    product, slug = instance
    return Walk(product, surroundings[0], owner=EMAIL, password=PASSWORD, company=slug)


@pytest.fixture(scope="module")
def secrets(walk):
    """Every secret that a test of this module used, and what it is."""
    return walk.used


@pytest.fixture
def page(browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


async def tools_of(client):
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.requirement("auth.oauth")
@pytest.mark.requirement("manage.server")
def test_the_official_python_client_goes_the_whole_way_and_renews_by_itself(instance, page, secrets):
    product, slug = instance
    with answers() as (redirect, codes):
        agent = Agent(f"{product.url}/api/manage/mcp", redirect, codes)

        async def job(client):
            first = await tools_of(client)
            listed = await client.call_tool("list_my_companies", {})
            before = agent.kept.tokens.access_token
            agent.expire()
            again = await client.call_tool("get_my_profile", {})
            return first, listed.structured_content, before, again.structured_content

        done = agent.work(job)
        agree(page, agent.to_open.get(timeout=90), sign_in=True)
        tools, listed, before, profile = result_of(done)
    assert set(tools) >= TOOLS
    assert [each["id"] for each in listed["data"]] == [slug]
    assert profile["data"]["email"] == EMAIL
    assert agent.kept.tokens.access_token != before
    assert agent.answered[0]["iss"] == product.url
    assert "Back in the app" in page.content()
    secrets |= agent.secrets()


@pytest.mark.whole(keeps=0)
@pytest.mark.requirement("auth.token")
def test_a_personal_token_by_header_opens_the_tools_in_each_client(instance, secrets, tmp_path):
    product, slug = instance
    url = f"{product.url}/api/manage/mcp"
    text = run("user", "token", EMAIL, "--name", "clients", data=product.data).stdout.strip()
    secrets[text] = "personal token"

    async def job():
        async with (
            create_mcp_http_client(headers={"Authorization": f"Bearer {text}"}) as http_client,
            Client(streamable_http_client(url, http_client=http_client)) as client,
        ):
            found = await client.call_tool("list_my_companies", {})
            return await tools_of(client), found.structured_content

    with ThreadPoolExecutor(1) as apart:  # the browser keeps a running loop in this thread
        tools, listed = apart.submit(asyncio.run, job()).result(60)
    assert set(tools) >= TOOLS
    assert listed["data"][0]["id"] == slug
    for kind in ("client", "sdk", "remote"):
        done = node("manage.mjs", kind, url, timeout_s=150, SUITE_TOKEN=text, MCP_REMOTE_CONFIG_DIR=str(tmp_path))
        seen = json.loads(done.stdout.splitlines()[-1])
        assert set(seen["tools"]) >= TOOLS, kind
        assert seen["first"] == slug, kind
    header = ("--header", f"Authorization: Bearer {text}")
    done = node(INSPECTOR, "--cli", url, "--transport", "http", *header, "--method", "tools/list", timeout_s=150)
    assert {tool["name"] for tool in json.loads(done.stdout)["tools"]} >= TOOLS


@pytest.mark.requirement("auth.missing")
def test_a_revoked_token_is_refused_within_a_second(instance, secrets):
    product, _ = instance
    text = run("user", "token", EMAIL, "--name", "short", data=product.data).stdout.strip()
    secrets[text] = "personal token"

    def ask():
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {text}"}
        return product.request("POST", "/api/manage/mcp", headers, body)

    knowing = set()
    while len(knowing) < product.workers:
        answer = ask()
        assert answer.status == 200
        knowing.add(answer.process)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    revoked = product.request("POST", "/oauth/revoke", form, f"token={text}".encode())
    answered = time.monotonic()
    assert revoked.status == 200
    refused = set()
    while refused < knowing:
        began, answer = time.monotonic(), ask()
        if answer.status == 401:
            refused.add(answer.process)
        else:
            assert answer.process not in {revoked.process, *refused}, "a revocation holds at once, on every process"
            assert began - answered < SEEN_WITHIN_S


@pytest.mark.requirement("owners.edits")
def test_an_owners_work_by_agent_takes_five_calls_and_twelve_kilobytes(instance, page, secrets):
    """Find my company, see what is allowed, try, lose a race, recover by the hint; then revert on the page."""
    product, slug = instance
    calls, sizes = [], []
    with answers() as (redirect, codes):
        agent = Agent(f"{product.url}/api/manage/mcp", redirect, codes)

        async def call(client, name, **arguments):
            found = await client.call_tool(name, arguments)
            calls.append(name)
            sizes.append(len(json.dumps(arguments)) + len(found.content[0].text.encode()))
            return found.structured_content

        async def job(client):
            mine = (await call(client, "list_my_companies"))["data"][0]
            await call(client, "list_company_form_options")
            change = {"slug": mine["id"], "changes": {"description": "Tried by an agent."}}
            tried = await call(client, "update_my_company", **change, dryRun=True)
            assert set(tried["data"]["diff"]) == {"description"}
            beside = await client.call_tool(
                "update_my_company", {"slug": mine["id"], "changes": {"website": "https://beside.example"}}
            )
            assert not beside.is_error
            lost = await call(client, "update_my_company", **change, expectedVersion=mine["version"])
            version = int(re.search(r"expectedVersion (\d+)", lost["error"]["hint"])[1])
            return await call(client, "update_my_company", **change, expectedVersion=version)

        done = agent.work(job)
        agree(page, agent.to_open.get(timeout=90), sign_in=True)
        applied = result_of(done)
    secrets |= agent.secrets()
    assert applied["data"]["applied"] == ["description"]
    assert len(calls) <= MOST_CALLS, calls
    assert sum(sizes) <= MOST_BYTES, dict(zip(calls, sizes, strict=True))
    shown = f"/api/v1/companies/{slug}"
    assert product.data_of(shown)["company"]["description"] == "Tried by an agent."
    page.goto(f"{product.url}/manage/companies/{slug}/history")
    assert "Suite Agent" in page.content()
    page.locator("form[action$='/revert'] button").first.click()
    wait_until(
        lambda: product.data_of(shown)["company"].get("description") != "Tried by an agent.",
        within_s=60,
        what="the page's revert being public",
    )


@pytest.mark.whole(keeps=1)
@pytest.mark.requirement("auth.oauth")
@pytest.mark.parametrize("kind", ["client", "sdk"])
def test_the_typescript_clients_go_the_whole_way_and_renew_by_themselves(instance, page, secrets, kind):
    product, slug = instance
    told = by_browser(page, "oauth.mjs", kind, f"{product.url}/api/manage/mcp")
    seen = json.loads(told.splitlines()[-1])
    secrets |= dict.fromkeys(seen.pop("secrets"), f"secret of the TypeScript {kind}")
    assert set(seen.pop("tools")) >= TOOLS
    assert seen == {"first": slug, "email": EMAIL, "iss": product.url, "method": "none", "renewed": True}


@pytest.mark.whole(keeps=0)
@pytest.mark.requirement("auth.oauth")
def test_mcp_remote_signs_in_through_the_browser_and_renews_by_itself(instance, page, secrets, tmp_path):
    product, slug = instance
    where = {"MCP_REMOTE_CONFIG_DIR": str(tmp_path)}
    call = ("manage.mjs", "remote", f"{product.url}/api/manage/mcp")
    first = by_browser(page, *call, **where)
    spoilt = spoil(tmp_path)
    again = node(*call, timeout_s=150, **where).stdout
    for told in (first, again):
        seen = json.loads(told.splitlines()[-1])
        assert set(seen["tools"]) >= TOOLS
        assert seen["first"] == slug
    renewed = spoil(tmp_path)
    assert len(spoilt | renewed) == 4
    secrets |= dict.fromkeys(spoilt | renewed, "token of mcp-remote")


@pytest.mark.whole(keeps=0)
@pytest.mark.requirement("auth.oauth")
def test_the_inspector_goes_the_whole_way_and_renews_by_itself(instance, page, secrets, tmp_path):
    """By its command line, which shares its OAuth with its page; it is told that a browser may be opened."""
    product, _ = instance
    environment = {"HOME": str(tmp_path), "MCP_INSPECTOR_SECRET_STORE": "file", "MCP_AUTO_OPEN_ENABLED": "true"}
    call = (INSPECTOR, "--cli", f"{product.url}/api/manage/mcp", "--transport", "http", "--format", "json")
    call += ("--method", "tools/call", "--tool-name", "get_my_profile")
    first = by_browser(page, *call, "--callback-url", f"http://127.0.0.1:{free_port()}/callback", **environment)
    spoilt = spoil(tmp_path)
    again = node(*call, "--stored-auth-only", timeout_s=150, **environment).stdout
    for told in (first, again):
        assert json.loads(told.splitlines()[-1])["result"]["structuredContent"]["data"]["email"] == EMAIL
    renewed = spoil(tmp_path)
    assert len(spoilt | renewed) == 4
    secrets |= dict.fromkeys(spoilt | renewed, "token of the Inspector")


@pytest.mark.sqlite  # it dumps the database's file
@pytest.mark.requirement("secrets.at-rest")
def test_nothing_that_opens_anything_is_left_in_the_database_or_the_logs(instance, surroundings, walk):
    """The last of this module: it does what the others did not, and looks for each secret that any of them used."""
    product, issuer = instance[0], surroundings[1]
    assert {"the owner's password", "personal token", "token of the Python client"} <= set(walk.used.values())
    walk.everything(issuer)
    walk.used[(product.data / "keys" / "django.key").read_text()] = "the instance's key"
    assert len(set(walk.used.values())) >= 20, sorted(set(walk.used.values()))
    with closing(sqlite3.connect(product.data / "muniment.sqlite3")) as database, database:
        database.execute(PLANTED.replace("%s", "?"), PLANTS)
    look_through(walk.used, sqlite_dump(product.data), product)
    for file in product.data.rglob("*"):
        if not file.is_file() or "sqlite3" in file.name or file.parent.name == "keys":
            continue
        found = left_behind(file.read_bytes(), walk.used)
        assert not found, f"{[walk.used[each] for each in found]} in {file.name}"
