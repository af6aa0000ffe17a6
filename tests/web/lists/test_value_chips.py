"""Values of filters that the search box, the search page and the lists suggest while words are typed."""

import re
from html import unescape

import pytest
from django.test import Client

from make.published import Publisher, company, framework, person
from muniment.languages.speaking import speaking
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader
from muniment.store.search import everything
from muniment.web.lists import value_chips
from muniment.web.lists.search import Search, registry_list
from muniment.web.lists.value_chips import chips_of_everything
from muniment.web.requests import page_cache

HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture
def publisher(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(
        company(1, type="DAO", themes=["public-goods"], raising=True, address=[{"city": "Zürich", "country": "CH"}]),
        company(2, type="DAO", themes=["Public goods"], address=[{"city": "Zug", "country": "CH"}]),
        company(3, type="dao", themes=["zoo keeping"], address=[{"city": "Zug", "country": "CH"}], status="inactive"),
        company(4, type="VC", industry="Energy", address=[{"city": "Bad Zurzach", "country": "DE"}]),
        company(5, type="non-profit", industry="Renewable energy", name="Zurich Works"),
        company(6, type="non-profit", themes=[f"zebra {HOSTILE}"]),
        person(1, "ada", name="Ada Tide", positions=(("Vice Chair", "company-1"), ("Zoologist", "company-2"))),
        person(2, "ben", name="Ben Storm", positions=(("Chair", "company-1"),)),
        person(3, "cy", name="Cy Mist"),
        framework(1, kind="program"),
    )
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield publisher
    page_cache.use(None)
    reader.close()
    publisher.close()


def suggested(text):
    return [(chip.label, chip.value, chip.total, chip.address) for chip in chips_of_everything(text)]


@pytest.mark.requirement("search.values")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("dao", [("Type", "DAO", 3, "/companies?type=DAO")]),
        ("DAOs", [("Type", "DAO", 3, "/companies?type=DAO")]),
        ("decentralized aut", [("Type", "DAO", 3, "/companies?type=DAO")]),
        ("goods pub", [("Theme", "Public goods", 2, "/companies?theme=Public+goods")]),
        ("zug", [("City", "Zug", 2, "/companies?city=Zug")]),
        ("ZUER", []),
        (
            "zür",
            [
                ("City", "Zürich", 1, "/companies?city=Z%C3%BCrich"),
                ("City", "Bad Zurzach", 1, "/companies?city=Bad+Zurzach"),
            ],
        ),
        ("switz", [("Country", "Switzerland", 3, "/companies?country=CH")]),
        ("inact", [("Status", "Inactive", 1, "/companies?status=inactive")]),
        ("raising now", [("Fundraising", "Raising now", 1, "/companies?raising=true")]),
        ("chair", [("Title", "chair", 2, "/people?title=chair")]),
        ("vice chair", [("Title", "vice chair", 1, "/people?title=vice+chair")]),
        ("chai", []),
        ("dao zug", []),
        ("company 1", []),
        ("z", []),
        ("!!", []),
    ],
)
def test_words_suggest_the_values_whose_words_they_begin_with_the_size_of_the_list(publisher, text, found):
    assert suggested(text) == found


def test_a_value_that_is_named_whole_comes_first_then_values_that_begin_with_the_words(publisher):
    chips = chips_of_everything("energy")
    assert [chip.value for chip in chips] == ["Energy", "Renewable energy"]
    assert [chip.value for chip in chips_of_everything("zu")] == ["Zug", "Zürich", "Bad Zurzach"]


@pytest.mark.requirement("search.values")
def test_values_are_found_by_their_labels_in_the_visitors_language_and_in_english(publisher):
    with speaking("de"):
        for text in ("schwei", "switzer"):
            assert suggested(text) == [("Land", "Schweiz", 3, "/companies?country=CH")]
        for text in ("inakt", "inact"):
            assert suggested(text) == [("Status", "Inaktiv", 1, "/companies?status=inactive")]
    assert suggested("schwei") == []


def test_a_value_that_every_item_has_is_not_suggested(publisher):
    assert [chip.value for chip in chips_of_everything("program")] == []
    publisher.publish(framework(2, kind="score"))
    page_cache.reader().refresh()
    assert suggested("program") == [("Kind", "Program", 1, "/frameworks?kind=program")]


def test_a_value_that_nothing_has_any_more_is_not_suggested(publisher):
    publisher.publish(company(3, type="VC"), company(2))
    page_cache.reader().refresh()
    assert suggested("zug") == []


@pytest.mark.requirement("search.values")
def test_each_address_has_as_many_items_as_its_chip_says(publisher):
    for text in ("dao", "zu", "energy", "switz", "chair", "inact", "public"):
        for chip in chips_of_everything(text):
            html = Client().get(chip.address).content.decode()
            shown = re.search(r'id="count"[^>]*>\s*(\d+)', html)
            assert shown, chip.address
            assert int(shown[1]) == chip.total, chip.address


@pytest.mark.requirement("search.values")
def test_a_list_counts_within_what_is_chosen_and_keeps_it(publisher):
    search = Search(registry_list("companies"), "zug", {"status": ("active",)})
    assert value_chips.value_chips(search, "zug") == [
        value_chips.ValueChip("City", "Zug", 1, "/companies?status=active&city=Zug")
    ]
    chosen = Search(registry_list("companies"), "dao", {"type": ("VC",)})
    assert value_chips.value_chips(chosen, "dao") == [], "the filter has a value, beside which this one would add to it"
    html = Client().get("/companies?q=zug&status=active").content.decode()
    assert 'City: <bdi>Zug</bdi> <span class="n">1</span>' in html
    assert 'href="/companies?status=active&amp;city=Zug"' in html


def test_at_most_four_values_are_suggested(publisher):
    publisher.publish(*(company(n, themes=[f"zeal {n}"]) for n in range(10, 30)))
    page_cache.reader().refresh()
    assert len(chips_of_everything("zeal")) == 4
    assert len(chips_of_everything("ze")) == 4


def test_one_character_suggests_values_unless_it_is_a_letter_of_an_alphabet(publisher):
    publisher.publish(company(10, themes=["東 風"]))
    page_cache.reader().refresh()
    assert [chip.value for chip in chips_of_everything("東")] == ["東 風"]
    assert chips_of_everything("z") == []


def test_a_suggested_list_begins_with_its_first_page(publisher):
    search = Search(registry_list("companies"), "zug", page=3)
    assert [chip.address for chip in value_chips.value_chips(search, "zug")] == ["/companies?city=Zug"]


def test_of_very_many_values_those_are_found_that_begin_with_the_words(publisher, monkeypatch):
    monkeypatch.setattr("muniment.store.search.values.MAX_COMPARED", 3)
    publisher.publish(*(company(n, themes=[f"zeal {n}", f"ardent zeal {n}"]) for n in range(10, 12)))
    page_cache.reader().refresh()
    assert [chip.value for chip in chips_of_everything("zeal")] == ["Zeal 10", "Zeal 11"]


@pytest.mark.requirement("search.values")
def test_the_box_and_the_search_page_show_the_values_as_links(publisher):
    client = Client()
    box = client.get("/search/box?q=zug").content.decode()
    assert re.search(r'<a class="chip" id="value-0" href="/companies\?city=Zug"[^>]*role="option"', box)
    page = client.get("/search?q=zug").content.decode()
    assert (
        '<a class="chip" href="/companies?city=Zug" rel="nofollow">City: <bdi>Zug</bdi> <span class="n">2</span></a>'
        in page
    )
    assert client.get("/search/box").content == b""


def test_hostile_values_and_words_are_text(publisher):
    client = Client()
    for path in ("/search/box?q=zebra", "/search?q=zebra", "/companies?q=zebra", "/search/box?q=%3Cimg+src%3Dx"):
        html = client.get(path).content.decode()
        assert "<img src=x" not in html
        assert "img src=x" in unescape(html)


def named(text, name="companies", **chosen):
    found = value_chips.named_values(Search(registry_list(name), q=text, chosen=chosen))
    if found is None:
        return None
    return [(chip.label, chip.value, chip.total, chip.address) for chip in found.chips], found.together


def test_words_of_a_search_that_finds_nothing_name_values(publisher):
    dao = ("Type", "DAO", 3, "/companies?type=DAO")
    zug = ("City", "Zug", 2, "/companies?city=Zug")
    assert named("DAOs in Zug") == ([dao, zug], (2, "/companies?type=DAO&city=Zug"))
    assert named("zug dao") == ([zug, dao], (2, "/companies?type=DAO&city=Zug"))
    assert named("VC in Zug") == ([("Type", "VC", 1, "/companies?type=VC"), zug], (0, "/companies?type=VC&city=Zug"))


def test_a_value_of_several_words_is_named_as_a_whole(publisher):
    goods = ("Theme", "Public goods", 2, "/companies?theme=Public+goods")
    assert named("public goods without end") == ([goods], None)
    assert named("the renewable energy") == (
        [("Industry", "Renewable energy", 1, "/companies?industry=Renewable+energy")],
        None,
    ), "and not Energy, which is another value"


@pytest.mark.parametrize(
    "text", ["zug", "zu da", "in of", "harbours of nowhere", "", "one two three four five six zug"]
)
def test_words_that_only_begin_values_or_stand_alone_name_none(publisher, text):
    assert named(text) is None


def test_the_sixth_word_is_the_last_that_is_compared(publisher):
    assert named("one two three four five zug") == ([("City", "Zug", 2, "/companies?city=Zug")], None)


def test_of_several_filters_with_the_same_value_the_most_frequent_is_named(publisher):
    publisher.publish(company(8, themes=["fleet"]), company(9, industry="Fleet"), company(10, industry="Fleet"))
    fleet = ("Industry", "Fleet", 2, "/companies?industry=Fleet")
    assert named("fleets anywhere") == ([fleet], None)


def test_a_word_within_a_title_is_no_title(publisher):
    publisher.publish(person(9, "dee", name="Dee Reed", positions=(("Chair of the board", "company-1"),)))
    page_cache.reader().refresh()
    assert named("who has the chair", "people") == ([("Title", "chair", 3, "/people?title=chair")], None)


def test_two_letters_name_a_value_only_in_capitals(publisher):
    assert named("daos in VC") is not None
    assert named("firms in vc") is None
    assert named("firms in VC") == ([("Type", "VC", 1, "/companies?type=VC")], None)


def test_named_values_stay_beside_what_is_chosen(publisher):
    inactive = named("daos in zug", status=("inactive",))
    assert inactive == (
        [
            ("Type", "DAO", 1, "/companies?type=DAO&status=inactive"),
            ("City", "Zug", 1, "/companies?status=inactive&city=Zug"),
        ],
        (1, "/companies?type=DAO&status=inactive&city=Zug"),
    )
    assert named("dao in berlin", type=("DAO",)) is None, "the filter has a value already"


@pytest.mark.parametrize("path", ["/search?q=daos+in+zug", "/companies?q=daos+in+zug"])
def test_the_page_of_a_search_without_results_offers_the_values_that_its_words_name(publisher, path):
    html = unescape(Client().get(path).content.decode())
    assert 'href="/companies?type=DAO"' in html
    assert 'href="/companies?city=Zug"' in html
    assert re.search(r'href="/companies\?type=DAO&city=Zug"[^>]*>2 results have all of them<', html)
    assert "No result has all of them" in Client().get("/search?q=VC+in+zug").content.decode()


def test_a_search_that_names_a_value_offers_no_names_with_similar_letters(publisher):
    publisher.publish(person(9, "lars-gest", name="Lars Gest Daoud"))
    page_cache.reader().refresh()
    assert "Lars Gest" in Client().get("/search?q=largest+daous").content.decode()
    for path in ("/search?q=largest+daos", "/search/box?q=largest+daos", "/companies?q=largest+daos"):
        html = Client().get(path).content.decode()
        assert 'href="/companies?type=DAO"' in html, path
        assert "Lars Gest" not in html, path


def test_the_page_and_the_api_say_the_same_of_words_that_they_do_not_understand(publisher):
    publisher.publish(company(9, "kelp", name="Kelp"))
    page_cache.reader().refresh()
    text = "Largest DAOs beside Kelp"
    listings = registry_schema("USD").listings
    of_api = everything.search(page_cache.reader(), text, limit=8, listings=listings).guidance()
    assert of_api["notUnderstood"] == ["Largest", "beside"]
    assert "Not understood: <bdi>Largest, beside</bdi>." in Client().get(f"/search?q={text}").content.decode()
    # A page knows values by their labels in its language too.
    german = Client(headers={"Accept-Language": "de"}).get("/search?q=inaktiv+neben+Kelp").content.decode()
    assert 'href="/companies?status=inactive"' in german
    assert "<bdi>neben</bdi>" in german
