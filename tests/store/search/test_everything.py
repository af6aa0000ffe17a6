"""One search over all kinds: their order together, their totals, and what is close."""

from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from make.published import Publisher, company, framework, person
from muniment.schema.objects import registry_schema
from muniment.store.queries import ListQuery
from muniment.store.reader import Reader
from muniment.store.search import everything as searching
from muniment.store.search.everything import summary_of, trimmed

search = partial(searching.search, listings=registry_schema("USD").listings)


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    yield made
    made.close()


@pytest.fixture
def reader(publisher, tmp_path):
    publisher.publish(
        company(1, "tide", name="Tide", symbol="TIDE", description="Keeps **boats** at [sea](https://sea.example)."),
        company(2, "tide-works", name="Tide Works", website="https://works.example"),
        company(3, "harbour", name="Harbour", body="They look after the tide gauge."),
        company(4, "elsewhere", name="Elsewhere"),
        person(1, "ada-tide", name="Ada Tide", bio="Measures water."),
        person(2, "ben-storm", name="Ben Storm", bio="Rowed against the tide."),
        framework(1, "tide-score", name="Tide score", description="How well a harbour is kept."),
        framework(2, "other", name="Other"),
    )
    made = Reader(tmp_path / "published.sqlite3")
    yield made
    made.close()


def found(reader, q, **options):
    return [(each.kind, each.key) for each in search(reader, q, limit=5, **options).results]


def test_kinds_are_ranked_together_exact_then_names_then_texts(reader):
    assert found(reader, "tide") == [
        ("company", "tide"),
        ("company", "tide-works"),
        ("person", "ada-tide"),
        ("framework", "tide-score"),
        ("company", "harbour"),
        ("person", "ben-storm"),
    ]
    assert search(reader, "tide", limit=5).totals == {"company": 3, "person": 2, "framework": 1}


def test_a_person_is_described_by_the_summary_alone_whatever_else_an_import_kept(publisher, reader):
    ada = person(1, "ada-tide", name="Ada Tide", bio="Measures water.")
    item = msgspec.json.encode({**msgspec.json.decode(ada.item), "type": ["a"], "industry": 5})
    publisher.publish(replace(ada, item=item))
    (ada,) = [each for each in search(reader, "ada tide", limit=5).results if each.key == "ada-tide"]
    assert ada.item["type"] == ["a"]
    assert ada.about == "Measures water."


def test_an_address_of_nothing_names_nothing(reader):
    assert found(reader, "http://.") == []


@pytest.mark.parametrize(
    ("q", "first"),
    [
        ("ada tide", ("person", "ada-tide")),
        ("works.example", ("company", "tide-works")),
        ("TIDE", ("company", "tide")),
        ("tide score", ("framework", "tide-score")),
        ("tide-score", ("framework", "tide-score")),
        ("tidescore", ("framework", "tide-score")),
        ("tide scor", ("framework", "tide-score")),
        ("harbour is kept", ("framework", "tide-score")),
    ],
)
def test_the_best_of_any_kind_is_first(reader, q, first):
    assert found(reader, q)[0] == first


@pytest.mark.parametrize(
    ("q", "first"), [("tiide score", ("framework", "tide-score")), ("ben strom", ("person", "ben-storm"))]
)
def test_what_is_only_similar_is_no_result_and_the_likeliest_of_any_kind_is_the_closest(reader, q, first):
    everything = search(reader, q, limit=5)
    assert (everything.results, {*everything.totals.values()}) == ([], {0})
    assert next((kind, each.id) for kind, each in everything.closest) == first
    assert everything.hint == f'No company, person or framework matches "{q}". You may mean one of the closest results.'


def test_a_kind_keeps_the_order_and_the_total_of_its_list(reader):
    everything = search(reader, "tide", limit=2)
    for kind, page in (
        ("company", reader.companies(ListQuery(q="tide", page_size=2))),
        ("person", reader.people(ListQuery(q="tide", page_size=2))),
        ("framework", reader.page("framework", ListQuery(q="tide", page_size=2))),
    ):
        own = [each for each in everything.results if each.kind == kind]
        assert [each.provenance for each in own] == list(page.provenance)
        assert everything.totals[kind] == page.total


def test_only_the_kinds_that_are_asked_for_are_searched(reader):
    assert found(reader, "tide", kinds=("person",)) == [("person", "ada-tide"), ("person", "ben-storm")]
    assert (
        search(reader, "zzyzx", limit=5, kinds=("person",)).hint
        == 'No person matches "zzyzx". Use fewer or other words.'
    )


def test_what_is_close_is_named_unless_a_name_matches(reader):
    close = search(reader, "ben strom", limit=5).closest
    assert [(kind, each.id) for kind, each in close] == [("person", "ben-storm")]
    assert search(reader, "ben storm", limit=5).closest == ()


def test_a_question_that_matches_nothing_names_what_its_words_name(reader):
    everything = search(reader, "who runs the Tide Works in the harbour", limit=5)
    assert everything.results == []
    assert next((kind, each.id) for kind, each in everything.closest) == ("company", "tide-works")
    assert everything.closest[0][1].why == 'Its name is in "who runs the Tide Works in the harbour".'
    assert everything.not_understood == ("who", "runs", "the", "in")
    assert everything.hint.startswith('No company, person or framework matches "who runs')


def test_what_only_shares_a_word_with_a_query_is_left_out(reader):
    everything = search(reader, "boats and zeppelins?", limit=5)
    assert (everything.results, everything.closest) == ([], ())
    assert everything.not_understood == ("boats", "and", "zeppelins")
    assert search(reader, "boats", limit=5).results != []
    assert search(reader, "boats", limit=5).not_understood == ()


def test_a_name_that_is_similar_to_the_whole_query_explains_its_words(reader):
    assert search(reader, "ben strom", limit=5).not_understood == ()


def test_words_that_are_values_of_filters_are_understood_and_names_like_others_are_left_out(publisher, reader):
    publisher.publish(
        company(20, "kelp-guild", name="Kelp Guild", type="DAO", address=[{"city": "Zug", "country": "CH"}]),
        company(21, "tern", name="Tern Fund", type="VC"),
        company(22, "zug", name="Zug Ferries", type="VC", status="inactive"),
        person(20, "lars-gest", name="Lars Gest Daoud", positions=(("Chair", "kelp-guild"),)),
    )
    reader.refresh()
    assert reader.people(ListQuery(q="Largest DAOs")).closest[0].id == "lars-gest"
    largest = search(reader, "Largest DAOs", limit=5)
    assert (largest.results, largest.closest, largest.not_understood) == ([], (), ("Largest",))
    assert largest.hint == (
        'No company, person or framework matches "Largest DAOs". '
        "Some words are values of filters: list companies with type=DAO."
    )
    swiss = search(reader, "inactive DAOs of Switzerland?", limit=5)
    assert [(each.name, each.value) for each in swiss.named] == [
        ("status", "inactive"),
        ("type", "DAO"),
        ("country", "CH"),
    ]
    assert swiss.not_understood == ("of",)
    chairs = search(reader, "chairs anywhere", limit=5, kinds=("person",))
    assert [(each.name, each.value) for each in chairs.named] == [("title", "chairs")]
    assert (
        chairs.hint
        == 'No person matches "chairs anywhere". Some words are values of filters: list people with title=chairs.'
    )


def test_a_name_in_a_question_stays_the_closest_although_it_is_a_value_too(publisher, reader):
    publisher.publish(company(20, "kelp-guild", name="Kelp Guild", themes=["kelp guild"]))
    reader.refresh()
    asked = search(reader, "who runs Kelp Guild", limit=5)
    assert [each.id for _, each in asked.closest] == ["kelp-guild"]
    assert asked.not_understood == ("who", "runs")
    assert "You may mean one of the closest results. Some words are values" in asked.hint


def test_nothing_at_all_has_a_hint(reader):
    everything = search(reader, "!!!", limit=5)
    assert (everything.results, everything.closest) == ([], ())
    assert everything.hint.startswith('No company, person or framework matches "!!!". Use fewer or other words.')


def test_a_summary_is_one_line_without_markup(reader):
    assert search(reader, "tide", limit=1).results[0].summary == "Keeps boats at sea."
    assert summary_of("# A *title*\n\n- `code` and snake_case_words") == "A title - code and snake_case_words"
    assert summary_of("word " * 100).endswith("word…")
    assert len(summary_of("word " * 100)) <= 160


def test_a_long_query_is_cut_after_a_whole_word():
    assert trimmed("  two\n words\0 ") == "two words"
    assert trimmed("ab " * 400) == " ".join(["ab"] * 67)
    assert trimmed("x" * 500) == "x" * 200
