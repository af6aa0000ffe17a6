"""The filters beside a list: counted values as links."""

import html5lib
from django.http import QueryDict

from muniment.store.lists.facets import Counted, Facet
from muniment.store.search.values import singular
from muniment.web.lists.catalog import registry_list
from muniment.web.lists.facets import SHOWN, panel
from muniment.web.lists.search import Search

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
    assert [each.label for each in folded.options] == [*(f"Theme {n}" for n in range(SHOWN)), "Theme 50"]
    assert (len(folded.more), folded.is_long) == (60 - SHOWN - 1, True)
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
