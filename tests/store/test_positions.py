"""A page of a list begins after the item that its cursor names, also where items are equal or gone."""

import pytest

from make.published import company, ids
from make.queries import companies_by
from muniment.store.lists import facets, finding
from muniment.store.lists import positions as module
from muniment.store.lists.positions import index_after, mark_of
from muniment.store.queries import Mark, selection

ORDERS = ("newest", "name", "treasury", "team", "updated")


@pytest.fixture
def filled(publisher, reader):
    """Twelve companies, of which each value that orders a list is shared by three, and three lack a number."""
    publisher.publish(
        *(
            company(
                number,
                day=738_000 + number // 3,
                name="ABCD"[number % 4],
                status="active" if number % 4 else "inactive",
                treasuryMinor=None if number % 4 == 0 else number % 4 * 100,
                updatedAt=f"2026-01-0{1 + number % 4}T00:00:00.000000Z",
                **({"teamSize": number % 4} if number % 4 else {}),
            )
            for number in range(1, 13)
        )
    )
    reader.refresh()
    return reader


def pages(reader, **query):
    """Return the ids of each page, followed by cursors."""
    page = reader.companies(companies_by(**query))
    walked = [ids(page)]
    while page.next_cursor is not None and len(walked) <= page.total:  # a page that repeats items has no end
        page = reader.companies(companies_by(cursor=page.next_cursor, **query))
        walked.append(ids(page))
    return walked


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.parametrize("page_size", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("query", [{}, {"status": ["active"]}, {"q": "a"}])
def test_pages_of_a_list_repeat_and_leave_out_nothing(filled, sort, page_size, query):
    expected = ids(filled.companies(companies_by(sort=sort, page_size=100, **query)))
    walked = pages(filled, sort=sort, page_size=page_size, **query)
    assert [each for page in walked for each in page] == expected
    assert [len(page) for page in walked[:-1]] == [page_size] * (len(walked) - 1)


def marks(reader, sort, **query):
    """Yield each place of a list with the positions, the mark of the item there, and a call that finds its place."""
    chosen = selection("company", companies_by(sort=sort, **query))
    with reader.snapshot() as (connection, state):
        found = reader._positions.get(connection, chosen, state.versions["company"]).positions
        for place, position in enumerate(found):
            mark = mark_of(connection, chosen, position, place + 1)
            yield place, found, mark, lambda others, mark=mark: index_after(connection, chosen, others, mark)


@pytest.mark.parametrize("sort", ORDERS)
def test_the_next_page_begins_right_after_the_marked_item(filled, sort):
    for place, found, _, after in marks(filled, sort, status=["active"]):
        assert after(found) == place + 1


@pytest.mark.parametrize("sort", ORDERS)
def test_the_next_page_begins_where_an_item_that_is_gone_was(filled, sort):
    for place, found, _, after in marks(filled, sort, status=["active"]):
        assert after([*found[:place], *found[place + 1 :]]) == place


def test_a_mark_by_relevance_finds_its_item_where_it_is_now(filled):
    for place, found, mark, after in marks(filled, "relevance", q="a"):
        assert mark == Mark("relevance", found[place], rank=place + 1)
        assert after(found) == place + 1
        assert after([1, *found]) == place + 2, "the item has moved one place down"
        others = [*found[:place], *found[place + 1 :]]
        assert after(others) == place, "the item is gone"
        assert after([]) == 0


def test_a_mark_whose_rank_is_beyond_the_list_is_at_its_end(filled):
    (_, found, _, _), *_ = list(marks(filled, "relevance", q="a"))
    chosen = selection("company", companies_by(q="a"))
    with filled.snapshot() as (connection, _):
        assert index_after(connection, chosen, found, Mark("relevance", 5, rank=99)) == len(found)
        assert index_after(connection, chosen, found, Mark("relevance", 5, rank=0)) == 0


def test_items_without_a_number_come_last_and_a_wrong_number_of_a_cursor_is_none():
    falling = sorted(
        [(None, 9), (0, 1), (7, 1), (7, 2), (None, 3)], key=lambda pair: module._falling(*pair), reverse=True
    )
    assert falling == [(7, 2), (7, 1), (0, 1), (None, 9), (None, 3)]
    assert module._value(Mark("treasury", 1, "12")) == 12
    assert module._value(Mark("treasury", 1, "")) is None
    assert module._value(Mark("treasury", 1, "-1")) is None
    assert module._value(Mark("treasury", 1, "²")) is None
    assert module._value(Mark("updated", 1, "2026-01-01")) == "2026-01-01"


FIRST, LATER = module.STARTS
MANY = LATER + 2 * FIRST


def themes(number):
    """Return the themes of a company: north is common, south less so, and west is rarely active."""
    of_number = {
        "north": number % 2 == 1,
        "south": number % 3 == 0,
        "west": number % 4 == 0 or number % 16 in {1, 3, 9},
    }
    return [name for name, has_it in of_number.items() if has_it]


FEW = len([number for number in range(1, MANY) if number % 4 and "west" in themes(number)])


@pytest.fixture
def many(publisher, reader):
    """A registry with so many active companies that the start of a sorted list is found without sorting all."""
    publisher.publish(
        *(
            company(
                number,
                day=738_000 + number // 3,
                name=f"{number % 7} Harbour",
                status="active" if number % 4 else "inactive",
                themes=themes(number),
                treasuryMinor=None if number % 5 == 0 else number % 11 * 100,
                updatedAt=f"2026-01-0{1 + number % 4}T00:00:00.000000Z",
                **({"teamSize": number % 6} if number % 3 else {}),
            )
            for number in range(1, MANY)
        )
    )
    reader.refresh()
    return reader


def start_of(many, chosen):
    """Return what a start of a list finds, and the numbers that were counted for it."""
    counted = []
    with many.snapshot() as (connection, state):
        version = state.versions["company"]
        kept = {"positions": module.Positions(1 << 20), "documents": facets.Documents(1 << 20)}

        def count():
            counted.append(facets.total(connection, chosen, version, **kept))
            return counted[-1]

        found = module.find_start(connection, chosen, FIRST, state.totals["company"][0], count)
    return found, counted


@pytest.mark.parametrize(
    ("sort", "query"),
    [
        *((order, {}) for order in ORDERS if order != "newest"),
        *((order, {"status": ["active"]}) for order in ORDERS),
        *((order, {"status": ["active"], "theme": ["north"]}) for order in ORDERS),
        *((order, {"theme": ["north", "south"]}) for order in ORDERS),
        ("newest", {"status": ["inactive"]}),
    ],
)
def test_the_start_of_a_sorted_list_is_that_of_the_whole_list(many, sort, query):
    chosen = selection("company", companies_by(sort=sort, **query))
    with many.snapshot() as (connection, _):
        whole = module.find(connection, chosen).positions
    (start, number), counted = start_of(many, chosen)
    assert (list(start.positions), number) == (list(whole[:FIRST]), len(whole))
    is_stored = not query or (len(query) == 1 and all(len(values) == 1 for values in query.values()))
    assert counted == ([] if is_stored else [number])
    assert pages(many, sort=sort, page_size=100, **query)[2:] != []


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        ({"status": ["inactive"]}, []),
        ({"status": ["inactive"], "theme": ["north"]}, []),
        ({"status": ["active"], "theme": ["west"]}, [FEW]),
        ({"status": ["active"], "theme": ["east"]}, []),
        ({"q": "harbour"}, []),
    ],
)
def test_a_list_of_few_is_found_whole(many, query, counted):
    chosen = selection("company", companies_by(sort="treasury", **query))
    assert start_of(many, chosen) == (None, counted)


def test_a_filter_of_many_values_is_not_walked(many, monkeypatch):
    monkeypatch.setattr(finding, "MAX_WALKED_VALUES", 2)
    chosen = selection("company", companies_by(sort="name", theme=["north", "south"]))
    assert start_of(many, chosen)[0] is not None
    monkeypatch.setattr(finding, "MAX_WALKED_VALUES", 1)
    assert start_of(many, chosen) == (None, [])


def test_a_walk_ends_where_those_that_are_wanted_come_last_and_all_are_found_instead(publisher, reader):
    most, wanted, others = 20, 300, 2_400
    publisher.publish(
        *(
            company(
                number,
                name=f"{number} Harbour",
                status="active" if number <= wanted else "inactive",
                treasuryMinor=None if number <= wanted else number,
            )
            for number in range(1, wanted + others)
        )
    )
    reader.refresh()
    chosen = selection("company", companies_by(sort="treasury", status=["active"]))
    passed = []
    with reader.snapshot() as (connection, state):
        total = state.totals["company"][0]
        connection.set_trace_callback(passed.append)
        assert module.find_start(connection, chosen, most, total, lambda: wanted) is None
        connection.set_trace_callback(None)
    assert any(f"LIMIT {4 * most * total // wanted})" in statement for statement in passed)
    page = reader.companies(companies_by(sort="treasury", status=["active"]))
    assert (page.total, ids(page)[:1]) == (wanted, [f"company-{wanted}"])


@pytest.mark.parametrize(("sort", "query"), [("treasury", {}), ("newest", {"status": ["active"]})])
def test_pages_from_the_start_and_behind_it_join(many, sort, query):
    total = sum(number % 4 > 0 or not query for number in range(1, MANY))

    def walk(page_size):
        found = []
        for number in range(1, MANY // page_size + 2):
            page = many.companies(companies_by(sort=sort, page=number, page_size=page_size, **query))
            assert page.total == total
            found += ids(page)
        return found

    assert walk(100) == walk(30)
    assert len(walk(100)) == total


@pytest.mark.parametrize("count", [FIRST - 1, FIRST, FIRST + 1])
@pytest.mark.parametrize("sort", ["name", "treasury"])
def test_lists_about_as_long_as_a_start_end_with_their_last_document(publisher, reader, count, sort):
    publisher.publish(*(company(number, name="Harbour", treasuryMinor=None) for number in range(1, count + 1)))
    reader.refresh()
    expected = [f"company-{number}" for number in range(1, count + 1)]
    found = [ids(reader.companies(companies_by(sort=sort, page=page, page_size=50))) for page in range(1, 7)]
    walked = pages(reader, sort=sort, page_size=50)
    assert len(found[5]) == 0
    assert [each for page in found for each in page] == [each for page in walked for each in page]
    assert sorted(each for page in walked for each in page) == sorted(expected)
