"""An application asks before it acts, once; every other call acts at once, and each shows what it would do."""

import pytest

from make.accounts import account
from make.documents import uploaded
from make.registry import draft, owner, published, reviewer
from make.reports import company, finished, framework, program
from muniment.accounts import tokens
from muniment.assessments import operations
from muniment.assessments.models import Application
from muniment.documents.models import Document
from muniment.kernel.actor import SCOPES
from muniment.mcp.tools.owner import sharing
from muniment.registry.models import Company, Framework
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

    def asked(self, name, meta=ELICITS, **arguments):
        """Call as a client that can ask its user, and return the result."""
        answers = {key: arguments.pop(key) for key in ("inputResponses", "requestState") if key in arguments}
        headers, body = modern("tools/call", {"name": name, "arguments": arguments, "_meta": meta, **answers})
        headers = [*headers, ("authorization", f"Bearer {self.text}")]
        return self.server.asker.ask(headers, body, path="/api/manage/mcp").result

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
    """A call, and whether it has acted."""

    def __init__(self, agent, name, has_acted, **arguments):
        self.agent, self.name, self.has_acted, self.arguments = agent, name, has_acted, arguments

    def call(self, **more):
        return self.agent.data(self.name, **self.arguments, **more)

    def refused(self, **more):
        return self.agent.error(self.name, **self.arguments, **more)


def _run(agent):
    slug, of = company(agent.actor), framework()
    run = operations.start_run(agent.actor, slug, of).run.row
    case = Case(agent, "execute_report_run", lambda: agent.data("get_credits")["held"] == 10, runId=run.pk)
    case.company, case.framework = slug, of
    return case


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
    "an ended position": _ended_position,
}


def _application(agent, runner="runner@example.org"):
    run_id = finished(agent.actor, of=program(owner(runner))).run_id
    return Case(agent, "submit_application", Application.objects.exists, runId=run_id)


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_what_can_be_undone_or_has_shown_its_price_acts_at_once(make, agent):
    case = make(agent)
    shown = case.call(dryRun=True)
    assert (shown["dryRun"], "confirmation" in shown, case.has_acted()) == (True, False, False)
    case.call()
    assert case.has_acted()


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_a_client_that_can_ask_its_user_is_asked_about_none_of_these(make, agent):
    case = make(agent)
    assert agent.asked(case.name, **case.arguments)["isError"] is False
    assert case.has_acted()


@pytest.fixture
def application(agent):
    return _application(agent)


def test_the_first_call_of_an_application_submits_nothing_and_is_no_fault_and_the_second_submits(application):
    result = application.agent.server.ask(
        application.agent.text, modern("tools/call", {"name": application.name, "arguments": application.arguments})
    ).result
    assert result["isError"] is False
    data = result["structuredContent"]["data"]
    asked = data["confirmation"]
    assert (data["state"], asked["reason"]) == ("not_submitted", "confirmation_required")
    assert asked["message"]
    assert asked["receiver"]
    assert asked["expiresAt"].endswith("Z")
    assert not application.has_acted()
    assert application.call(confirm=asked["confirm"])["state"] == "submitted"
    assert application.has_acted()


def test_a_dry_run_of_an_application_answers_as_it_would_and_its_token_confirms_it(application):
    shown = application.call(dryRun=True)
    assert (shown["dryRun"], shown["state"]) == (True, "submitted")
    assert not application.has_acted()
    application.call(confirm=shown["confirmation"]["confirm"])
    assert application.has_acted()


def test_a_token_of_another_account_credential_report_or_time_or_an_altered_one_confirms_nothing(
    application, server, who, monkeypatch
):
    own = application.call()["confirmation"]["confirm"]
    second = Agent(server, who, name="laptop")  # a name can be given twice
    other = second.data(application.name, **application.arguments)["confirmation"]["confirm"]
    further = _application(application.agent, "further@example.org").call()["confirmation"]["confirm"]
    altered = own[:-1] + ("A" if own[-1] != "A" else "B")
    for given in (other, further, altered, own.upper(), "x" * 400, own + ":"):
        assert application.call(confirm=given)["state"] == "not_submitted"
    stranger = Agent(server, account("stranger@harbour.example"))
    assert stranger.error(application.name, **application.arguments, confirm=own)["code"] == "not_found"
    monkeypatch.setattr(sharing, "VALID_S", -1)
    assert application.call(confirm=own)["state"] == "not_submitted"
    assert not application.has_acted()


def test_a_client_that_asks_its_user_applies_when_they_agree(application):
    agent, name, arguments = application.agent, application.name, application.arguments
    question = agent.asked(name, **arguments)
    assert question["resultType"] == "input_required"
    form = question["inputRequests"]["confirm"]
    assert (form["method"], form["params"]["mode"]) == ("elicitation/create", "form")
    assert form["params"]["message"]
    for action in ("decline", "cancel"):
        declined = agent.answered(question, action, name, **arguments)
        data = declined["structuredContent"]["data"]
        assert (declined["isError"], data["state"]) == (False, "not_submitted")
        assert data["confirmation"]["reason"] == "declined"
    again = agent.asked(name, **arguments, inputResponses={}, requestState=question["requestState"])
    assert again["resultType"] == "input_required", "no answer is no agreement"
    alone = agent.asked(name, **arguments, inputResponses={"confirm": {"action": "accept"}})
    assert alone["resultType"] == "input_required", "an answer to no question"
    dry = agent.asked(name, **arguments, dryRun=True)["structuredContent"]["data"]
    assert "confirm" not in dry["confirmation"], "its user is asked instead"
    plain = application.call()["confirmation"]["confirm"]
    assert agent.asked(name, **arguments, confirm=plain)["resultType"] == "input_required"
    assert not application.has_acted()
    done = agent.answered(question, "accept", name, **arguments)
    assert (done["isError"], done["resultType"]) == (False, "complete")
    assert application.has_acted()


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_a_client_without_forms_gets_a_token(application, capabilities):
    meta = {"io.modelcontextprotocol/clientCapabilities": capabilities}
    found = application.agent.asked(application.name, meta, **application.arguments)
    assert found["structuredContent"]["data"]["confirmation"]["confirm"]


def test_a_run_holds_the_price_that_was_shown_and_repeated_no_more(agent):
    case = _run(agent)
    first = case.call()
    assert case.call() == first
    assert agent.data("get_credits")["held"] == 10


@pytest.mark.parametrize("price", [9, 11])
def test_a_run_whose_price_changed_is_refused_with_the_new_price(agent, price):
    case = _run(agent)
    Framework.objects.update(run_cost=price)
    refused = case.refused()
    assert f"{price} credits now" in refused["message"]
    assert "start_report_run" in refused["hint"]
    assert agent.data("get_credits")["held"] == 0
    again = agent.data("start_report_run", companySlug=case.company, frameworkId=case.framework)
    assert again["cost"] == price
    assert agent.data("execute_report_run", runId=again["runId"])["state"] == "queued"
    assert agent.data("get_credits")["held"] == price


def test_a_run_without_enough_credits_is_refused(agent, settings):
    settings.RUN_COST = 1_000
    case = _run(agent)
    assert "1000" in case.refused()["message"].replace(",", "")
    assert agent.data("get_credits")["held"] == 0


def test_every_tool_that_writes_shows_what_it_would_do(server, agent):
    listed = server.ask(agent.text, modern("tools/list", {})).result["tools"]
    writing = {tool["name"]: tool for tool in listed if not tool["annotations"]["readOnlyHint"]}
    assert len(writing) == 12
    for tool in writing.values():
        assert tool["inputSchema"]["properties"]["dryRun"] == {"type": "boolean"}
    asking = {name for name, tool in writing.items() if "confirm" in tool["inputSchema"]["properties"]}
    assert asking == {"submit_application"}


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
    case.call()
    assert case.call(restore=True, dryRun=True)["deletedAt"] is None
    assert case.has_acted()
