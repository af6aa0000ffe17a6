"""The list and the page of frameworks: searched, sorted, and with the scores that companies have published."""

import json
import re

import pytest
from msgspec import structs

from make.pages import valid
from make.published import company, framework


def scored(made, **members):
    body = json.loads(made.body)
    body["data"] |= members
    return structs.replace(made, body=json.dumps(body).encode())


def names(html):
    return re.findall(r'<div class="name"><a [^>]*>([^<]*)', html)


@pytest.fixture(autouse=True)
def frameworks(publisher):
    publisher.publish(
        framework(1, "tide-score", name="Tide score", description="How power from the tide is shared."),
        framework(2, "mole-score", name="Mole score", description="Whether a mole holds."),
        framework(3, "kelp-program", name="Kelp program", kind="program"),
    )


def test_frameworks_are_found_by_words_and_sorted_by_name(visitor):
    assert names(visitor.get("/frameworks").text) == ["Tide score", "Mole score", "Kelp program"]
    assert names(visitor.get("/frameworks?sort=name").text) == ["Kelp program", "Mole score", "Tide score"]
    assert names(visitor.get("/frameworks?q=power").text) == ["Tide score"]
    assert names(visitor.get("/frameworks?q=score&sort=name").text) == ["Mole score", "Tide score"]
    assert names(visitor.get("/frameworks?q=score&kind=program").text) == []


@pytest.mark.parametrize("path", ["/frameworks?q=power", "/frameworks?sort=name", "/frameworks?q=zzzz"])
def test_a_search_of_frameworks_is_valid_and_leads_to_no_json_of_another_search(visitor, path):
    html = visitor.get(path).text
    valid(html)
    assert "View as JSON" not in html
    assert "newest" not in html


def test_a_framework_without_published_scores_says_what_to_do(visitor, publisher):
    html = visitor.get("/frameworks/tide-score").text
    valid(html)
    assert "No published scores yet" in html
    assert "This framework is closed now" in html
    publisher.publish(scored(framework(1, "tide-score", name="Tide score"), isOpen=True))
    assert html.count('href="/manage/reports?framework=tide-score"') == 0
    assert visitor.get("/frameworks/tide-score").text.count('href="/manage/reports?framework=tide-score"') == 2


def test_a_program_that_is_not_open_says_so_in_one_word_and_explains_no_counting(visitor, publisher):
    for is_open in (False, True):
        publisher.publish(scored(framework(1, "tide-score", name="Tide score"), isOpen=is_open, kind="program"))
        html = visitor.get("/frameworks/tide-score").text
        valid(html)
        assert ("not open for applications now" in html) is not is_open
        assert ('<dd dir="auto">Not open</dd>' in html) is not is_open
        assert ("How scoring works" in html) is is_open


def test_one_applies_to_an_open_program_and_is_told_how(visitor, publisher):
    harbour = {"id": "harbour", "slug": "harbour", "name": "Harbour"}
    program = framework(3, "kelp-program", name="Kelp program", kind="program")
    publisher.publish(scored(program, isOpen=True, company=harbour))
    html = visitor.get("/frameworks/kelp-program").text
    valid(html)
    assert 'href="/manage/reports?framework=kelp-program">Apply</a>' in html
    assert "submit it to <bdi>Harbour</bdi>" in html
    assert "Assess your organization" not in html


def test_a_company_shows_the_frameworks_that_it_runs(visitor, publisher):
    harbour = {"id": "harbour", "slug": "harbour", "name": "Harbour"}
    facets = {"company": ("Harbour",), "company.key": ("harbour",)}
    run = [
        structs.replace(scored(framework(n, f"prize-{n}", name=f"Prize {n}"), company=harbour), facets=facets)
        for n in range(20, 28)
    ]
    publisher.publish(company(90, "harbour", name="Harbour"), *run)
    html = visitor.get("/companies/harbour").text
    valid(html)
    assert re.findall(r'href="/frameworks/(prize-[0-9]+)"', html) == [f"prize-{n}" for n in range(20, 26)]
    assert '<a href="/frameworks?company=harbour">Show all 8 frameworks</a>' in html
    assert "Basic facts only" not in html
    # The list has the organization checked by its name, with the number of what is shown.
    of_harbour = visitor.get("/frameworks?company=harbour").text
    chosen = r'<a id="company-[^"]*" href="([^"]*)" aria-current="true"><bdi>(.*?)</bdi> <span class="n">(\d+)'
    assert re.findall(chosen, of_harbour) == [("/frameworks", "Harbour", "8")]
    assert "Company: Harbour" in of_harbour
    assert "Company: harbour" not in of_harbour
    publisher.unlist("framework", *(f"prize-{n}" for n in range(20, 28)))
    assert "prize-20" not in visitor.get("/companies/harbour").text


def test_a_framework_shows_its_published_scores_and_others_of_its_organization(visitor, publisher):
    company = {"id": "harbour", "slug": "harbour", "name": "Harbour <b>"}
    score = {"rank": 1, "company": company, "score": 91.25, "grade": "A", "assessedAt": "2026-10-02T09:30:00.000000Z"}
    made = [
        scored(framework(n, f"score-{n}", name=f"Score {n}"), company=company, topScores=[score], scoreCount=12)
        for n in range(10, 19)
    ]
    facets = {"company": ("Harbour <b>",), "company.key": ("harbour",)}
    publisher.publish(*(structs.replace(each, facets={**each.facets, **facets}) for each in made))
    html = visitor.get("/frameworks/score-11").text
    valid(html)
    assert "Harbour &lt;b&gt;" in html
    assert "No published scores yet" not in html
    assert 'href="/frameworks/score-11/scores"' in html
    others = re.search(r"<h2>More frameworks of this organization</h2>(.*?)</section>", html)[1]
    assert re.findall(">Score ([0-9]+)<", others) == ["10", "12", "13", "14", "15", "16"]
    assert 'href="/frameworks?company=harbour"' in others


def test_numbers_in_names_are_sorted_by_their_value(visitor, publisher):
    organization = {"id": "harbour", "slug": "harbour", "name": "Harbour Trust"}
    facets = {"company": ("Harbour Trust",), "company.key": ("harbour",)}
    made = [scored(framework(100 + n, f"v-{n}", name=f"V{n}: Score"), company=organization) for n in range(1, 18)]
    publisher.publish(*(structs.replace(each, facets={**each.facets, **facets}) for each in made))

    def others(number):
        html = visitor.get(f"/frameworks/v-{number}").text
        section = re.search(r"<h2>More frameworks of this organization</h2>(.*?)</section>", html)[1]
        return re.findall(">V([0-9]+):", section)

    assert others(10) == ["7", "8", "9", "11", "12", "13"]
    assert others(17) == ["11", "12", "13", "14", "15", "16"]
    assert others(1) == ["2", "3", "4", "5", "6", "7"]
