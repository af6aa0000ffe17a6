"""Names that companies had: where what had them comes, and what is said of it."""

from functools import partial

import pytest

from make.published import company, ids, person
from make.queries import companies_by
from muniment.schema.objects import registry_schema
from muniment.store.search import everything

search = partial(everything.search, listings=registry_schema("USD").listings)


@pytest.fixture
def renamed(publisher, reader):
    """Return a reader of a company that was "Meadowlark Trust", with a slug of that name, among others."""
    publisher.publish(
        company(1, "meadowlark-trust", name="Quillmere", body="long " * 50, formerNames=[{"name": "Meadowlark Trust"}]),
        company(2, "opal-works", name="Opal Works", description="Works with the Meadowlark Trust."),
        company(3, "tern", name="Tern", formerNames=[{"name": "Harbour Light"}, {"name": "Old Tern Ltd"}]),
    )
    reader.refresh()
    return reader


def found(reader, q):
    return ids(reader.companies(companies_by(q=q)))


@pytest.mark.parametrize(
    ("q", "first"),
    [
        ("Meadowlark Trust", "meadowlark-trust"),
        ("meadowlark-trust", "meadowlark-trust"),
        ("MEADOWLARKTRUST", "meadowlark-trust"),
        ("harbour light", "tern"),
        ("old tern ltd", "tern"),
        ("harbour", "tern"),  # a word of it
        ("harbo", "tern"),  # its beginning
        ("harbuor light", "tern"),  # a slip
        ("harbourlight", "tern"),
        ("harbour light company", "tern"),
        ("meadowlrk trst", "meadowlark-trust"),
    ],
)
def test_a_company_is_found_by_a_former_name(renamed, q, first):
    close = [each.id for each in renamed.companies(companies_by(q=q)).closest]
    assert [*found(renamed, q), *close][0] == first


def test_what_has_the_name_now_comes_before_what_had_it(publisher, renamed):
    publisher.publish(company(4, "meadowlark-trust-2", name="Meadowlark Trust"))
    renamed.refresh()
    assert found(renamed, "Meadowlark Trust") == ["meadowlark-trust-2", "meadowlark-trust", "opal-works"]
    every = search(renamed, "Meadowlark Trust", limit=5)
    assert [each.key for each in every.results] == ["meadowlark-trust-2", "meadowlark-trust", "opal-works"]
    assert [(each.id, each.why) for _, each in every.closest] == [("meadowlark-trust", 'Formerly "Meadowlark Trust".')]


def test_what_has_the_name_now_comes_first_among_all_kinds(publisher, renamed):
    publisher.publish(person(5, "harbour-light", name="Harbour Light"))
    renamed.refresh()
    assert [each.key for each in search(renamed, "harbour light", limit=5).results] == ["harbour-light", "tern"]


@pytest.mark.parametrize(
    ("q", "why"),
    [
        ("Harbour Light", 'Formerly "Harbour Light".'),
        ("harbour-light", 'Formerly "Harbour Light".'),
        ("Harbuor Light", 'Formerly "Harbour Light", similar to "Harbuor Light".'),
    ],
)
def test_an_answer_says_which_former_name_was_meant(renamed, q, why):
    page = renamed.companies(companies_by(q=q))
    assert [(each.id, each.why) for each in page.closest] == [("tern", why)]
    assert [(kind, each.why) for kind, each in search(renamed, q, limit=5).closest] == [("company", why)]


def test_a_name_that_was_taken_away_finds_nothing(publisher, renamed):
    publisher.publish(company(3, "tern", name="Tern"))
    renamed.refresh()
    assert found(renamed, "harbour light") == []
    words = "SELECT count(*) FROM published_word_company WHERE word LIKE '%harbour%'"
    with renamed.snapshot() as (connection, _):
        assert connection.execute(words).fetchone() == (0,)


@pytest.mark.parametrize("q", ["harbuor\u202e light", "\u2066none like it"])
def test_what_is_said_of_a_query_leaves_out_what_turns_text_around(renamed, q):
    page = renamed.companies(companies_by(q=q))
    every = search(renamed, q, limit=5)
    said = [page.hint, every.hint, *(each.why for each in page.closest), *(each.why for _, each in every.closest)]
    assert any(said)
    assert not {"\u202e", "\u2066"} & set("".join(said))
