"""The five credit and report tools, as an agent calls them, and `muniment framework author`."""

import json

import jsonschema
import msgspec
import pytest

from make.accounts import account
from make.documents import uploaded
from make.reports import SECRETS, company, do_jobs, framework, specification
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from services.manage import BASE, manage
from services.mcp import modern
from services.prepared import demo_registry
from services.product import run

TOOLS = ("get_credits", "start_report_run", "execute_report_run", "get_report_run_status", "get_report")


@pytest.fixture
def server(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    with manage() as made:
        yield made


class Agent:
    """One account's agent, which checks each answer against the tool's schema and the size of a context."""

    def __init__(self, server, email, permitted=SCOPES):
        self.actor = account(email).actor("web")
        self.server = server
        self.token = tokens.create_token(self.actor, "laptop", permitted=permitted).text
        listed = server.ask(self.token, modern("tools/list", {})).result["tools"]
        self.schemas = {tool["name"]: tool["outputSchema"] for tool in listed}

    def data(self, name, **arguments):
        answer = self.server.call(self.token, name, **arguments)
        jsonschema.validate(answer, self.schemas[name])
        assert len(msgspec.json.encode(answer)) <= 60_000
        assert "data" in answer, answer
        return answer["data"]

    def error(self, name, **arguments):
        return self.server.error(self.token, name, **arguments)


@pytest.mark.usefixtures("db")
@pytest.mark.requirement("tools.manage.reports")
def test_an_agent_goes_from_credits_to_the_full_report_of_70_criteria(server):
    agent = Agent(server, "owner@harbour.example")
    of, slug = framework(70), company(agent.actor)
    paper = uploaded(agent.actor, slug, b"The annual accounts stand open. The moorings are no secret.")
    before = agent.data("get_credits")
    assert (before["balance"], before["held"], before["available"]) == (100, 0, 100)
    asked = {"companySlug": slug, "frameworkId": of, "documentIds": [paper.pk], "idempotencyKey": "one"}
    started = agent.data("start_report_run", **asked)
    assert (started["state"], started["cost"], started["missingEvidence"]) == ("created", 10, [])
    assert agent.data("start_report_run", **asked)["runId"] == started["runId"]
    run_id = started["runId"]
    assert "is created and has no report" in agent.error("get_report", runId=run_id)["message"]
    assert agent.data("execute_report_run", runId=run_id)["shouldPoll"]
    assert agent.data("get_credits")["held"] == 10
    do_jobs()
    status = agent.data("get_report_run_status", runId=run_id)
    assert (status["state"], status["progress"]["done"]) == ("succeeded", 70)
    assert agent.data("execute_report_run", runId=run_id) == status
    summary = agent.data("get_report", runId=run_id)
    assert (summary["reportId"], len(summary["next"])) == (status["reportId"], 10)
    assert summary["url"] == f"{BASE}/manage/reports/{run_id}"
    full = agent.data("get_report", runId=run_id, format="full")
    assert len(full["sections"][0]["criteria"]) == 70
    assert full["sections"][0]["criteria"][1]["citations"][0]["documentId"] == paper.pk
    markdown = agent.data("get_report", runId=run_id, format="markdown")
    assert markdown["markdown"].startswith("# ")
    after = agent.data("get_credits")
    assert (after["balance"], after["held"]) == (90, 0)
    assert (after["entries"][0]["amount"], after["entries"][0]["runId"]) == (-10, run_id)
    told = msgspec.json.encode([started, status, summary, full, markdown, after]).decode()
    assert not [secret for secret in SECRETS if secret in told]


@pytest.mark.usefixtures("db")
def test_a_stranger_and_a_credential_without_the_scope_get_nowhere(server):
    agent, stranger = Agent(server, "owner@harbour.example"), Agent(server, "other@harbour.example")
    reader = Agent(server, "reader@harbour.example", permitted=["reports:read"])
    of, slug = framework(), company(agent.actor)
    run_id = agent.data("start_report_run", companySlug=slug, frameworkId=of)["runId"]
    for name in ("execute_report_run", "get_report_run_status", "get_report"):
        assert stranger.error(name, runId=run_id)["code"] == "not_found"
    assert stranger.error("start_report_run", companySlug=slug, frameworkId=of)["code"] == "not_found"
    refused = reader.server.ask(
        reader.token, modern("tools/call", {"name": "execute_report_run", "arguments": {"runId": run_id}})
    )
    assert refused.status == 403


@pytest.mark.usefixtures("db")
def test_an_agents_mistake_is_answered_with_a_hint(server):
    agent = Agent(server, "owner@harbour.example")
    of, slug = framework(), company(agent.actor)
    for name, arguments in (
        ("get_report", {"runId": "nothing"}),
        ("start_report_run", {"companySlug": slug, "frameworkId": "nowhere"}),
        ("start_report_run", {"companySlug": slug, "frameworkId": of, "documentIds": ["nothing"]}),
        ("get_report", {"runId": "x", "format": "pdf"}),
    ):
        refused = agent.error(name, **arguments)
        assert refused["code"] in {"not_found", "bad_request"}
        assert refused["hint"]


def test_the_five_tools_say_what_they_need_and_do(db, server):
    agent = Agent(server, "owner@harbour.example")
    listed = {tool["name"]: tool for tool in server.ask(agent.token, modern("tools/list", {})).result["tools"]}
    assert set(TOOLS) <= set(listed)
    reads = {name for name in TOOLS if listed[name]["annotations"]["readOnlyHint"]}
    assert reads == {"get_credits", "get_report_run_status", "get_report"}
    assert listed["execute_report_run"]["annotations"]["idempotentHint"]


@pytest.mark.requirement("cli.operate")
def test_a_framework_is_specified_by_a_file_and_each_fault_is_reported(tmp_path):
    data = demo_registry(tmp_path / "data")
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(specification()))
    broken = specification()
    broken["sections"][0]["criteria"][0]["weight"] = 0
    broken["scale"]["max"] = "four"
    bad.write_text(json.dumps(broken))
    for _ in range(2):
        told = run("framework", "author", "plain-governance", str(good), data=data).stdout
    assert "plain-governance now uses version 4" in told
    refused = run("framework", "author", "plain-governance", str(bad), data=data, check=False)
    assert refused.returncode == 1
    assert "sections[0].criteria[0].weight" in refused.stderr
    assert "scale.max" in refused.stderr
    bad.write_text("{")
    assert (
        "is not valid JSON" in run("framework", "author", "plain-governance", str(bad), data=data, check=False).stderr
    )
    assert "no framework" in run("framework", "author", "nowhere", str(good), data=data, check=False).stderr
