"""The search page, its box in every header, and what browsers read of it."""

import json
import re
import xml.etree.ElementTree as ET

import msgspec
import pytest
from django.test import Client

from make.published import Publisher, company, framework, person
from muniment.store.reader import Reader
from muniment.store.search.text_index import SearchTexts
from muniment.store.search_text import SITE, marked
from muniment.web.requests import page_cache

HOSTILE = '<script>alert("x")</script>'
OPENSEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"


@pytest.fixture
def visitor(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(
        company(1, "tide", name="Tide", symbol="TIDE", description="Keeps boats."),
        *(company(n, name=f"Tide {n}") for n in range(2, 20)),
        company(20, "a/b", name=HOSTILE, description=HOSTILE),
        person(1, "ada-tide", name="Ada Tide", bio="Measures **water**."),
        *(framework(n, name=f"Tide score {n}") for n in range(1, 12)),
    )
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client()
    page_cache.use(None)
    reader.close()
    publisher.close()


def text(visitor, path):
    answer = visitor.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.requirement("search.page")
def test_kinds_are_side_by_side_with_their_totals_the_best_first(visitor):
    html = text(visitor, "/search?q=tide")
    assert "19 companies, 1 person, 11 frameworks" in html
    assert html.count('class="listing"') == 8 + 1 + 8
    assert html.index("<h2>Companies") < html.index("<h2>People") < html.index("<h2>Frameworks")
    assert '<a href="/companies?q=tide">All 19 companies</a>' in html
    assert '<a href="/search?kind=framework&amp;q=tide">All 11 frameworks</a>' in html
    assert '<p class="quiet tiny"><bdi>Corporation</bdi> · <bdi>Software</bdi></p>' in html
    assert '<p class="said" dir="auto">Keeps boats.</p>' in html
    assert "Measures water." in html
    assert 'href="/api/v1/search?q=tide"' in html
    best = text(visitor, "/search?q=ada+tide")
    assert best.index("<h2>People") < best.index("<h2>Companies") if "<h2>Companies" in best else "<h2>People" in best


def test_all_frameworks_are_on_one_page(visitor):
    html = text(visitor, "/search?q=tide&kind=framework")
    assert html.count('class="listing"') == 11
    assert '<a href="/search?q=tide">All kinds</a>' in html


@pytest.mark.requirement("search.header")
@pytest.mark.parametrize(
    "path", ["/", "/companies", "/people", "/frameworks", "/connect", "/search", "/companies/tide"]
)
def test_every_page_has_the_box_once_and_is_the_same_for_everyone(visitor, path):
    html = text(visitor, path)
    assert html.count(' action="/search" role="search"') == 1
    assert html.count('id="find"') == 1
    assert 'rel="search" type="application/opensearchdescription+xml"' in html


def test_the_box_keeps_the_words_of_the_search_and_an_empty_page_puts_the_cursor_into_it(visitor):
    assert 'name="q" value="tide"' in text(visitor, "/search?q=tide")
    empty = text(visitor, "/search?q=+")
    assert " autofocus" in empty
    assert "Search the registry" in empty
    assert " autofocus" not in text(visitor, "/search?q=tide")


@pytest.mark.requirement("search.page")
def test_an_empty_answer_names_what_is_close(visitor):
    html = text(visitor, "/search?q=who+runs+the+Ada+Tide+house")
    assert "Nothing found" in html
    assert 'Closest: <a href="/people/ada-tide" dir="auto">Ada Tide</a>' in html
    assert "Closest: <a" not in text(visitor, "/search?q=!!!")
    assert 'Closest: <a href="/people/ada-tide"' in text(visitor, "/search?q=ada+tied")


def test_what_visitors_and_owners_write_is_shown_as_text(visitor):
    html = text(visitor, "/search?q=%3Cscript%3Ealert")
    assert HOSTILE not in html
    assert "Results for “<bdi>&lt;script&gt;alert</bdi>”" in html
    assert 'href="/companies/a%2Fb"' in html


@pytest.mark.parametrize("q", ["x" * 500, "tide%20" * 100, "%00%0A", "%E2%80%AE%D7%A9", "%F0%9F%8C%8A", "%22)(*"])
def test_hostile_questions_are_answered(visitor, q):
    assert "Search" in text(visitor, f"/search?q={q}")


def test_an_unknown_kind_is_refused(visitor):
    answer = visitor.get("/search?q=tide&kind=companies")
    assert answer.status_code == 400
    assert b"kind can&#x27;t be" in answer.content


def test_a_search_is_kept_with_an_etag_and_not_indexed_by_search_engines(visitor):
    first = visitor.get("/search?q=tide")
    assert visitor.get("/search?q=tide", headers={"if-none-match": first["ETag"]}).status_code == 304
    assert b'<meta name="robots" content="noindex">' in first.content


@pytest.mark.requirement("search.page")
def test_a_query_that_nothing_matches_names_the_words_that_no_name_explains(visitor):
    html = text(visitor, "/search?q=who+works+at+Ada+Tide")
    assert "Not understood: <bdi>who, works, at</bdi>." in html
    assert 'Closest: <a href="/people/ada-tide" dir="auto">Ada Tide</a>' in html
    assert "Not understood" not in text(visitor, "/search?q=tide")


@pytest.mark.requirement("search.page")
def test_browsers_read_how_to_search_and_what_to_suggest(visitor):
    answer = visitor.get("/opensearch.xml")
    assert answer["Content-Type"] == "application/opensearchdescription+xml; charset=utf-8"
    tree = ET.fromstring(answer.content)
    assert tree.findtext(f"{OPENSEARCH}ShortName") == "Muniment"
    templates = {each.get("type"): each.get("template") for each in tree.iter(f"{OPENSEARCH}Url")}
    assert templates["text/html"] == "http://testserver/search?q={searchTerms}"
    path = (
        templates["application/x-suggestions+json"].removeprefix("http://testserver").replace("{searchTerms}", "tide")
    )
    answer = visitor.get(path)
    assert answer["Content-Type"] == "application/x-suggestions+json; charset=utf-8"
    q, names, abouts, addresses = json.loads(answer.content)
    assert (q, names[0], abouts[0]) == ("tide", "Tide", "corporation, Software. Keeps boats.")
    assert addresses[0] == "http://testserver/companies/tide"
    assert len(names) == len(abouts) == len(addresses) == 8
    assert json.loads(visitor.get("/search/suggestions").content) == ["", [], [], []]


def test_a_result_says_why_it_matches_where_its_card_does_not_show_it(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    wallet = "0x00000000000000000000000000000000000a11ce"
    quay = company(
        1,
        "quay",
        name="Quay",
        positions=[{"title": "Chair", "person": {"name": "Ada Storm", "slug": "ada"}}],
        proposals=[{"id": "QIP-14", "title": "Mend the gate", "status": "passed"}],
        capTable=[{"address": wallet, "percentage": 1}],
    )
    found_by = SearchTexts(keys=marked(SITE, [wallet, "QIP-14"]), people="Ada Storm\nChair")
    texts = (*quay.texts[:2], "Mend the gate")
    publisher.publish(msgspec.structs.replace(quay, search=found_by, texts=texts))
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    try:
        said = {q: whys(text(Client(), f"/search?q={q}")) for q in ("quay", "storm", wallet, "QIP-14", "mend gate")}
    finally:
        page_cache.use(None)
        reader.close()
        publisher.close()
    assert said == {
        "quay": [],
        "storm": ["Person: Ada Storm, Chair"],
        wallet: [f"Token holder: {wallet}"],
        "QIP-14": ["Proposal: QIP-14"],
        "mend gate": ["Proposal: Mend the gate"],
    }


def whys(page):
    return re.findall(r'<p class="quiet tiny why" dir="auto">(.*?)</p>', page)
