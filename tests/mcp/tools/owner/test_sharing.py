"""Reports that an agent lists, compares, shares, applies with and cancels; and that no stranger can."""

import jsonschema
import pytest

from make.accounts import account
from make.registry import document, owner
from make.reports import company, finished, framework, program
from muniment.accounts import tokens
from muniment.assessments import applications, operations, scores
from muniment.assessments.models import Application
from muniment.kernel.actor import SCOPES
from services.manage import BASE, manage
from services.mcp import modern

pytestmark = pytest.mark.django_db

TOOLS = ("cancel_report_run", "compare_reports", "share_report", "submit_application")


@pytest.fixture
def server(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    with manage() as made:
        yield made


class Agent:
    """An account's agent, which checks each answer against the tool's schema."""

    def __init__(self, server, actor, permitted=SCOPES, name="laptop"):
        self.actor, self.server = actor, server
        self.token = tokens.create_token(actor, name, permitted=permitted).text
        listed = server.ask(self.token, modern("tools/list", {})).result["tools"]
        self.schemas = {tool["name"]: tool["outputSchema"] for tool in listed}

    def data(self, name, **arguments):
        return self.answer(name, **arguments)["data"]

    def answer(self, name, **arguments):
        answer = self.server.call(self.token, name, **arguments)
        jsonschema.validate(answer, self.schemas[name])
        assert "data" in answer, answer
        return answer

    def error(self, name, **arguments):
        return self.server.error(self.token, name, **arguments)


@pytest.fixture
def agent(server):
    return Agent(server, account("owner@harbour.example").actor("web"))


@pytest.fixture
def stranger(server):
    return Agent(server, account("other@harbour.example").actor("web"))


def test_runs_of_every_state_are_listed_and_found_again(agent, stranger):
    slug, other = company(agent.actor), company(agent.actor)
    done = finished(agent.actor, slug).run_id
    prepared = operations.start_run(agent.actor, slug, framework()).run.row
    elsewhere = operations.start_run(agent.actor, other, framework()).run.row
    answer = agent.answer("list_my_runs")
    assert [each["runId"] for each in answer["data"]] == [elsewhere.pk, prepared.pk, done]
    assert (answer["pagination"]["total"], answer["nextPage"]) == (3, None)
    assert "reportId" in answer["data"][2]
    assert not {"progress", "error", "reportId"} & answer["data"][0].keys()
    assert [each["runId"] for each in agent.data("list_my_runs", companySlug=slug, state="created")] == [prepared.pk]
    assert agent.answer("list_my_runs", pageSize=2)["nextPage"] == 2
    type(prepared).objects.filter(pk=prepared.pk).update(expires_at=prepared.created_at)
    assert [each["runId"] for each in agent.data("list_my_runs", state="expired")] == [prepared.pk]
    assert [each["runId"] for each in agent.data("list_my_runs", state="created")] == [elsewhere.pk]
    assert stranger.data("list_my_runs") == []
    assert stranger.error("list_my_runs", companySlug=slug)["code"] == "not_found"


def test_a_prepared_run_is_canceled_and_costs_nothing(agent):
    run = operations.start_run(agent.actor, company(agent.actor), framework()).run.row
    for _ in range(2):
        assert agent.data("cancel_report_run", runId=run.pk)["state"] == "canceled"
    assert agent.data("get_credits")["held"] == 0


def test_two_reports_are_compared_by_score_and_by_criterion(agent):
    slug, of = company(agent.actor), framework()
    first = finished(agent.actor, slug, of)
    changed = first.document["sections"][0]["criteria"][0]
    second = finished(agent.actor, slug, of)
    worse = {**changed, "status": "not_met", "level": -1}
    second.document["sections"][0]["criteria"][0] = worse
    second.save()
    found = agent.data("compare_reports", runId=second.run_id, otherRunId=first.run_id)
    assert (found["before"]["runId"], found["after"]["runId"]) == (first.run_id, second.run_id)
    assert [(each["title"], each["course"]) for each in found["changed"]] == [(changed["title"], "worse")]
    assert found["changed"][0]["after"] == {key: worse[key] for key in ("status", "level", "maxLevel")}
    assert (found["changedTotal"], found["unchangedTotal"]) == (1, 2)
    assert (
        "cannot be compared with itself"
        in agent.error("compare_reports", runId=first.run_id, otherRunId=first.run_id)["message"]
    )


def test_a_report_is_shared_by_a_link_until_it_ends(agent):
    run_id = finished(agent.actor).run_id
    shared = agent.data("share_report", runId=run_id)
    assert shared["shared"]
    assert "/reports/shared/" in shared["url"]
    assert agent.data("share_report", runId=run_id, shared=False) == {"runId": run_id, "shared": False, "url": None}


def test_a_score_is_published_and_withdrawn(agent):
    report = finished(agent.actor)
    slug, framework_id = report.run.company.slug, report.run.framework.slug
    published = {"runId": report.run_id, "publish": "score"}
    assert document("company", slug)["company"].get("assessments") is None

    assert agent.data("share_report", **published, dryRun=True)["dryRun"]
    assert document("company", slug)["company"].get("assessments") is None
    data = agent.data("share_report", **published)
    assert data == {
        "runId": report.run_id,
        "shared": True,
        "url": f"{BASE}/companies/{slug}/assessments/{framework_id}",
    }
    assert "sections" not in document("company", slug)["company"]["assessments"][0]
    company_shown = agent.data("get_my_company", slug=slug)["company"]
    assert company_shown["assessments"][0]["url"] == data["url"]

    more = {"runId": report.run_id, "publish": "sections"}
    agent.data("share_report", **more)
    assert document("company", slug)["company"]["assessments"][0]["sections"]

    for _ in range(2):
        taken = agent.data("share_report", runId=report.run_id, publish="withdraw")
        assert (taken["shared"], taken["url"]) == (False, None)
    assert document("company", slug)["company"].get("assessments") is None


@pytest.mark.parametrize("what", ["score", "sections", "withdraw"])
def test_a_stranger_publishes_no_score_and_withdraws_none(agent, stranger, what):
    report = finished(agent.actor)
    scores.publish_score(agent.actor, report.run_id)
    assert stranger.error("share_report", runId=report.run_id, publish=what)["code"] == "not_found"
    assert "sections" not in document("company", report.run.company.slug)["company"]["assessments"][0]


def test_an_application_is_confirmed_once_seen_on_the_run_and_withdrawn(agent):
    runner = owner("runner@example.org")
    run_id = finished(agent.actor, of=program(runner)).run_id
    asked = agent.data("submit_application", runId=run_id)["confirmation"]
    assert "Owners of Harbour Fund" in asked["message"]
    assert asked["receiver"]
    assert not Application.objects.exists()
    sent = agent.data("submit_application", runId=run_id, confirm=asked["confirm"])
    assert (sent["state"], sent["receiver"]) == ("submitted", asked["receiver"])
    assert agent.data("list_my_runs")[0]["application"] == {"state": "submitted"}
    assert "already have an open application" in agent.error("submit_application", runId=run_id)["message"]
    for _ in range(2):
        assert agent.data("submit_application", runId=run_id, withdraw=True)["state"] == "withdrawn"
    again = agent.data("submit_application", runId=run_id, confirm=asked["confirm"])
    assert again["state"] == "not_submitted", "a token holds for one application"
    agent.data("submit_application", runId=run_id, confirm=again["confirmation"]["confirm"])
    applications.decide_application(runner, Application.objects.get(state="submitted").pk, accept=False, note="Later.")
    assert agent.data("list_my_runs")[0]["application"] == {"state": "declined", "note": "Later."}


def test_what_was_never_submitted_cannot_be_withdrawn(agent):
    run_id = finished(agent.actor).run_id
    assert "was not submitted" in agent.error("submit_application", runId=run_id, withdraw=True)["message"]
    assert "not a program" in agent.error("submit_application", runId=run_id)["message"]


@pytest.mark.parametrize("name", TOOLS)
def test_a_stranger_reaches_no_run_and_a_credential_that_reads_runs_nothing(agent, stranger, server, name):
    run_id = finished(agent.actor).run_id
    arguments = {"runId": run_id, **({"otherRunId": run_id} if name == "compare_reports" else {})}
    assert stranger.error(name, **arguments)["code"] == "not_found"
    if name != "compare_reports":
        reader = Agent(server, agent.actor, ["reports:read"])
        call = modern("tools/call", {"name": name, "arguments": arguments})
        assert server.ask(reader.token, call).status == 403
