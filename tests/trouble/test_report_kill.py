"""The real server runs a report, and is killed while it does: the run goes on, and is paid once."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from make.reports import specification
from services.mcp import modern
from services.ports import wait_until
from services.product import Product, environment, run

MADE = """
import django
django.setup()
from muniment.accounts.models import Account
from muniment.kernel.actor import SYSTEM
from muniment.registry.changes import CompanyChange
from muniment.registry.operations import create_company
owner = Account.objects.get(email="owner@harbour.example").actor("command")
print(create_company(owner, CompanyChange(name="Tide Works", team_size=5, description="We mend boats.")).slug)
"""


@pytest.fixture
def product(tmp_path):
    data, file = tmp_path / "data", tmp_path / "specification.json"
    run("import", str(Path(__file__).parents[2] / "src" / "muniment" / "demo"), data=data)
    run("user", "create", "owner@harbour.example", "--no-password", data=data)
    file.write_text(json.dumps(specification(70)))
    run("framework", "author", "plain-governance", str(file), data=data)
    subprocess.run(
        [sys.executable, "-c", MADE],
        env={**environment(data), "DJANGO_SETTINGS_MODULE": "muniment.settings"},
        check=True,
        timeout=60,
        capture_output=True,
    )
    token = run("user", "token", "owner@harbour.example", "--name", "laptop", data=data).stdout.split()
    with Product(data) as started:
        started.token = next(word for word in token if word.startswith("mun_pat_"))
        yield started


def call(product, name, **arguments):
    headers, body = modern("tools/call", {"name": name, "arguments": arguments})
    sent = {key: value for key, value in headers if key != "host"} | {"authorization": f"Bearer {product.token}"}
    answer = product.request("POST", "/api/manage/mcp", body=body, headers=sent)
    assert answer.status == 200, answer
    return answer.json()["result"]["structuredContent"]["data"]


def status(product, run_id):
    return call(product, "get_report_run_status", runId=run_id)


def prepared(product):
    return call(product, "start_report_run", companySlug="tide-works", frameworkId="plain-governance")["runId"]


@pytest.mark.requirement("runs.lifecycle")
def test_a_run_of_70_criteria_ends_soon_on_the_real_server(product):
    first = prepared(product)
    started = time.monotonic()
    call(product, "execute_report_run", runId=first)
    wait_until(lambda: not status(product, first)["shouldPoll"], within_s=30, what="the run's end")
    took = time.monotonic() - started
    assert status(product, first)["state"] == "succeeded"
    asked = time.monotonic()
    assert len(call(product, "get_report", runId=first, format="full")["sections"][0]["criteria"]) == 70
    assert time.monotonic() - asked < 2
    assert call(product, "get_credits")["balance"] == 90
    print(f"70 criteria: {took:.2f} s")  # noqa: T201 - the figure, for who runs it with -s


@pytest.mark.proof
def test_a_run_whose_server_is_killed_goes_on_and_is_paid_once(product):
    second = prepared(product)
    call(product, "execute_report_run", runId=second)
    product.kill()
    product.start()
    wait_until(lambda: not status(product, second)["shouldPoll"], within_s=60, what="the killed run's end")
    assert status(product, second)["state"] == "succeeded"
    credits_ = call(product, "get_credits")
    assert (credits_["balance"], credits_["held"]) == (90, 0)
    assert "ok    ledger" in run("doctor", "--ledger", data=product.data).stdout
