"""A run and an application by the official clients, in both eras: waited for with progress, and agreed by the user."""

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
from make.registry import owner
from make.reports import company, program
from muniment.accounts import tokens
from muniment.accounts.operations import create_account
from muniment.assessments import operations
from muniment.kernel.actor import COMMAND, SCOPES
runner = owner("runner@harbour.example")
actor = create_account(COMMAND, "owner@harbour.example", None).actor("web")
print(tokens.create_token(actor, "tests", permitted=SCOPES).text)
for _ in range(8):
    print(operations.start_run(actor, company(actor), program(runner, criteria=12)).run.row.pk)
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
    """Execute a run and apply with its report; return what the user was asked, the progress, and both answers."""
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
        run = (await client.call_tool("execute_report_run", arguments, progress_callback=progress)).structured_content
        sent = (await client.call_tool("submit_application", {"runId": run_id})).structured_content["data"]
        if not answer or mode == "legacy":
            assert (sent["state"], sent["confirmation"]["reason"]) == ("not_submitted", "confirmation_required")
            arguments = {"runId": run_id, "confirm": sent["confirmation"]["confirm"]}
            sent = (await client.call_tool("submit_application", arguments)).structured_content["data"]
    return asked, notes, run["data"], sent


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize(("mode", "answer", "number"), [("auto", "accept", 0), ("auto", "", 1), ("legacy", "", 2)])
def test_the_official_python_client_sees_the_end_of_a_run_and_applies_once_agreed(owned, mode, answer, number):
    asked, notes, run, sent = asyncio.run(by_python(owned, mode, answer, owned[2][number]))
    assert (run["state"], sent["state"]) == ("succeeded", "submitted")
    assert notes == sorted(set(notes))
    assert {total for _, total in notes} == {12}
    assert [("can then read it" in message) for message in asked] == ([True] if answer else [])


def test_the_official_python_client_submits_nothing_if_its_user_declines(owned):
    asked, _, _, sent = asyncio.run(by_python(owned, "auto", "decline", owned[2][3]))
    assert len(asked) == 1
    assert (sent["state"], sent["confirmation"]["reason"]) == ("not_submitted", "declined")


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize(("kind", "number"), [("client", 4), ("client-auto", 5), ("sdk", 6)])
def test_the_typescript_clients_see_the_end_of_a_run_and_apply_once_agreed(owned, kind, number):
    url, token, runs = owned
    seen = json.loads(
        node("hands.mjs", kind, url, runs[number], timeout_s=150, SUITE_TOKEN=token).stdout.splitlines()[-1]
    )
    assert (seen["state"], seen["sent"]) == ("succeeded", "submitted")
    assert seen["asked"] == (1 if kind == "client-auto" else 0)
    assert seen["confirmed"] == (kind != "client-auto")
    # The automatic client may hand over notices out of order; test_waiting.py has the order in which they are sent.
    assert sorted(seen["progress"]) == sorted(set(seen["progress"])) != []
