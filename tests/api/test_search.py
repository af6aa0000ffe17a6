"""GET /api/v1/search: all kinds in one list, as other reads are answered."""

import json

import pytest

from make.published import company, framework, person
from make.rest import Rest


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    made = Rest(tmp_path_factory.mktemp("search"))
    made.publish(
        company(1, "tide", name="Tide", symbol="TIDE", description="Keeps boats.", icon="/pictures/a.webp"),
        company(2, "a/b, c", name="Tide <b>Works</b>"),
        *(company(n, name=f"Tide {n}") for n in range(3, 20)),
        person(1, "ada-tide", name="Ada Tide", bio="Measures [water](https://w.example)."),
        framework(1, "tide-score", name="Tide score"),
    )
    yield made
    made.close()


@pytest.mark.requirement("search.rest")
def test_results_of_all_kinds_come_in_one_order_with_the_total_of_each_kind(rest):
    answer = rest.ask("/api/v1/search?q=tide&limit=2")
    assert answer.status == 200
    assert answer.json == {
        "data": [
            {
                "kind": "company",
                "id": "tide",
                "name": "Tide",
                "url": "https://registry.example/companies/tide",
                "summary": "Keeps boats.",
                "matched": "name",
                "symbol": "TIDE",
                "type": "corporation",
                "picture": "/pictures/a.webp",
            },
            {
                "kind": "company",
                "id": "company-3",
                "name": "Tide 3",
                "url": "https://registry.example/companies/company-3",
                "summary": "",
                "matched": "name",
                "type": "corporation",
            },
            {
                "kind": "person",
                "id": "ada-tide",
                "name": "Ada Tide",
                "url": "https://registry.example/people/ada-tide",
                "summary": "Measures water.",
                "matched": "name",
            },
            {
                "kind": "framework",
                "id": "tide-score",
                "name": "Tide score",
                "url": "https://registry.example/frameworks/tide-score",
                "summary": "",
                "matched": "name",
            },
        ],
        "totals": {"companies": 19, "people": 1, "frameworks": 1},
    }


def test_eight_of_each_kind_come_when_nothing_else_is_asked_for(rest):
    assert [item["kind"] for item in rest.ask("/api/v1/search?q=tide").json["data"]].count("company") == 8


def test_one_kind_is_searched_alone(rest):
    answer = rest.ask("/api/v1/search?q=tide&kind=person").json
    assert [item["id"] for item in answer["data"]] == ["ada-tide"]
    assert answer["totals"] == {"people": 1}


def test_the_address_of_a_page_is_encoded_and_names_are_as_written(rest):
    (found,) = rest.ask("/api/v1/search?q=works&kind=company").json["data"]
    assert (found["id"], found["name"]) == ("a/b, c", "Tide <b>Works</b>")
    assert found["url"] == "https://registry.example/companies/a%2Fb%2C%20c"


@pytest.mark.requirement("search.rest")
def test_what_is_close_has_its_kind_and_an_empty_answer_a_hint(rest):
    close = rest.ask("/api/v1/search?q=ada+tid3").json
    assert close["closest"][0] == {
        "kind": "person",
        "id": "ada-tide",
        "name": "Ada Tide",
        "why": 'The name is similar to "ada tid3".',
    }
    assert (close["data"], {*close["totals"].values()}) == ([], {0})
    assert "notUnderstood" not in close
    named = rest.ask("/api/v1/search?q=who+is+behind+tide+7").json
    assert named["closest"][0] == {
        "kind": "company",
        "id": "company-7",
        "name": "Tide 7",
        "why": 'Its name is in "who is behind tide 7".',
    }
    assert named["notUnderstood"] == ["who", "is", "behind"]
    none = rest.ask("/api/v1/search?q=zzyzx+quorl").json
    assert none["notUnderstood"] == ["zzyzx", "quorl"]
    assert (none["data"], none["closest"]) == ([], [])
    assert none["hint"].startswith('No company, person or framework matches "zzyzx quorl".')


@pytest.mark.requirement("search.rest")
def test_a_search_has_an_etag_and_is_cached_until_any_kind_changes(rest):
    path = "/api/v1/search?q=ada"
    first = rest.ask(path)
    again = rest.ask(path, if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    misses = rest.api.misses
    rest.ask(path)
    assert rest.api.misses == misses
    rest.publish(person(2, "ada-harbour", name="Ada Harbour"))
    changed = rest.ask(path, if_none_match=first.headers["etag"])
    assert changed.status == 200
    assert changed.json["totals"]["people"] == 2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "q is missing; it takes a text of 1 to 200 characters, at most once."),
        ("?q=", "q is empty; it takes a text of 1 to 200 characters, at most once."),
        ("?q=%20", 'q is " "; it takes a text of 1 to 200 characters, at most once.'),
        ("?q=a&limit=0", 'limit is "0"; it takes a whole number from 1 to 100, in digits, at most once.'),
        ("?q=a&kind=companies", 'kind is "companies"; it takes one of: company, person, framework (in lower case)'),
    ],
)
def test_a_wrong_question_is_refused_with_what_works(rest, query, message):
    answer = rest.ask(f"/api/v1/search{query}")
    assert answer.status == 400
    assert answer.json["error"]["message"].startswith(message)
    assert answer.json["error"]["hint"].startswith("For example: /api/v1/search?")


def test_the_longest_question_is_refused_beyond_200_characters(rest):
    assert rest.ask("/api/v1/search?q=" + "x" * 200).status == 200
    assert rest.ask("/api/v1/search?q=" + "x" * 500).status == 400


@pytest.mark.parametrize(
    "q", ["%E2%80%AE%D7%A9%D7%9C%D7%95%D7%9D", "%22%20OR%20NEAR(a%20b)", "*", "'--", "a%00b", "%F0%9F%8C%8A"]
)
def test_hostile_questions_are_answered_or_refused(rest, q):
    answer = rest.ask(f"/api/v1/search?q={q}")
    assert answer.status == (400 if "%00" in q else 200)
    json.loads(answer.body)
