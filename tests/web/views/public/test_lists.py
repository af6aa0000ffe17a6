"""The list pages and the feeds of searches."""

import re
import xml.etree.ElementTree as ET

import html5lib
import pytest
from django.http import QueryDict
from django.test import Client

from make.pages import valid
from make.published import Publisher, company, framework, person
from muniment.store.lists.facets import Counted, Facet
from muniment.store.reader import Reader
from muniment.store.search import ranking
from muniment.store.search.values import singular
from muniment.web.lists.search import Search, registry_list
from muniment.web.requests import page_cache
from muniment.web.views.public.lists import VALUES_SHOWN, panel

ATOM = "{http://www.w3.org/2005/Atom}"
LISTS = ("/companies", "/people", "/frameworks")


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    made.publish(
        company(1, "harbour", name="Harbour Commons", type="DAO", description="Owns the *tide*.", teamSize=1200),
        company(2, "quay", name="Quay Trust", type="collective", status="inactive", themes=["tides", "nets, large"]),
        company(3, "mole", name="Mole & Sons", type="DAO", updatedAt="2026-05-01T00:00:00.000000Z"),
        *(company(n, f"more-{n}", name=f"Pier {n}") for n in range(4, 34)),
        person(1, "layla", name="ليلى حداد", bio="Builds **turbines**."),
        framework(1, "tide-score"),
    )
    yield made
    made.close()


@pytest.fixture
def visitor(publisher, tmp_path):
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client()
    page_cache.use(None)
    reader.close()


def names(html):
    return re.findall(r'<div class="name"><a [^>]*>([^<]*)', html)


@pytest.mark.parametrize(
    "path",
    [*LISTS]
    + ["/companies?q=harbour&type=DAO&type=collective&sort=name", "/companies?q=harbour&status=inactive"]
    + ["/companies?teamMin=9&listedFrom=2020-01-31", "/people?title=x", "/frameworks?isOpen=true", "/people?page=9"],
)
def test_a_list_is_valid_html_that_names_its_address(visitor, path):
    html = visitor.get(path).text
    valid(html)
    assert f'<link rel="canonical" href="http://testserver{path.replace("&", "&amp;")}">' in html


def test_several_values_of_a_filter_find_what_has_any_of_them(visitor):
    html = visitor.get("/companies?type=DAO&type=collective&sort=name").text
    assert names(html) == ["Harbour Commons", "Mole &amp; Sons", "Quay Trust"]
    assert names(visitor.get("/companies?theme=nets%2C+large").text) == ["Quay Trust"]
    assert names(visitor.get("/companies?teamMin=1000").text) == ["Harbour Commons"]


def counts(html, name):
    options = re.findall(
        rf'<a id="{name}-[^>]*?( aria-current="true")?><bdi>(.*?)</bdi> <span class="n">(\d+)</span>', html
    )
    return {value: (int(n), bool(chosen)) for chosen, value, n in options}


def test_each_value_of_a_filter_shows_how_many_results_it_has_until_something_is_published(visitor, publisher):
    assert counts(visitor.get("/companies").text, "type") == {
        "Corporation": (30, False),
        "DAO": (2, False),
        "Collective": (1, False),
    }
    assert counts(visitor.get("/companies?type=DAO").text, "type")["Corporation"] == (30, False)
    inactive = visitor.get("/companies?type=collective&status=inactive").text
    assert counts(inactive, "type") == {"Collective": (1, True)}
    assert counts(inactive, "status") == {"Inactive": (1, True)}
    publisher.publish(company(90, "buoy", name="Buoy", type="DAO"))
    assert counts(visitor.get("/companies").text, "type")["DAO"] == (3, False)
    assert counts(visitor.get("/companies?sort=name").text, "type")["DAO"] == (3, False)


def test_a_list_that_ends_before_its_matches_says_that_there_are_more(visitor, monkeypatch):
    monkeypatch.setattr(ranking, "MAX_WEIGHED", 5)
    monkeypatch.setattr(ranking, "MAX_LISTED", 20)
    assert "20+ companies" in visitor.get("/companies?q=pier").text
    assert "1 company" in visitor.get("/companies?q=quay").text


def test_an_address_in_another_form_leads_to_the_canonical_one(visitor):
    answer = visitor.get("/companies?sort=newest&q=&type=DAO&theme=&type=DAO&utm_source=mail")
    assert (answer.status_code, answer["Location"]) == (302, "/companies?type=DAO")
    assert visitor.get("/companies?type=DAO&utm_source=mail").status_code == 200
    kept = set(page_cache.pages)
    visitor.get("/companies?type=DAO&utm_source=other")
    assert set(page_cache.pages) == kept


def test_pages_that_a_publication_concerns_take_no_memory_after_it(visitor, publisher):
    for path in LISTS:
        visitor.get(path)
    publisher.publish(company(34, "bell", name="Bell Rock"))
    visitor.get("/companies")
    kept = {address.rpartition(" ")[2].partition("?")[0] for address in page_cache.pages}
    assert len([address for address in page_cache.pages if "/companies?" in address]) == 1
    assert kept == {"/companies", "/people", "/frameworks"}


@pytest.mark.parametrize(("path", "status"), [("/companies?q=harbour", 200), ("/people?sort=name", 200)])
def test_a_search_begun_on_a_list_is_by_relevance_and_another_order_is_kept(visitor, path, status):
    html = visitor.get(path).text
    chosen = re.search(r'class="orders".*?aria-current="true">([^<]*)', html, re.DOTALL)
    box = re.search(r'<form id="search".*?</form>', html, re.DOTALL)[0]
    assert "sort" not in box
    hidden = re.findall(r'<input type="hidden" name="sort" value="(\w*)" form="search">', html)
    assert hidden == (["name"] if "sort" in path else [])
    assert chosen is None or chosen[1] == ("Name" if "sort" in path else "Best match")


def test_a_column_says_how_it_is_sorted_and_sorts(visitor):
    html = visitor.get("/companies?sort=treasury").text
    assert re.search(r'aria-sort="descending"><a href="/companies\?sort=treasury"[^>]*>Treasury', html)
    assert re.search(r'aria-sort="descending"><a href="/companies"[^>]*>Listed', visitor.get("/companies").text)
    searched = visitor.get("/companies?q=pier").text
    assert "aria-sort" not in searched
    assert '<a href="/companies?q=pier&amp;sort=newest"' in searched


def test_a_search_that_finds_nothing_shows_what_is_closest_and_which_filter_to_remove(visitor):
    html = visitor.get("/companies?q=harbour&status=inactive").text
    assert "0 companies" in html
    assert re.search(r'Closest.*<a href="/companies/harbour"><bdi>Harbour Commons</bdi></a>', html, re.DOTALL)
    found = re.findall(r'<a href="([^"]*)"[^>]*>Without <bdi>([^<]*)</bdi></a> <span[^>]*>(\d+ result)', html)
    assert found == [
        ("/companies?status=inactive", "“harbour”", "1 result"),
        ("/companies?q=harbour", "Status: Inactive", "1 result"),
    ]
    alone = visitor.get("/companies?theme=none-such").text
    assert "No company has the theme" in alone
    assert '<a href="/companies">Show all<' in alone
    assert "Remove one filter" not in alone


def test_pages_of_a_list_keep_its_filters_and_the_feed_and_the_api_too(visitor):
    html = visitor.get("/companies?status=active&page=2").text
    assert 'rel="prev" href="/companies?status=active"' in html
    assert 'href="/api/v1/companies?status=active&amp;page=2"' in html
    assert 'href="/companies.atom?status=active"' in html
    assert 'href="/manage/searches/new?list=companies&amp;status=active"' in html


def test_every_page_of_frameworks_has_its_address(visitor, publisher):
    publisher.publish(*(framework(n, f"score-{n}") for n in range(2, 40)))
    first, second = (visitor.get(f"/frameworks{query}").text for query in ("", "?page=2"))
    assert (len(names(first)), len(names(second))) == (25, 14)
    assert 'rel="next" href="/frameworks?page=2"' in first


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_the_same_for_every_query_that_it_does_not_read(visitor, path):
    assert visitor.get(f"{path}?nothing=1").content == visitor.get(path).content


def test_a_feed_has_the_latest_matches_of_its_search_with_their_own_times(visitor, publisher):
    path = "/companies.atom?type=DAO"
    feed = ET.fromstring(visitor.get(path).content)
    entries = feed.findall(f"{ATOM}entry")
    assert [each.findtext(f"{ATOM}title") for each in entries] == ["Mole & Sons", "Harbour Commons"]
    assert [each.findtext(f"{ATOM}updated") for each in entries] == ["2026-05-01T00:00:00Z", "2026-01-01T00:00:00Z"]
    assert feed.findtext(f"{ATOM}updated") == "2026-05-01T00:00:00Z"
    assert feed.findtext(f"{ATOM}id") == f"http://testserver{path}"
    assert feed.findtext(f"{ATOM}title") == "Type: DAO"
    assert entries[1].findtext(f"{ATOM}summary") == "Owns the tide."
    links = {each.get("rel"): each.get("href") for each in feed.findall(f"{ATOM}link")}
    assert links == {"self": f"http://testserver{path}", "alternate": "http://testserver/companies?type=DAO"}
    publisher.publish(company(90, "buoy", name="Buoy", type="DAO", updatedAt="2026-06-01T00:00:00.000000Z"))
    after = ET.fromstring(visitor.get(path).content).findall(f"{ATOM}entry")
    assert [each.findtext(f"{ATOM}id") for each in after[1:]] == [each.findtext(f"{ATOM}id") for each in entries]
    assert after[0].findtext(f"{ATOM}title") == "Buoy"


def test_a_feed_is_bounded_kept_and_not_modified_by_other_changes(visitor, publisher):
    assert len(ET.fromstring(visitor.get("/companies.atom?page=2").content).findall(f"{ATOM}entry")) == 33
    publisher.publish(*(company(n, f"late-{n}", name=f"Late {n}") for n in range(100, 140)))
    assert len(ET.fromstring(visitor.get("/companies.atom").content).findall(f"{ATOM}entry")) == 50
    tag = visitor.get("/companies.atom?type=DAO")["ETag"]
    publisher.publish(company(200, "other", name="Other"))
    again = visitor.get("/companies.atom?type=DAO", headers={"If-None-Match": tag})
    assert again.status_code == 304


@pytest.mark.parametrize("room", ["companies", "people", "frameworks"])
def test_the_feed_of_a_search_without_results_is_valid_and_never_changes(visitor, room):
    query = "kind=program" if room == "frameworks" else "q=zzzz"
    feed = ET.fromstring(visitor.get(f"/{room}.atom?{query}").content)
    assert feed.findtext(f"{ATOM}updated") == "1970-01-01T00:00:00Z"
    assert not feed.findall(f"{ATOM}entry")
    assert ET.fromstring(visitor.get(f"/{room}.atom").content).findall(f"{ATOM}entry")


def test_a_feed_takes_what_its_list_takes(visitor):
    assert visitor.get("/companies.atom?status=gone").status_code == 400
    assert visitor.get("/companies.atom?teamMin=9&teamMax=1").status_code == 400
    title = ET.fromstring(visitor.get("/companies.atom?q=%01%3Cb%3E").content).findtext(f"{ATOM}title")
    assert title == "“<b>”"


def test_people_are_listed_with_their_first_positions(visitor, publisher):
    publisher.publish(
        person(2, "ida", name="Ida Kelp", positions=(("Chair <of> it", "harbour"), ("Diver", "harbour"), ("", "quay"))),
        person(3, "bo", name="Bo Reef", positions=tuple(("Cook", f"more-{n}") for n in range(4, 8))),
    )
    html = visitor.get("/people").text
    valid(html)
    [ida] = re.findall(r"<tr>((?:(?!</tr>).)*Ida Kelp.*?)</tr>", html, re.DOTALL)
    assert "<bdi>Chair &lt;of&gt; it</bdi>, <bdi>" in ida
    assert "Diver" not in ida, "one position in each organization"
    [bo] = re.findall(r"<tr>((?:(?!</tr>).)*Bo Reef.*?)</tr>", html, re.DOTALL)
    assert bo.count("Cook") == 4, "two, in the column and for a phone"
    assert "and 2 more" in bo


def test_words_that_find_nothing_lead_to_the_whole_list_and_to_the_search_of_everything(visitor):
    html = visitor.get("/companies?q=zzzzqq").text
    assert "Check the spelling, or use fewer or other words." in html
    assert 'href="/search?q=zzzzqq"' in html
    assert "values in use" not in html


COUNTS = {
    "type": [("DAO", 7), ("collective", 3), ("<b>", 1)],
    "theme": [(f"theme {n}", 99 - n) for n in range(60)],
    "raising": [("false", 9), ("true", 2)],
    "status": [("active", 11)],
}


def shown(query, counts=COUNTS, of="companies"):
    search = Search.read(registry_list(of), QueryDict(query))

    def counted(name, values):
        chosen = {singular(each) for each in search.chosen.get(name, ())}
        return Facet(tuple(Counted(value, n, singular(value) in chosen) for value, n in values), 20 * (name == "theme"))

    return panel(search, {name: counted(name, values) for name, values in counts.items()})


def facet(query, name, counts=COUNTS):
    return next(each for each in shown(query, counts).facets if each.name == name)


def test_a_link_adds_its_value_beside_others_and_keeps_the_rest():
    options = {each.label: each.address for each in facet("q=a&type=collective&raising=true&sort=name", "type").options}
    assert options == {
        "DAO": "/companies?q=a&type=DAO&type=collective&raising=true&sort=name",
        "Collective": "/companies?q=a&raising=true&sort=name",
        "<b>": "/companies?q=a&type=%3Cb%3E&type=collective&raising=true&sort=name",
    }
    flags = {each.label: each.address for each in facet("raising=true", "raising").options}
    assert flags == {"Raising now": "/companies", "Not raising": "/companies?raising=false"}


def test_every_link_leads_to_a_canonical_address():
    for each in (option for one in shown("type=collective&theme=theme+3&page=2").facets for option in one.options):
        query = QueryDict(each.address.partition("?")[2])
        assert Search.read(registry_list("companies"), query).is_canonical(query), each.address


def test_a_value_in_another_form_is_the_chosen_one_and_one_out_of_use_can_be_removed():
    chosen = [(each.label, each.total) for each in facet("type=daos&type=guild", "type").options if each.is_chosen]
    assert chosen == [("DAO", 7), ("Guild", 0)]
    addresses = {each.label: each.address for each in facet("type=daos&type=guild", "type").options if each.is_chosen}
    assert addresses == {"DAO": "/companies?type=guild", "Guild": "/companies?type=daos"}


def test_a_long_filter_folds_shows_what_is_chosen_and_takes_typed_values():
    folded = facet("theme=theme+50", "theme")
    assert [each.label for each in folded.options] == [*(f"Theme {n}" for n in range(VALUES_SHOWN)), "Theme 50"]
    assert (len(folded.more), folded.is_long) == (60 - VALUES_SHOWN - 1, True)
    assert not facet("", "type").more
    assert not facet("", "type").is_long


def test_a_single_filter_that_several_values_match_is_removed_by_any_of_them():
    values = (Counted("Founder", 3, selected=True), Counted("Co-founder", 2, selected=True), Counted("Clerk", 1))
    search = Search.read(registry_list("people"), QueryDict("title=founder"))
    (titles,) = panel(search, {"title": Facet(values, 0)}).facets
    assert [(each.is_chosen, each.address) for each in titles.options] == [
        (True, "/people"),
        (True, "/people"),
        (False, "/people?title=Clerk"),
    ]


def test_one_value_alone_is_no_choice_unless_it_is_chosen():
    assert "status" not in {each.name for each in shown("").facets}
    assert [each.is_chosen for each in facet("status=active", "status").options] == [True]


def test_values_that_one_document_each_has_are_no_choice_unless_they_are_chosen():
    search = Search.read(registry_list("people"), QueryDict(""))
    unique = [Counted(f"M-{n}", 1) for n in range(VALUES_SHOWN)]
    assert panel(search, {"title": Facet(tuple(unique), 40)}).facets == []
    assert panel(search, {"title": Facet((*unique[1:], Counted("M-0", 2)), 40)}).facets != []
    assert panel(search, {"title": Facet(tuple(unique[1:]), 0)}).facets != []
    chosen = Search.read(registry_list("people"), QueryDict("title=M-1"))
    assert panel(chosen, {"title": Facet(tuple(unique), 40)}).facets != []


def test_the_links_are_html_in_which_values_are_text():
    html = facet("type=DAO", "type").links
    assert "<b>" not in html
    tree = html5lib.parse(f"<!doctype html><title>x</title><ul>{html}</ul>", namespaceHTMLElements=False)
    found = list(tree.iter("a"))
    assert [each.get("aria-current") for each in found] == ["true", None, None]
    assert all(" " not in each.get("id") for each in found)


def test_the_form_repeats_what_is_chosen_by_links_and_shows_what_is_typed():
    found = shown("q=a&type=DAO&city=Tarn&teamMin=3&sort=name")
    assert found.hidden == [("type", "DAO"), ("city", "Tarn"), ("sort", "name")]
    assert {each.name: each.value for each in found.typed if each.value} == {"teamMin": "3"}
    assert {"city", "treasuryMin", "treasuryMax", "listedFrom", "listedTo", "updatedSince"} < {
        each.name for each in found.typed
    }
    assert found.chosen == 3


@pytest.mark.parametrize("path", ["/companies", "/people"])
def test_the_first_result_is_few_keys_from_the_address_bar(visitor, publisher, path):
    """Tab to the link and Enter, then Tab through the headings of the table to the first name."""
    publisher.publish(company(1, "harbour", name="Harbour"), person(1, "layla"))
    html = visitor.get(path).text
    assert html.index('<a class="skip" href="#items">Skip to results</a>') < html.index('<header class="top">')
    before_first = html[html.index('<div id="items"') :].partition(f'href="{path}/')[0]
    tabs = len(re.findall(r"<(?:a|button|input|summary)\b", before_first))
    assert 2 + tabs <= 12


def test_a_search_is_a_json_feed_with_the_latest_matches(visitor, publisher):
    answer = visitor.get("/companies.feed.json?type=DAO")
    assert answer["Content-Type"] == "application/feed+json; charset=utf-8"
    feed = answer.json()
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert feed["feed_url"] == "http://testserver/companies.feed.json?type=DAO"
    assert feed["home_page_url"] == "http://testserver/companies?type=DAO"
    assert feed["title"] == "Type: DAO"
    assert [item["title"] for item in feed["items"]] == ["Mole & Sons", "Harbour Commons"]
    assert feed["items"][1]["content_text"] == "Owns the tide."
    assert feed["items"][1]["date_modified"] == "2026-01-01T00:00:00Z"
    assert len({item["id"] for item in feed["items"]}) == 2


@pytest.mark.parametrize("name", ["companies", "people", "frameworks"])
def test_a_list_names_its_json_feed_with_its_filters(visitor, name):
    html = visitor.get(f"/{name}?q=a").text
    link = html.partition('<link rel="alternate" type="application/feed+json"')[2].partition(">")[0]
    assert f'href="/{name}.feed.json?q=a"' in link
    assert visitor.get(f"/{name}.feed.json?q=a").json()["items"] is not None
