"""The public pages of assessments, from the published documents alone: company, summary, framework, badge."""

import re
from xml.etree import ElementTree as ET

import html5lib
import pytest
from django.test import Client

from make.published import AT, Publisher, company, framework
from muniment.store.reader import Reader
from muniment.web.requests import page_cache
from muniment.web.views.public import assessments as views

HOSTILE = '<script>alert("x")</script>'
SUMMARY = "/companies/company-1/assessments/river-score"


def assessed(slug, score, framework_id="river-score", **more):
    return {
        "frameworkId": framework_id,
        "frameworkName": "River [score]",
        "score": score,
        "assessedAt": AT,
        "url": f"/companies/{slug}/assessments/{framework_id}",
        "specificationVersion": 3,
        "evaluator": "rules",
        **more,
    }


def registry():
    sections = [{"title": "Governance", "score": 80}, {"title": HOSTILE, "score": 12.5}, {"title": "Nothing applies"}]
    first = assessed(
        "company-1",
        72.5,
        grade="B",
        sections=sections,
        previousScore=64,
        previousAssessedAt="2025-05-03T00:00:00.000000Z",
    )
    more = [assessed("company-1", 50, f"score-{n}") for n in range(8)]
    yield company(1, name="Boats & Sons <b>", assessments=[first, *more])
    yield company(2, name=HOSTILE, assessments=[assessed("company-2", 90)])
    yield company(3)
    for number in range(4, 110):
        yield company(number, assessments=[assessed(f"company-{number}", number / 2)])
    best = [{"rank": 1, "company": {"id": "company-2", "name": HOSTILE}, "score": 90, "assessedAt": AT, "url": "/x"}]
    yield framework(1, "river-score", name="River [score]", scoreCount=108, topScores=best)
    yield framework(2, "bare-score")


@pytest.fixture(scope="module")
def _served(tmp_path_factory):
    file = tmp_path_factory.mktemp("assessments") / "published.sqlite3"
    publisher = Publisher(file)
    publisher.publish(*registry())
    reader = Reader(file)
    yield reader
    reader.close()
    publisher.close()


@pytest.fixture
def visitor(_served):
    page_cache.use(_served)
    yield Client()
    page_cache.use(None)


def shown(visitor, path):
    answer = visitor.get(path)
    assert answer.status_code == 200, answer.content[:500]
    text = answer.content.decode()
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.parse(text)
    assert not [error for _, error, _ in parser.errors if "head" not in error], parser.errors
    assert HOSTILE not in text
    return text


def test_a_company_shows_its_published_scores_and_leads_to_all_of_them(visitor):
    text = shown(visitor, "/companies/company-1")
    block = text[text.index('id="assessments"') :]
    assert f'<a href="{SUMMARY}"><bdi>River [score]</bdi></a>' in block
    assert '<span class="unseen">8.5 more than on 3 May 2025</span>' in block
    assert "Show all 9 assessments" in block
    assert shown(visitor, "/companies/company-1/assessments").count('<th scope="row">') == 9
    assert 'id="assessments"' not in shown(visitor, "/companies/company-3")
    bare = shown(visitor, "/companies/company-3/assessments")
    assert "No published scores" in bare
    assert 'href="/frameworks">Browse frameworks</a>' in bare


METHOD = "Fixed rules, no language model"


def test_a_summary_says_the_score_its_sections_and_where_it_comes_from(visitor):
    text = shown(visitor, SUMMARY)
    for part in (
        "72.5",
        ">B<",
        "1 January 2026",
        "64 on 3 May 2025",
        "Governance",
        "12.5",
        METHOD,
    ):
        assert part in text, part
    assert "Nothing applies" not in text
    for address in ("/companies/company-1", "/frameworks/river-score", "/frameworks/river-score/scores"):
        assert f'href="{address}"' in text
    alone = shown(visitor, "/companies/company-2/assessments/river-score")
    assert "chart-bar" not in alone
    assert "Since the score before" not in alone


def test_the_badge_and_the_code_that_embeds_it_lead_to_the_summary(visitor):
    text = shown(visitor, SUMMARY)
    html, markdown = re.findall(r'code of the badge"><code>(.*?)</code>', text, re.DOTALL)
    assert f"&lt;a href=&quot;http://testserver{SUMMARY}&quot;&gt;" in html
    assert markdown == (
        f"[![River \\[score\\]: 72.5 B](http://testserver{SUMMARY}/badge.svg)](http://testserver{SUMMARY})"
    )
    seen = visitor.get(f"{SUMMARY}/badge.svg")
    proof = "http://testserver/api/v1/log/proof?kind=company&amp;id="
    assert f"<metadata>Proof: {proof}{SUMMARY.split('/')[2]}</metadata>" in seen.content.decode()
    assert (
        f'href="{proof.removeprefix("http://testserver")}{SUMMARY.split("/")[2]}"'
        in visitor.get(SUMMARY).content.decode()
    )
    assert seen["Content-Type"].startswith("image/svg+xml")
    assert seen["ETag"]
    assert ET.fromstring(seen.content)[0].text == "River [score]: 72.5 B"


@pytest.mark.parametrize(
    "path", ["/companies/company-3/assessments/river-score", f"{SUMMARY}x", f"{SUMMARY}x/badge.svg"]
)
def test_what_is_not_published_has_no_page(visitor, path):
    assert visitor.get(path).status_code == 404


def test_a_framework_shows_its_best_scores_and_leads_to_all(visitor):
    text = shown(visitor, "/frameworks/river-score")
    assert 'href="/companies/company-2"' in text
    assert 'href="/companies/company-2/assessments/river-score"' in text
    assert 'href="/frameworks/river-score/scores">Show all 108 scores' in text
    bare = shown(visitor, "/frameworks/bare-score")
    assert "No published scores yet" in bare


def test_all_scores_of_a_framework_come_in_pages_the_best_first(visitor):
    first = shown(visitor, "/frameworks/river-score/scores")
    assert first.count('<th scope="row">') == views.SCORES
    ranks = re.findall(r'<td class="number">(\d+)</td><th scope="row"><a href="/companies/([\w-]+)"', first)
    assert ranks[:3] == [("1", "company-2"), ("2", "company-1"), ("3", "company-109")]
    second = shown(visitor, "/frameworks/river-score/scores?page=2")
    assert second.count('<th scope="row">') == 8
    assert shown(visitor, "/frameworks/river-score/scores?page=999").count('<th scope="row">') == 8
    assert "No organization has published" in shown(visitor, "/frameworks/bare-score/scores")
    assert visitor.get("/frameworks/missing/scores").status_code == 404
