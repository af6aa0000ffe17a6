"""Reports as readers see them: as Markdown, and short enough for an answer of a tool."""

import msgspec
import pytest

from make.registry import owner
from make.reports import finished
from muniment.assessments import report_views
from muniment.assessments.report_views import plain, to_markdown

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _prices(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def test_a_large_report_is_truncated_to_fit_and_marked():
    quote = "Wörter und “Zeichen” " * 14
    criterion = {
        "id": "c",
        "title": "T" * 60,
        "status": "partial",
        "level": 2,
        "maxLevel": 4,
        "rationale": "R" * 100,
        "remediation": "N" * 100,
        "citations": [{"source": "documents", "documentId": "d" * 26, "page": 1, "quote": quote}] * 5,
    }
    report = finished(owner()).document
    report["sections"] = [{"id": "s", "title": "S", "score": 50, "criteria": [criterion] * 70}]
    for shown in (
        report_views.full(report, "u"),
        report_views.markdown(report, "u"),
        report_views.summary(report, "u"),
    ):
        assert len(msgspec.json.encode(shown)) <= 60_000
    assert report_views.full(report, "u")["truncated"]
    assert len(report_views.full(report, "u")["sections"][0]["criteria"]) == 70
    assert "truncated" not in report_views.summary(report, "u")
    report["sections"][0]["criteria"] *= 30
    assert len(msgspec.json.encode(report_views.full(report, "u"))) <= 60_000
    assert len(msgspec.json.encode(report_views.markdown(report, "u"))) <= 60_000
    long = {**criterion, "title": "題" * 3_000, "remediation": "直" * 20_000}
    report["sections"] = [{"id": "s", "title": "題" * 200, "score": 50, "criteria": [long]}] * 300
    for shown in (report_views.summary(report, "u"), report_views.full(report, "u")):
        assert len(msgspec.json.encode(shown)) <= 60_000
        assert (shown["truncated"], shown["sectionsTotal"], shown["nextTotal"]) == (True, 300, 300)
        assert shown["next"]


def test_the_next_steps_begin_with_what_would_raise_the_score_most():
    criteria = [
        {"id": name, "title": name, "status": status, "remediation": None, "citations": []}
        for name, status in (("small", "not_met"), ("large", "partial"), ("met", "met"), ("same", "insufficient"))
    ]
    report = {"reportId": "r", "sections": [{"id": "s", "title": "S", "score": 1, "criteria": criteria}]}
    rises = {"small": 1.0, "large": 30.0, "met": 0.0, "same": 1.0}
    steps = report_views.summary(report, "/", rises)["next"]
    assert [each["id"] for each in steps] == ["large", "small", "same"]
    assert [each["id"] for each in report_views.summary(report, "/")["next"]] == ["small", "same", "large"]


def test_markdown_escapes_quotes_and_shows_each_criterion():
    assert (
        plain("<img src=x> [go](http://evil.example)\n# head") == r"\<img src=x\> \[go\](http://evil.example) \# head"
    )
    report = {
        "reportId": "r1",
        "shows": "remediation",
        "companyName": "Tide *Works*",
        "frameworkName": "Plain",
        "specificationVersion": 3,
        "createdAt": "2026-11-21T10:00:00.000000Z",
        "overall": {"score": 62.5, "band": "B", "coverage": 0.75, "confidence": 0.83},
        "evaluator": {"kind": "rules", "model": None, "promptHash": None},
        "sections": [
            {
                "id": "s",
                "title": "One",
                "score": 66.7,
                "criteria": [
                    {
                        "id": "a",
                        "title": "Board",
                        "status": "partial",
                        "level": 2,
                        "maxLevel": 4,
                        "rationale": "Found.",
                        "citations": [{"source": "documents", "documentId": "d", "page": 2, "quote": "a|b"}],
                        "remediation": "Publish it.",
                    }
                ],
            }
        ],
    }
    text = to_markdown(report)
    assert r"# Tide \*Works\*: Plain" in text
    assert "**62.5 of 100**, band B" in text
    assert "**Partly met**, level 2 of 4. Found." in text
    assert r"> a\|b (document, page 2)" in text
    assert "Next: Publish it." in text
