"""What is refused about specifications, runs and reports: with a way out, and no credits move."""

import copy
import json
from datetime import timedelta

import pytest
from click.testing import CliRunner

from make.accounts import account, signed_in
from make.documents import uploaded
from make.registry import owner, reviewer
from make.reports import company, finished, framework, specification
from muniment.accounts import tokens
from muniment.assessments import operations as runs
from muniment.assessments.models import ReportRun
from muniment.cli import main
from muniment.credits import operations as ledger
from muniment.credits.models import Hold, LedgerAccount, Transfer
from muniment.kernel.actor import SCOPES
from muniment.kernel.ids import now
from muniment.registry.frameworks.authoring import update_framework
from muniment.registry.models import FrameworkSpecification
from services.manage import manage

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _prices(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def books():
    """Return every row of the ledger, which proves itself."""
    assert ledger.check_ledger() == []
    return [list(table.objects.order_by("pk").values()) for table in (LedgerAccount, Transfer, Hold)]


# ------------------------------------------------------------------ specifications


def changed(path, value):
    """Return a whole specification as text with one place changed."""
    document = copy.deepcopy(specification())
    inner = document
    *steps, last = [
        int(step) if step.isdigit() else step for step in path.replace("]", "").replace("[", ".").split(".")
    ]
    for step in steps:
        inner = inner[step]
    inner[last] = value
    return json.dumps(document)


FIRST = "sections[0].criteria[0]"
CHECK = f"{FIRST}.checks[0]"
MALFORMED = {
    "nothing": ("", "is not valid JSON"),
    "cut off": (json.dumps(specification())[:-9], "is not valid JSON"),
    "no UTF-8": ("\udcff", "is not valid JSON"),
    "not an object": ("[]", "is not an object"),
    "too deep": ("[" * 200_000, "is not valid JSON"),
    "too deep within": (changed("sections[0].more", json.loads("[" * 60 + "]" * 60)), "50 levels deep"),
    "another schema": (changed("schema", "assessment-spec/2"), "schema"),
    "no version": (changed("version", None), "version"),
    "a scale of texts": (changed("scale.max", "four"), "scale.max"),
    "a scale upside down": (changed("scale.max", -1), "scale.max"),
    "no scale": (changed("scale", None), "scale"),
    "another method": (changed("overall.method", "median"), "overall.method"),
    "a band above 100": (changed("overall.bands[0].min", 101), "overall.bands[0].min"),
    "a band twice": (changed("overall.bands[0].min", 0), "overall.bands[1].min"),
    "a band without a label": (changed("overall.bands[0].label", " "), "overall.bands[0].label"),
    "no section": (changed("sections", []), "sections"),
    "a section without a title": (changed("sections[0].title", ""), "sections[0].title"),
    "a section of no weight": (changed("sections[0].weight", 0), "sections[0].weight"),
    "no criterion": (changed("sections[0].criteria", []), "sections[0].criteria"),
    "a criterion that is a text": (changed(FIRST, "board"), FIRST),
    "an id twice": (changed(f"{FIRST}.id", "accounts"), "sections[0].criteria[1].id"),
    "an id that is a list": (changed(f"{FIRST}.id", ["team"]), f"{FIRST}.id"),
    "no requirement": (changed(f"{FIRST}.requirement", None), f"{FIRST}.requirement"),
    "a weight below 0": (changed(f"{FIRST}.weight", -1), f"{FIRST}.weight"),
    "a weight that is true": (changed(f"{FIRST}.weight", True), f"{FIRST}.weight"),
    "a weight beyond numbers": (changed(f"{FIRST}.weight", 10**400), f"{FIRST}.weight"),
    "a level off the scale": (changed(f"{FIRST}.levels[0].level", 5), f"{FIRST}.levels[0].level"),
    "a gate without a cap": (changed(f"{FIRST}.gate", {"minLevel": 2}), f"{FIRST}.gate.capsOverall"),
    "an unknown source": (changed(f"{FIRST}.evidence", {"sources": ["rumours"]}), f"{FIRST}.evidence.sources"),
    "fewer than no citations": (changed(f"{FIRST}.evidence", {"minCitations": -1}), f"{FIRST}.evidence.minCitations"),
    "an unknown operation": (changed(f"{CHECK}.op", "matches"), f"{CHECK}.op"),
    "a comparison with a text": (changed(f"{CHECK}.value", "three"), f"{CHECK}.value"),
    "a check of nothing": (changed(f"{CHECK}.path", ""), f"{CHECK}.path"),
    "a check without a level": (changed(f"{CHECK}.level", None), f"{CHECK}.level"),
    "no phrase": (changed("sections[0].criteria[1].checks[0].terms", []), "criteria[1].checks[0].terms"),
    "a condition that is a list": (changed(f"{FIRST}.appliesIf", []), f"{FIRST}.appliesIf"),
    "an unknown evaluator": (changed(f"{FIRST}.evaluator", "oracle"), f"{FIRST}.evaluator"),
    "a remediation of numbers": (changed(f"{FIRST}.remediation", 7), f"{FIRST}.remediation"),
    "a title with a NUL": (changed(f"{FIRST}.title", "a\0b"), f"{FIRST}.title"),
    "half a character": (changed(f"{FIRST}.guidance", "\ud800"), "is not valid JSON|guidance"),
    "not a number": (changed(f"{FIRST}.weight", float("nan")), f"is not valid JSON|{FIRST}.weight"),
    "infinitely much": (changed("sections[0].weight", float("inf")), "is not valid JSON|sections[0].weight"),
}


def test_there_are_at_least_thirty_kinds():
    assert len(MALFORMED) >= 30


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.requirement("reports.rules")
def test_a_malformed_specification_is_refused_with_its_place(tmp_path, kind):
    text, told = MALFORMED[kind]
    me, of = owner(), framework()
    ledger.hold(me, "waiting", 10)
    before, versions = books(), list(FrameworkSpecification.objects.values())
    file = tmp_path / "specification.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused = CliRunner().invoke(main, ["framework", "author", of, str(file)])
    assert refused.exit_code == 1, refused.output
    assert isinstance(refused.exception, SystemExit), refused.exception
    assert any(each in refused.output for each in told.split("|")), refused.output
    assert "assessment-spec/1" in refused.output
    if kind != "no UTF-8":  # a form of a browser holds nothing else
        editor = signed_in(account("reviewer@harbour.example", "reviewer"))
        for action in ("author", "validate"):
            page = editor.post(f"/review/frameworks/{of}/{action}", {"specification": text})
            assert page.status_code in {200, 422}, page.content
            assert any(each in page.content.decode() for each in told.split("|")), page.content.decode()
    assert list(FrameworkSpecification.objects.values()) == versions
    assert books() == before


# ------------------------------------------------------------------ runs


@pytest.fixture
def agent():
    """Return an owner, a way to call the tools as their agent, and how it is refused."""
    with manage() as server:
        me = account("owner@harbour.example").actor("web")
        token = tokens.create_token(me, "laptop", permitted=SCOPES).text

        def refused(name, **arguments):
            before = books()
            problem = server.error(token, name, **arguments)
            assert books() == before
            assert problem["hint"]
            return problem

        yield me, refused


def test_a_closed_framework_takes_no_run(agent):
    me, refused = agent
    of, slug = framework(), company(me)
    prepared = runs.start_run(me, slug, of).run.row.pk
    update_framework(reviewer(), of, closed=True)
    for problem in (
        refused("start_report_run", companySlug=slug, frameworkId=of),
        refused("execute_report_run", runId=prepared),
    ):
        assert problem["code"] == "bad_request"
        assert "closed" in problem["message"]
        assert "list_frameworks" in problem["hint"]


def test_someone_elses_company_document_and_run_are_not_there(agent):
    me, refused = agent
    other, of, slug = owner(), framework(), company(me)
    theirs = company(other)
    paper = uploaded(other, theirs)
    run_id = finished(other, theirs, of).run_id
    problem = refused("start_report_run", companySlug=theirs, frameworkId=of)
    assert (problem["code"], "list_my_companies" in problem["hint"]) == ("not_found", True)
    problem = refused("start_report_run", companySlug=slug, frameworkId=of, documentIds=[paper.pk])
    assert (problem["code"], "list_my_documents" in problem["hint"]) == ("not_found", True)
    for name in ("execute_report_run", "get_report_run_status", "get_report"):
        problem = refused(name, runId=run_id)
        assert (problem["code"], "list_my_runs" in problem["hint"]) == ("not_found", True)
    assert ReportRun.objects.count() == 1


def test_too_few_credits_are_told_with_both_numbers(agent, settings):
    settings.STARTING_CREDITS = 9
    me, refused = agent
    run_id = runs.start_run(me, company(me), framework()).run.row.pk
    problem = refused("execute_report_run", runId=run_id)
    assert problem["message"].startswith("This costs 10 credits, but only 9 are available")
    assert runs.get_run(me, run_id).state == "created"


def test_an_expired_run_is_refused_before_and_after_the_periodic_job_settled_it(agent):
    me, refused = agent
    run_id = runs.start_run(me, company(me), framework()).run.row.pk
    ReportRun.objects.update(expires_at=now() - timedelta(seconds=1))
    for _ in range(2):
        problem = refused("execute_report_run", runId=run_id)
        assert ("expired" in problem["message"], "start_report_run" in problem["hint"]) == (True, True)
        problem = refused("get_report", runId=run_id)
        assert "is expired and has no report" in problem["message"]
        runs.expire_runs()
    assert ReportRun.objects.get().state == "expired"


def test_a_report_that_is_not_there_yet_says_when_it_will_be(agent):
    me, refused = agent
    run_id = runs.start_run(me, company(me), framework()).run.row.pk
    assert "execute_report_run" in refused("get_report", runId=run_id)["hint"]
    runs.execute_run(me, run_id)
    assert "get_report_run_status" in refused("get_report", runId=run_id)["hint"]
    runs.cancel_run(me, run_id)
    problem = refused("get_report", runId=run_id)
    assert ("canceled" in problem["message"], problem["hint"]) == (True, "Start another run.")
