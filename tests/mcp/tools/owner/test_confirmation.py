"""Calls that spend, remove, delete or apply: the first asks, the second acts, once; and no other token does."""

import json

import pytest

from make.accounts import account
from make.documents import uploaded
from make.registry import draft, owner, published, reviewer
from make.reports import company, finished, framework, program
from muniment.accounts import tokens
from muniment.accounts.models import Asks
from muniment.assessments import operations
from muniment.assessments.models import Application, ReportRun
from muniment.documents.models import Document
from muniment.kernel.actor import SCOPES
from muniment.mcp import confirmation
from muniment.registry.models import Company
from muniment.registry.people import profiles
from services.manage import manage
from services.mcp import modern

pytestmark = pytest.mark.django_db
PEOPLE = [{"title": f"Pilot {n}", "person": {"name": f"Ada Quay {n}"}} for n in range(4)]
COOK = {"title": "Cook", "person": {"name": "Bo Stern"}}
ELICITS = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


@pytest.fixture
def server(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    with manage() as made:
        yield made


class Agent:
    """An account's agent; with *elicits* its client can ask its user."""

    def __init__(self, server, who, name="laptop", **how):
        self.server, self.actor = server, who.actor("web")
        self.made = tokens.create_token(self.actor, name, permitted=SCOPES, **how)
        self.text = self.made.text

    def data(self, name, **arguments):
        return self.server.data(self.text, name, **arguments)

    def error(self, name, **arguments):
        return self.server.error(self.text, name, **arguments)

    def asked(self, name, meta=ELICITS, *, by_sdk=False, **arguments):
        """Call as a client that can ask its user, and return the result."""
        answers = {key: arguments.pop(key) for key in ("inputResponses", "requestState") if key in arguments}
        headers, body = modern("tools/call", {"name": name, "arguments": arguments, "_meta": meta, **answers})
        headers = [*headers, ("authorization", f"Bearer {self.text}")]
        asker = self.server.asker
        answer = asker.by_sdk(headers, body) if by_sdk else asker.ask(headers, body, path="/api/manage/mcp")
        return answer.result

    def answered(self, question, action, name, **arguments):
        """Answer what *question* asks, and repeat the call."""
        reply = {"inputResponses": {"confirm": {"action": action}}, "requestState": question["requestState"]}
        return self.asked(name, **reply, **arguments)


@pytest.fixture
def who():
    return account("owner@harbour.example")


@pytest.fixture
def agent(server, who):
    return Agent(server, who)


class Case:
    """A call that asks, and whether it has acted."""

    def __init__(self, agent, name, has_acted, **arguments):
        self.agent, self.name, self.has_acted, self.arguments = agent, name, has_acted, arguments

    def call(self, **more):
        return self.agent.data(self.name, **self.arguments, **more)

    def refused(self, **more):
        return self.agent.error(self.name, **self.arguments, **more)


def _run(agent):
    run = operations.start_run(agent.actor, company(agent.actor), framework()).run.row
    return Case(agent, "execute_report_run", lambda: agent.data("get_credits")["held"] == 10, runId=run.pk)


def _removal(agent):
    slug = published(agent.actor, positions=PEOPLE).slug
    row = agent.data("get_my_company", slug=slug)["positions"][0]["id"]
    changes = {"positions": {"remove": [row]}}
    return Case(
        agent,
        "update_my_company",
        lambda: Company.objects.get(slug=slug).positions.count() < len(PEOPLE),
        slug=slug,
        changes=changes,
    )


def _deletion(agent):
    paper = uploaded(agent.actor, company(agent.actor))
    return Case(
        agent,
        "delete_document",
        lambda: Document.objects.get(pk=paper.pk).deleted_at is not None,
        documentId=paper.pk,
    )


def _application(agent):
    run_id = finished(agent.actor, of=program(owner("runner@example.org"))).run_id
    return Case(agent, "submit_application", Application.objects.exists, runId=run_id)


def _ended_position(agent):
    published(owner("listing@example.org"), name="Harbour", positions=[{"title": "Chair", "person": {"name": "Ada"}}])
    profiles.join_person(reviewer(), "ada", agent.actor.account_id)
    (held,) = agent.data("get_my_profile")["positions"]
    return Case(
        agent,
        "update_my_profile",
        lambda: not agent.data("get_my_profile")["positions"],
        positions={"end": [held["id"]]},
    )


CASES = {
    "a run": _run,
    "a removal": _removal,
    "a deletion": _deletion,
    "an application": _application,
    "an ended position": _ended_position,
}


@pytest.fixture(params=CASES)
def case(request, agent):
    return CASES[request.param](agent)


def test_the_first_call_asks_and_the_second_acts(case):
    asked = case.refused()
    assert (asked["code"], asked["reason"]) == ("bad_request", "confirmation_required")
    assert asked["message"]
    assert asked["expiresAt"].endswith("Z")
    assert not case.has_acted()
    case.call(confirm=asked["confirm"])
    assert case.has_acted()


def test_a_dry_run_answers_as_the_call_would_and_its_token_confirms_the_call(case):
    shown = case.call(dryRun=True)
    assert shown["dryRun"] is True
    assert not case.has_acted()
    assert shown["confirmation"]["message"]
    case.call(confirm=shown["confirmation"]["confirm"])
    assert case.has_acted()


def test_a_token_of_another_account_credential_tool_or_time_or_an_altered_one_confirms_nothing(
    case, server, who, monkeypatch
):
    own = case.refused()["confirm"]
    second = Agent(server, who, name="laptop")  # a name can be given twice
    other = second.error(case.name, **case.arguments)["confirm"]
    altered = own[:-1] + ("A" if own[-1] != "A" else "B")
    for given in (other, altered, own.upper(), "", "x" * 400, own + ":"):
        assert case.refused(confirm=given)["reason"] == "confirmation_required"
    stranger = Agent(server, account("stranger@harbour.example"))
    if case.name != "update_my_profile":
        assert stranger.error(case.name, **case.arguments, confirm=own)["code"] == "not_found"
    monkeypatch.setattr(confirmation, "VALID_S", -1)
    assert case.refused(confirm=own)["reason"] == "confirmation_required"
    assert not case.has_acted()


def test_a_client_that_asks_its_user_acts_when_they_agree(case):
    agent, name, arguments = case.agent, case.name, case.arguments
    question = agent.asked(name, **arguments)
    assert question["resultType"] == "input_required"
    form = question["inputRequests"]["confirm"]
    assert (form["method"], form["params"]["mode"]) == ("elicitation/create", "form")
    assert form["params"]["message"]
    for action in ("decline", "cancel"):
        declined = agent.answered(question, action, name, **arguments)
        assert declined["structuredContent"]["error"]["reason"] == "declined"
    again = agent.asked(name, **arguments, inputResponses={}, requestState=question["requestState"])
    assert again["resultType"] == "input_required", "no answer is no agreement"
    alone = agent.asked(name, **arguments, inputResponses={"confirm": {"action": "accept"}})
    assert alone["resultType"] == "input_required", "an answer to no question"
    dry = agent.asked(name, **arguments, dryRun=True)["structuredContent"]["data"]
    assert "confirm" not in dry["confirmation"], "its user is asked instead"
    plain = case.refused()["confirm"]
    assert agent.asked(name, **arguments, confirm=plain)["resultType"] == "input_required"
    assert not case.has_acted()
    done = agent.answered(question, "accept", name, **arguments)
    assert (done["isError"], done["resultType"]) == (False, "complete")
    assert case.has_acted()


def test_the_thin_path_and_the_sdk_ask_alike(case):
    agent, name, arguments = case.agent, case.name, case.arguments
    thin, sdk = (agent.asked(name, **arguments, by_sdk=by_sdk) for by_sdk in (False, True))
    assert thin.pop("requestState").partition(":")[0] == sdk.pop("requestState").partition(":")[0]
    assert thin == sdk
    question = agent.asked(name, **arguments)
    reply = {"inputResponses": {"confirm": {"action": "decline"}}, "requestState": question["requestState"]}
    assert agent.asked(name, **arguments, **reply) == agent.asked(name, **arguments, **reply, by_sdk=True)
    reply["inputResponses"]["confirm"]["action"] = "accept"
    assert agent.asked(name, **arguments, **reply, by_sdk=True)["isError"] is False
    assert case.has_acted()


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_a_client_without_forms_gets_a_token(agent, capabilities):
    case = _run(agent)
    meta = {"io.modelcontextprotocol/clientCapabilities": capabilities}
    for by_sdk in (False, True):
        found = agent.asked(case.name, meta, **case.arguments, by_sdk=by_sdk)
        assert found["structuredContent"]["error"]["reason"] == "confirmation_required"


def test_a_credential_that_acts_without_asking_acts_at_once(case, who):
    tokens.change_asking(case.agent.actor, case.agent.made.row.pk, Asks.NONE)
    case.agent.server.doorkeeper.recheck()
    case.call()
    assert case.has_acted()


def test_a_credential_from_before_asks_before_it_applies_alone(case):
    tokens.change_asking(case.agent.actor, case.agent.made.row.pk, Asks.APPLICATIONS)
    case.agent.server.doorkeeper.recheck()
    if case.name == "submit_application":
        assert case.refused()["reason"] == "confirmation_required"
    else:
        case.call()
        assert case.has_acted()


def test_a_run_is_asked_about_with_its_price_and_repeated_without(agent):
    case = _run(agent)
    asked = case.refused()
    assert (asked["cost"], asked["available"], asked["runId"]) == (10, 100, case.arguments["runId"])
    assert "10 of your 100 credits" in asked["message"]
    first = case.call(confirm=asked["confirm"])
    assert case.call(confirm=asked["confirm"]) == case.call() == first
    assert agent.data("get_credits")["held"] == 10


def test_a_run_whose_price_changed_is_asked_about_again_and_a_free_one_is_not(agent):
    case = _run(agent)
    token = case.refused()["confirm"]
    ReportRun.objects.update(cost=20)
    assert case.refused(confirm=token)["cost"] == 20
    ReportRun.objects.update(cost=0)
    assert case.call()["state"] == "queued"


def test_a_run_without_enough_credits_is_refused_before_it_is_asked_about(agent):
    case = _run(agent)
    ReportRun.objects.update(cost=1_000)
    assert "reason" not in case.refused()
    assert "reason" not in case.refused(dryRun=True)


def test_what_an_update_removes_is_named_and_other_updates_are_not_asked_about(agent):
    slug = published(
        agent.actor,
        positions=PEOPLE,
        themes=["DeFi", "Gaming"],
        distribution={"method": "airdrop", "pools": [{"name": "Crew", "percentage": 10}]},
    ).slug

    def update(**changes):
        version = agent.data("get_my_company", slug=slug)["version"]
        return agent.server.call(agent.text, "update_my_company", slug=slug, changes=changes, expectedVersion=version)

    rows = agent.data("get_my_company", slug=slug)["positions"]
    for changes in (
        {"description": "New."},
        {"positions": {"add": [COOK], "set": [{"id": rows[0]["id"], "title": "Chair"}]}},
        {"themes": ["DeFi", "Climate"]},
    ):
        assert "data" in update(**changes)
    asked = update(positions={"remove": [rows[0]["id"], rows[1]["id"]]})["error"]
    assert asked["removes"] == {
        "positions": {"before": 5, "after": 3, "removed": 2, "names": ["Ada Quay 0, Chair", "Ada Quay 1, Pilot 1"]}
    }
    assert "2 of 5 rows of positions" in asked["message"]
    assert (
        update(positions=[{"title": "Alone", "person": {"name": "Bo Stern"}}])["error"]["removes"]["positions"]["after"]
        == 1
    )
    assert update(themes=["DeFi"])["error"]["removes"]["themes"]["names"]
    assert update(themes=None)["error"]["removes"]["themes"]["after"] == 0
    assert update(distribution=None)["error"]["removes"]["distribution.pools"]["names"] == ["Crew"]
    assert Company.objects.get(slug=slug).positions.count() == 5


def test_a_token_holds_for_one_version_of_the_listing(agent):
    case = _removal(agent)
    token = case.refused()["confirm"]
    slug = case.arguments["slug"]
    agent.data("update_my_company", slug=slug, changes={"description": "Changed in between."})
    fresh = case.refused(confirm=token)
    assert fresh["reason"] == "confirmation_required"
    done = case.call(confirm=fresh["confirm"], expectedVersion=fresh["version"])
    history = agent.data("get_my_company", slug=slug, parts=["history"])["history"]
    agent.data("update_my_company", slug=slug, revert=history[0]["id"])
    assert case.refused(confirm=fresh["confirm"])["version"] > done["version"]


def test_undoing_an_addition_is_asked_about(agent):
    slug = published(agent.actor, positions=PEOPLE).slug
    agent.data("update_my_company", slug=slug, changes={"positions": {"add": [COOK]}})
    entry = agent.data("get_my_company", slug=slug, parts=["history"])["history"][0]["id"]
    asked = agent.error("update_my_company", slug=slug, revert=entry)
    assert asked["removes"]["positions"]["names"] == ["Bo Stern, Cook"]
    agent.data("update_my_company", slug=slug, revert=entry, confirm=asked["confirm"])


def test_a_token_deletes_a_document_once(agent):
    case = _deletion(agent)
    token = case.refused()["confirm"]
    case.call(confirm=token)
    assert case.call()["deletedAt"], "repeating it succeeds"
    case.call(restore=True)
    assert case.refused(confirm=token)["reason"] == "confirmation_required"
    assert not case.has_acted()


def test_a_token_of_one_call_confirms_no_other(agent):
    first, second = _removal(agent), _deletion(agent)
    token = first.refused()["confirm"]
    assert second.refused(confirm=token)["reason"] == "confirmation_required"
    rows = agent.data("get_my_company", slug=first.arguments["slug"])["positions"]
    wider = {"positions": {"remove": [each["id"] for each in rows]}}
    refused = agent.error("update_my_company", slug=first.arguments["slug"], changes=wider, confirm=token)
    assert refused["removes"]["positions"]["removed"] == len(PEOPLE)


def test_every_tool_that_writes_shows_what_it_would_do(server, agent):
    listed = server.ask(agent.text, modern("tools/list", {})).result["tools"]
    writing = {tool["name"]: tool for tool in listed if not tool["annotations"]["readOnlyHint"]}
    assert len(writing) == 12
    for tool in writing.values():
        assert tool["inputSchema"]["properties"]["dryRun"] == {"type": "boolean"}
    asking = {name for name, tool in writing.items() if "confirm" in tool["inputSchema"]["properties"]}
    assert asking == {
        "update_my_company",
        "update_my_profile",
        "delete_document",
        "execute_report_run",
        "share_report",
        "submit_application",
    }
    assert "confirmation_required" in json.dumps(listed)


def test_a_dry_run_of_the_other_tools_changes_nothing(agent):
    slug, of = company(agent.actor), framework()
    started = agent.data("start_report_run", companySlug=slug, frameworkId=of, dryRun=True)
    assert (started["cost"], started["dryRun"]) == (10, True)
    assert "runId" not in started
    assert agent.data("list_my_runs") == []
    run = operations.start_run(agent.actor, slug, of).run.row
    assert agent.data("cancel_report_run", runId=run.pk, dryRun=True)["state"] == "canceled"
    assert agent.data("get_report_run_status", runId=run.pk)["state"] == "created"
    file = {"companySlug": slug, "filename": "a.txt"}
    small = agent.data("upload_document", **file, text="Minutes.", dryRun=True)
    assert (small["state"], small["sizeBytes"], "documentId" in small) == ("ready", 8, False)
    large = agent.data("create_document_upload", **file, sizeBytes=9, dryRun=True)
    assert "url" not in large
    assert (
        "rejected"
        in agent.error("upload_document", companySlug=slug, filename="a.pdf", text="No.", dryRun=True)["message"]
    )
    assert agent.data("list_my_documents") == []
    report = finished(agent.actor, slug).run_id
    assert agent.data("share_report", runId=report, dryRun=True) == {
        "runId": report,
        "shared": True,
        "url": None,
        "dryRun": True,
    }
    assert agent.data("share_report", runId=report, shared=False, dryRun=True)["shared"] is False


def test_a_dry_run_submits_no_draft_and_restores_no_document(agent):
    slug = draft(agent.actor, type="DAO", description="A harbour.").slug
    assert agent.data("submit_for_review", slug=slug, dryRun=True)["state"] == "submitted"
    assert agent.data("get_my_company", slug=slug)["state"] == "draft"
    case = _deletion(agent)
    case.call(confirm=case.refused()["confirm"])
    assert case.call(restore=True, dryRun=True)["deletedAt"] is None
    assert case.has_acted()
