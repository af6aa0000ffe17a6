"""A run by the official clients, in both eras: asked of the user or confirmed by a token, waited for, with progress."""

import asyncio
import json
import subprocess
import sys

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from services.node import node
from services.prepared import new_instance
from services.product import Product, environment

pytestmark = [pytest.mark.xdist_group("conformance")]
_MAKE = """
import os, sys
import django
django.setup()
sys.path.insert(0, sys.argv[1])
from make.reports import company, framework
from muniment.accounts import tokens
from muniment.accounts.operations import create_account
from muniment.assessments import operations
from muniment.kernel.actor import COMMAND, SCOPES
actor = create_account(COMMAND, "owner@harbour.example", None).actor("web")
print(tokens.create_token(actor, "tests", permitted=SCOPES).text)
for _ in range(8):
    print(operations.start_run(actor, company(actor), framework(12)).run.row.pk)
"""


@pytest.fixture(scope="module")
def owned(tmp_path_factory):
    data = new_instance(tmp_path_factory.mktemp("hands") / "data")
    with Product(data, "--workers", "2", starting_credits="100", run_cost="10") as product:
        product.wait_ready()
        made = subprocess.run(
            [sys.executable, "-c", _MAKE, "tests"],
            env={**environment(data), "DJANGO_SETTINGS_MODULE": "muniment.settings"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        token, *runs = made.stdout.split()
        yield f"{product.url}/api/manage/mcp", token, runs


async def by_python(owned, mode, answer, run_id):
    """Execute a run, and return what the user was asked, the progress, and the result."""
    url, token, _ = owned
    asked, notes = [], []

    async def elicit(_, params):
        asked.append(params.message)
        return types.ElicitResult(action=answer)

    async def progress(done, total, words):
        notes.append((done, total))

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as web,
        Client(
            streamable_http_client(url, http_client=web), mode=mode, elicitation_callback=elicit if answer else None
        ) as client,
    ):
        arguments = {"runId": run_id, "waitSeconds": 50}
        found = await client.call_tool("execute_report_run", arguments, progress_callback=progress)
        if not answer or mode == "legacy":
            error = found.structured_content["error"]
            assert (error["reason"], error["cost"]) == ("confirmation_required", 10)
            arguments["confirm"] = error["confirm"]
            found = await client.call_tool("execute_report_run", arguments, progress_callback=progress)
        credits_held = (await client.call_tool("get_credits", {})).structured_content["data"]
    return asked, notes, found.structured_content, credits_held


@pytest.mark.parametrize(("mode", "answer", "number"), [("auto", "accept", 0), ("auto", "", 1), ("legacy", "", 2)])
def test_the_official_python_client_pays_once_agreed_and_sees_the_end(owned, mode, answer, number):
    asked, notes, found, _ = asyncio.run(by_python(owned, mode, answer, owned[2][number]))
    assert found["data"]["state"] == "succeeded"
    assert notes == sorted(set(notes))
    assert {total for _, total in notes} == {12}
    assert [("10 of your" in message) for message in asked] == ([True] if answer else [])


def test_the_official_python_client_pays_nothing_if_its_user_declines(owned):
    _, notes, found, left = asyncio.run(by_python(owned, "auto", "decline", owned[2][3]))
    assert found["error"]["reason"] == "declined"
    assert notes == []
    assert left["held"] == 0


@pytest.mark.parametrize(("kind", "number"), [("client", 4), ("client-auto", 5), ("sdk", 6)])
def test_the_typescript_clients_pay_once_agreed_and_see_the_end(owned, kind, number):
    url, token, runs = owned
    seen = json.loads(
        node("hands.mjs", kind, url, runs[number], timeout_s=150, SUITE_TOKEN=token).stdout.splitlines()[-1]
    )
    assert seen["state"] == "succeeded"
    assert seen["asked"] == (1 if kind == "client-auto" else 0)
    assert seen["confirmed"] == (kind != "client-auto")
    # The automatic client may hand over notices out of order; test_waiting.py has the order in which they are sent.
    assert sorted(seen["progress"]) == sorted(set(seen["progress"])) != []
