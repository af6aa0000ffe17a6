"""The real server is killed while a model judges: what was judged is not asked again, and the run is paid once."""

import json
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from make.reports import specification
from services.mcp import modern
from services.model import KEY, Model, Reply, judged
from services.ports import wait_until
from services.product import Product, environment, run

MADE = """
import django
django.setup()
from muniment.accounts.models import Account
from muniment.kernel.actor import SYSTEM
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import create_company
owner = Account.objects.get(email="owner@harbour.example").actor("command")
print(create_company(owner, CompanyChange(name="Tide Works", teamSize=5, description="We mend boats.")).slug)
"""
CRITERIA = 40


@pytest.fixture
def model():
    with Model(lambda asked: Reply(judged(asked), wait_s=0.4)) as server:
        yield server


@pytest.fixture
def product(tmp_path, model):
    data, file = tmp_path / "data", tmp_path / "specification.json"
    run("import", str(Path(__file__).parents[2] / "src" / "muniment" / "demo"), data=data)
    run("user", "create", "owner@harbour.example", "--no-password", data=data)
    file.write_text(json.dumps(specification(CRITERIA)))
    run("framework", "author", "plain-governance", str(file), data=data)
    subprocess.run(
        [sys.executable, "-c", MADE],
        env={**environment(data), "DJANGO_SETTINGS_MODULE": "muniment.settings"},
        check=True,
        timeout=60,
        capture_output=True,
    )
    token = run("user", "token", "owner@harbour.example", "--name", "laptop", data=data).stdout.split()
    with Product(data, model_url=model.url, model_name="tide-1", model_key=KEY) as started:
        started.token = next(word for word in token if word.startswith("mun_pat_"))
        yield started


def call(product, name, **arguments):
    headers, body = modern("tools/call", {"name": name, "arguments": arguments})
    sent = {key: value for key, value in headers if key != "host"} | {"authorization": f"Bearer {product.token}"}
    answer = product.request("POST", "/api/manage/mcp", body=body, headers=sent)
    assert answer.status == 200, answer
    return answer.json()["result"]["structuredContent"]["data"]


def kept(product) -> set[str]:
    """Return the criteria that stand in a checkpoint."""
    with closing(sqlite3.connect(product.data / "muniment.sqlite3")) as connection:
        rows = connection.execute("SELECT output FROM jobs_step WHERE name LIKE 'judge:%'").fetchall()
    return {each["id"] for (output,) in rows for each in json.loads(json.loads(output))["settled"]}


@pytest.mark.proof
def test_a_criterion_that_was_judged_is_never_asked_again_however_often_the_server_is_killed(product, model):
    dice = random.Random(7)
    run_id = call(product, "start_report_run", companySlug="tide-works", frameworkId="plain-governance")["runId"]
    call(product, "execute_report_run", runId=run_id)
    kills = 0
    while kills < 3:
        before = len(kept(product))
        wait_until(lambda least=before: len(kept(product)) > least + 3, within_s=60, what="some more judged")
        time.sleep(dice.uniform(0, 0.4))
        product.kill()
        time.sleep(0.6)  # what was on its way has come to the model
        kills += 1
        known, asked = kept(product), len(model.asked)
        assert 0 < len(known) < CRITERIA
        product.start()
        wait_until(lambda least=asked: len(model.asked) > least, within_s=60, what="the run going on")
        wait_until(lambda least=known: len(kept(product)) > len(least), within_s=60, what="one more judged")
        assert not known & set(model.criteria[asked:])
    wait_until(
        lambda: not call(product, "get_report_run_status", runId=run_id)["shouldPoll"], within_s=90, what="the end"
    )
    assert call(product, "get_report_run_status", runId=run_id)["state"] == "succeeded"
    report = call(product, "get_report", runId=run_id, format="full")
    judges = [each["evaluator"] for section in report["sections"] for each in section["criteria"]]
    assert judges.count("model") == CRITERIA - 2
    credits_ = call(product, "get_credits")
    assert (credits_["balance"], credits_["held"]) == (90, 0)
    again = len(model.asked) - len(set(model.criteria))
    assert again <= 4 * kills  # those on their way when it was killed
    print(f"{kills} kills, {len(model.asked)} requests for {CRITERIA - 2} criteria")  # noqa: T201 - the figure
    assert KEY not in product.log.read_text()
    for secret in ("secret-guidance", "secret-requirement"):
        assert secret not in product.log.read_text()
