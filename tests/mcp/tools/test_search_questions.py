"""The search tool with questions in plain words."""

import pytest

from make.published import Publisher, company
from muniment.store.reader import Reader
from services.mcp import public_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "published.sqlite3"
    publisher = Publisher(path)
    publisher.publish(
        *(company(number, type="DAO", raising=number > 8) for number in range(1, 31)),
        company(31, type="VC", name="Harbour Fund"),
    )
    reader = Reader(path)
    with public_server(reader) as asker:
        yield asker
    reader.close()
    publisher.close()


@pytest.mark.requirement("search.questions")
def test_a_question_gives_the_first_of_its_list_and_says_how_to_get_the_rest(server):
    found = server.call("search", {"query": "Which DAOs are raising?"})["structuredContent"]
    assert [each["id"] for each in found["results"]] == [f"company:company-{number}" for number in range(30, 20, -1)]
    assert found["hint"] == "Read as list_companies with type 'DAO', raising 'true', which lists all 22."
    assert found["reading"]["filters"][1] == {"name": "raising", "value": "true", "words": "raising"}
    assert found["reading"]["total"] == 22


@pytest.mark.requirement("search.questions")
def test_a_question_without_matches_gives_what_its_words_find(server):
    found = server.call("search", {"query": "which VCs are raising: Harbour Fund"})["structuredContent"]
    assert found["hint"] == (
        "Read as list_companies with q 'Harbour Fund', type 'VC', raising 'true', the question has no match."
        " What is close may be meant."
    )
    assert [each["id"] for each in found["results"]] == ["company:company-31"]
    assert found["reading"]["total"] == 0


@pytest.mark.requirement("search.questions")
@pytest.mark.parametrize("query", ["who runs Harbour Fund?", "who runs company-31"])
def test_a_question_about_a_team_that_is_not_listed_leads_to_the_company_that_it_names(server, query):
    found = server.call("search", {"query": query})
    content = found["structuredContent"]
    assert content["results"][0] == {
        "id": "company:company-31",
        "title": "Harbour Fund",
        "url": "https://registry.example/companies/company-31",
        "text": "Mentioned in the question. VC, Software",
    }
    ids = [each["id"] for each in content["results"]]
    assert len(ids) == len(set(ids)) <= 10
    assert content["reading"]["total"] == 0
    assert "company-31" in found["_meta"]["io.muniment/provenance"]["companies"]


@pytest.mark.requirement("search.questions")
@pytest.mark.parametrize(
    ("query", "hint", "unclear"),
    [
        (
            "VCs in software",
            "Read as list_companies with type 'VC', industry 'Software': this is the only match.",
            None,
        ),
        (
            "DAOs that are not raising",
            "Read as list_companies with type 'DAO', raising 'false': these 8 are all.",
            None,
        ),
        (
            "which VCs are on harbour?",
            (
                "Read as list_companies with q 'harbour', type 'VC'. Not understood: harbour. So these may not be the "
                "answer, and others may be missing."
            ),
            ["harbour"],
        ),
    ],
)
def test_only_a_question_of_which_every_word_is_a_filter_is_said_to_be_answered_whole(server, query, hint, unclear):
    found = server.call("search", {"query": query})["structuredContent"]
    assert (found["hint"], found["reading"].get("notUnderstood")) == (hint, unclear)


@pytest.mark.requirement("search.questions")
@pytest.mark.parametrize("query", ["three people with the most positions", "people in Bristol", "harbuor fund"])
def test_a_text_that_no_filter_means_is_told_as_no_answer(server, query):
    found = server.call("search", {"query": query})["structuredContent"]
    assert "reading" not in found
    assert found["hint"].startswith("No company, person or framework matches")
    assert all(each["text"].startswith(("Has only", "Has words", "The name is similar")) for each in found["results"])
