"""Lists: pages, cursors and filters."""

import json
import random

import pytest

from make.published import company, ids
from make.queries import companies_by
from muniment.store import published
from muniment.store.lists.positions import Positions
from muniment.store.queries import CursorError, selection


def companies(reader, **query):
    return ids(reader.companies(companies_by(**query)))


def test_pages_are_newest_first_and_hold_everything_once(publisher, reader, monkeypatch):
    monkeypatch.setattr(published, "BLOCK_SPLIT", 8)
    chance = random.Random(3)
    documents = {f"company-{n}": company(n, day=chance.randint(0, 5)) for n in range(1, 90)}
    publisher.publish(*documents.values())
    for key in chance.sample(sorted(documents), 20):
        publisher.unlist("company", key)
        del documents[key]
    reader.refresh()
    expected = sorted(documents, key=lambda key: -documents[key].position)
    for size in (1, 7, 25, 100):
        shown = []
        for number in range(1, -(-len(expected) // size) + 1):
            page = reader.companies(companies_by(page=number, page_size=size))
            assert (page.page, page.page_size, page.total) == (number, size, len(expected))
            assert page.page_count == -(-len(expected) // size)
            shown += ids(page)
        assert shown == expected
    beyond = reader.companies(companies_by(page=10**15 - 1))
    assert (beyond.items, beyond.page, beyond.total, beyond.next_cursor) == ([], 10**15 - 1, len(expected), None)


@pytest.mark.parametrize("query", [{}, {"sort": "name"}, {"q": "water"}, {"status": "active"}])
def test_cursors_walk_the_whole_list_once_with_true_page_numbers(publisher, reader, monkeypatch, query):
    monkeypatch.setattr(published, "BLOCK_SPLIT", 8)
    chance = random.Random(5)
    names = ["Alpha Water", "beta water", "Gamma Water", "delta water"]
    publisher.publish(*(company(n, day=chance.randint(0, 5), name=chance.choice(names)) for n in range(1, 60)))
    reader.refresh()
    everything = companies(reader, page_size=100, **query)
    assert len(everything) == 59
    cursor, shown, number = None, [], 1
    while True:
        page = reader.companies(companies_by(page_size=7, cursor=cursor, **query))
        assert page.page == number
        shown += ids(page)
        if page.next_cursor is None:
            break
        cursor, number = page.next_cursor, number + 1
    assert shown == everything


@pytest.mark.parametrize("query", [{}, {"sort": "name"}, {"q": "company"}])
def test_a_cursor_continues_after_an_item_that_was_removed(publisher, reader, query):
    publisher.publish(*(company(n) for n in range(10, 30)))
    reader.refresh()
    everything = companies(reader, page_size=100, **query)
    page = reader.companies(companies_by(page_size=5, **query))
    publisher.unlist("company", everything[4])
    reader.refresh()
    assert companies(reader, page_size=100, cursor=page.next_cursor, **query) == everything[5:]


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "bnVsbA", "é", "WyJuIiwtMSwiIiwwXQ", "W10", "A" * 5000])
def test_an_invalid_cursor_is_refused(publisher, reader, cursor):
    with pytest.raises(CursorError):
        reader.companies(companies_by(cursor=cursor))


def test_a_cursor_of_another_order_is_refused(publisher, reader):
    publisher.publish(*(company(n) for n in range(1, 10)))
    reader.refresh()
    cursor = reader.companies(companies_by(page_size=2)).next_cursor
    with pytest.raises(CursorError, match="name"):
        reader.companies(companies_by(page_size=2, sort="name", cursor=cursor))


def matches(document, query):
    """The rule of each filter, said plainly."""

    def holds(name, wanted):
        if name == "q":
            words = json.dumps([*document.texts, document.search.themes]).lower().replace("-", " ")
            return all(word in words for word in wanted.split())
        if name == "updatedSince":
            return document.updated_at >= wanted
        if name == "ids":
            return document.key in wanted
        text = {True: "true", False: "false"}.get(wanted, wanted)
        values = document.facets[{"hasToken": "hasToken"}.get(name, name)]
        return text.lower() in [value.lower() for value in values]

    return all(holds(name, wanted) for name, wanted in query.items())


def test_every_combination_of_filters_equals_a_plain_search(publisher, reader):
    chance = random.Random(11)
    documents = []
    for number in range(1, 120):
        symbol = {"symbol": f"T{number}"} if chance.random() < 0.4 else {}
        documents.append(
            company(
                number,
                day=chance.randint(0, 9),
                status=chance.choice(["active", "upcoming", "inactive"]),
                type=chance.choice(["DAO", "corporation"]),
                industry=chance.choice(["Water", "Energy"]),
                themes=chance.sample(["open", "public goods", "rivers"], chance.randint(0, 2)),
                raising=chance.random() < 0.3,
                name=chance.choice(["Blue", "Green", "blue"]),
                updatedAt=f"2026-01-0{chance.randint(1, 9)}T00:00:00.000000Z",
                **symbol,
            )
        )
    publisher.publish(*documents)
    reader.refresh()
    choices = {
        "status": ["active", "inactive"],
        "type": ["DAO", "dao"],
        "industry": ["Water"],
        "theme": ["open", "nothing"],
        "hasToken": [True, False],
        "raising": [True],
        "q": ["blue", "green rivers", "missing"],
        "updatedSince": ["2026-01-05T00:00:00.000000Z"],
        "ids": [tuple(f"company-{n}" for n in range(1, 60)) + ("unknown",)],
    }
    for _ in range(400):
        query = {name: chance.choice(values) for name, values in choices.items() if chance.random() < 0.35}
        sort = chance.choice(["newest", "name"])

        kept = [document for document in documents if matches(document, query)]
        if sort == "name":
            kept.sort(key=lambda document: (document.name.lower(), document.position))
        else:
            kept.sort(key=lambda document: -document.position)
        page = reader.companies(companies_by(page_size=100, sort=sort, **query))
        assert ids(page) == [document.key for document in kept][:100], query
        assert page.total == len(kept)


def test_the_key_of_a_cached_answer_counts_toward_its_limit(publisher):
    kept = Positions(100_000)
    for number in range(50):
        ids = tuple(f"{number}-{each}-{'x' * 100}" for each in range(100))
        kept.get(publisher.connection, selection("company", companies_by(ids=ids)), 1)
    assert 3 < len(kept._cache) < 8
