"""GET /api/v1/search with a question in plain words: its list, its filters, and the words alone."""

import json
from urllib.parse import quote

import pytest

from make.published import company, framework, person
from make.rest import Rest

V1 = "https://registry.example/api/v1"


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    made = Rest(tmp_path_factory.mktemp("questions"))
    made.publish(
        *(
            company(number, type="DAO", themes=["energy"], raising=number % 2 == 0, description="Wind over water.")
            for number in range(1, 21)
        ),
        company(21, type="cooperative", themes=["solar power"], name="Sunhold", description="Which DAOs are raising?"),
        company(22, type="VC", name="Which VCs Are Raising Money", address=[{"city": "Havnsund", "country": "NO"}]),
        *(framework(number, kind="program") for number in range(1, 4)),
        person(1, "ada", name="Ada Fluss", positions=(("Founder", "company-1"),)),
    )
    yield made
    made.close()


def search(rest, q, **parameters):
    more = "".join(f"&{name}={value}" for name, value in parameters.items())
    answer = rest.ask(f"/api/v1/search?q={quote(q)}{more}")
    assert answer.status == 200
    return answer.json


def ids(found):
    return [item.get("id") or item.get("slug") or item.get("frameworkId") for item in found["data"]]


@pytest.mark.requirement("search.questions")
def test_a_question_is_answered_by_the_list_that_it_means(rest):
    found = search(rest, "which DAOs on energy are raising with water?", limit=3)
    assert ids(found) == ["company-20", "company-18", "company-16"]
    assert found["totals"] == {"companies": 10}
    assert found["reading"] == {
        "kind": "company",
        "filters": [
            {"name": "type", "value": "DAO", "words": "DAOs"},
            {"name": "theme", "value": "energy", "words": "energy"},
            {"name": "raising", "value": "true", "words": "raising"},
        ],
        "q": "water",
        "notUnderstood": ["water"],
        "language": "en",
        "total": 10,
        "url": f"{V1}/companies?q=water&type=DAO&theme=energy&raising=true",
    }


@pytest.mark.requirement("search.questions")
@pytest.mark.parametrize(
    "q",
    [
        "DAOs on energy",
        "DAOs or VCs",
        "VCs from Norway",
        "DAOs that are not raising, sorted by name",
        "DAOs with a treasury under $2",
        "people at Company 1",
        "who founded Company 1",
        "programs that are not open",
        "cooperatives, VCs",
    ],
)
def test_the_address_of_a_reading_gives_the_same_answer_without_the_question(rest, q):
    found = search(rest, q, limit=25)
    listed = rest.ask(found["reading"]["url"].removeprefix("https://registry.example"))
    assert listed.status == 200
    assert ids(listed.json) == ids(found) != []
    assert found["reading"]["total"] == len(ids(found))


@pytest.mark.requirement("search.questions")
def test_a_question_without_matches_gives_way_to_its_words(rest):
    found = search(rest, "which VCs are raising")
    assert found["reading"]["total"] == 0
    assert found["totals"] == {"companies": 1, "people": 0, "frameworks": 0}
    assert ids(found) == ["company-22"]
    none = search(rest, "cooperatives in Havnsund that are raising")
    assert (none["reading"]["total"], none["data"]) == (0, [])
    assert none["hint"].startswith("No company, person or framework matches")


def test_a_question_can_be_searched_for_word_by_word(rest):
    found = search(rest, '"which DAOs are raising"')
    assert ids(found)[0] == "company-21"
    assert "company-20" not in ids(found)
    assert "reading" not in found


def test_a_question_about_another_kind_than_is_searched_is_no_question(rest):
    assert "reading" not in search(rest, "which DAOs are raising", kind="person")
    assert search(rest, "which DAOs are raising", kind="company")["reading"]["total"] == 10


def test_an_answer_that_may_be_another_tomorrow_is_not_kept(rest):
    for q, is_kept in (("DAOs on energy", True), ("DAOs listed in the last 30 days", False)):
        path = f"/api/v1/search?q={quote(q)}&limit=2"
        rest.ask(path)
        misses = rest.api.misses
        json.loads(rest.ask(path).body)
        assert (rest.api.misses == misses) is is_kept
