"""What the author of a framework lets its reports show holds in every form of a report, and for every reader."""

import json

import pytest

from make.accounts import account, signed_in
from make.documents import uploaded
from make.reports import company, finished, framework, program
from muniment.accounts import tokens
from muniment.assessments import applications, sharing
from muniment.assessments.models import Report
from muniment.assessments.personal_data import PART
from muniment.assessments.scores import publish_score
from muniment.kernel.actor import SCOPES
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.models import Score
from services.manage import manage

pytestmark = pytest.mark.django_db
TITLES = ("Enough hands", "Moorings 0", "Accounts")
REMEDIATION = "Publish the accounts."
QUOTE = "The annual accounts stand open"


@pytest.fixture
def me(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    return account("owner@harbour.example")


@pytest.fixture
def server():
    with manage() as made:
        yield made


def every_form(me, server, reports):
    """Return each form in which a report with this choice of its author leaves the product, by name."""
    actor = me.actor("web")
    runner = account("runner@harbour.example")
    of = program(runner.actor("web"), reports=reports)
    slug = company(actor)
    paper = uploaded(actor, slug, f"{QUOTE}. {QUOTE}. {QUOTE}.".encode())
    first = finished(actor, slug, of, (paper.pk,))
    update_company(actor, slug, CompanyChange(teamSize=1))
    second = finished(actor, slug, of, (paper.pk,))
    link = sharing.share_report(actor, second.run_id)
    made = applications.submit_application(actor, second.run_id)
    publish_score(actor, second.run_id, sections=True)
    token = tokens.create_token(actor, "laptop", permitted=SCOPES).text
    browser, other = signed_in(me), signed_in(runner)

    def tool(name, **arguments):
        return json.dumps(server.data(token, name, **arguments), ensure_ascii=False)

    pages = {
        "the report's page": browser.get(f"/manage/reports/{second.run_id}"),
        "its Markdown": browser.get(f"/manage/reports/{second.run_id}/report.md"),
        "the shared page": other.get(f"/reports/shared/{link}"),
        "the receiver's page": other.get(f"/manage/applications/{made.pk}"),
        "the page of a comparison": browser.get(f"/manage/reports/compare?run={first.run_id}&with={second.run_id}"),
        "a prepared run": browser.get(
            browser.post("/manage/reports", {"company": slug, "framework": of, "key": "k"})["Location"]
        ),
    }
    assert {each.status_code for each in pages.values()} == {200}
    return {
        **{name: each.content.decode() for name, each in pages.items()},
        "get_report": tool("get_report", runId=second.run_id),
        "get_report full": tool("get_report", runId=second.run_id, format="full"),
        "get_report markdown": tool("get_report", runId=second.run_id, format="markdown"),
        "compare_reports": tool("compare_reports", runId=first.run_id, otherRunId=second.run_id),
        "start_report_run": tool("start_report_run", companySlug=slug, frameworkId=of, dryRun=True),
        "the published score": json.dumps(list(Score.objects.values("score", "grade", "sections"))),
        "the archive of the account": json.dumps([each.content for each in PART.export(me)], default=str),
    }


@pytest.mark.parametrize("reports", [None, "scores"])
def test_a_framework_that_says_nothing_shows_scores_and_sections_alone(me, server, reports):
    forms = every_form(me, server, reports)
    private = (*TITLES, REMEDIATION, QUOTE, '"team"', '"w0"')
    assert {name: text for name, form in forms.items() for text in private if text in form} == {}
    for name in ("the report's page", "its Markdown", "the shared page", "the receiver's page", "get_report full"):
        assert "Everything" in forms[name], name
    full = json.loads(forms["get_report full"])
    assert full["shows"] == "scores"
    assert full["overall"]["score"] is not None
    (section,) = full["sections"]
    assert (section["title"], section["criteria"], sum(section["statuses"].values())) == ("Everything", [], 3)
    summary = json.loads(forms["get_report"])
    assert (sum(summary["sections"][0]["criteria"].values()), summary["next"]) == (3, [])
    compared = json.loads(forms["compare_reports"])
    assert (compared["changed"], compared["changedTotal"], compared["unchangedTotal"]) == ([], 1, 2)
    assert json.loads(forms["start_report_run"])["reportShows"] == "scores"
    assert "keeps its criteria private" in forms["the page of a comparison"]


def test_titles_show_criteria_and_quotes_without_what_to_do(me, server):
    forms = every_form(me, server, "titles")
    assert [name for name, form in forms.items() if REMEDIATION in form] == []
    for name in ("the report's page", "its Markdown", "the shared page", "the receiver's page", "get_report full"):
        assert TITLES[0] in forms[name], name
        assert QUOTE in forms[name], name
    assert TITLES[0] in forms["compare_reports"]


def test_remediation_shows_all(me, server):
    forms = every_form(me, server, "remediation")
    assert REMEDIATION in forms["the report's page"]
    assert REMEDIATION in forms["get_report"]
    assert json.loads(forms["get_report full"])["shows"] == "remediation"


def test_a_quote_that_a_document_repeats_is_cited_once(me):
    actor = me.actor("web")
    slug, of = company(actor), framework()
    text = "\n\n".join([f"{QUOTE}." + " Tide tables follow here, line by line." * 60] * 5)
    paper = uploaded(actor, slug, text.encode())
    finished(actor, slug, of, (paper.pk,))
    sections = Report.objects.get().document["sections"]
    (accounts,) = [each for each in sections[0]["criteria"] if each["id"] == "accounts"]
    assert [each["quote"] for each in accounts["citations"]].count(accounts["citations"][0]["quote"]) == 1


def test_a_report_of_a_run_that_says_nothing_of_it_shows_scores():
    assert Report(document={"sections": []}).shown["shows"] == "scores"
