"""The bits of frequent filter values say the same as their rows, whatever is published, changed, moved or unlisted."""

import random

import pytest

from make.published import company
from make.queries import companies_by
from muniment.store import published, value_bits
from muniment.store.verifying.published_rows import faults_of_indexes

THEMES = ("coast", "maps", "seeds", "water")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(value_bits, "MANY", 5)
    monkeypatch.setattr(value_bits, "BLOCK", 16)


def of_rows(connection):
    """Return the publication numbers of the rows of each value in use."""
    numbers = {}
    rows = connection.execute(
        "SELECT v.name, v.value, v.id, f.position FROM published_value v JOIN published_facet f ON f.value_id = v.id"
    )
    for name, value, number, position in rows:
        numbers.setdefault((name, value, number), set()).add(position & value_bits.NUMBER)
    return numbers


def of_bits(connection, value):
    lowest_first = reversed(f"{value_bits.read(connection, value):b}")
    return {number for number, bit in enumerate(lowest_first) if bit == "1"}


def check(publisher):
    connection = publisher.connection
    with_bits = {row[0] for row in connection.execute("SELECT DISTINCT value_id FROM published_value_bits")}
    expected = of_rows(connection)
    assert with_bits == {value for (_, _, value), numbers in expected.items() if len(numbers) >= 5}
    for (_, _, value), numbers in expected.items():
        if value in with_bits:
            assert of_bits(connection, value) == numbers
    assert value_bits.faults(connection) == 0


@pytest.mark.parametrize("most", [1, 20, 100_000])
def test_bits_follow_random_publications(publisher, reader, monkeypatch, most):
    monkeypatch.setattr(value_bits, "MOST_REMEMBERED", most)
    monkeypatch.setattr(published, "MAX_ENTERED", most)
    chance = random.Random(27)

    def made(number):
        themes = chance.sample(THEMES, chance.randrange(len(THEMES)))
        return company(number, day=738_000 + chance.randrange(3), themes=themes, status=chance.choice(("active", "x")))

    for _ in range(60):
        publisher.publish(*(made(chance.randrange(1, 60)) for _ in range(chance.randrange(1, 12))))
        listed = sorted(key for _, key in publisher.known)
        publisher.unlist("company", *chance.sample(listed, chance.randrange(len(listed) // 3 + 1)))
        check(publisher)
    reader.refresh()
    counted = reader.facets("company", companies_by(status=["active"]), ["theme"]).by_name["theme"].values
    for each in counted:
        page = reader.companies(companies_by(status=["active"], theme=[each.value]))
        assert page.total == each.n


@pytest.mark.parametrize(("n", "has_bits"), [(4, False), (5, True)])
def test_a_value_has_bits_from_many_documents_on_and_none_below(publisher, n, has_bits):
    def values():
        rows = publisher.connection.execute("SELECT DISTINCT value_id FROM published_value_bits")
        return {value for (value,) in rows}

    publisher.publish(*(company(number, themes=["reef"]) for number in range(1, n + 1)))
    ((reef, counted),) = publisher.connection.execute("SELECT id, n FROM published_value WHERE value = 'reef'")
    assert (counted, reef in values()) == (n, has_bits)
    publisher.publish(company(6, themes=["reef"]))
    assert reef in values()
    publisher.unlist("company", *(f"company-{number}" for number in range(1, n)))
    assert reef not in values()
    check(publisher)


def test_a_document_in_a_block_far_away_is_read(publisher):
    publisher.publish(*(company(number, themes=["reef"]) for number in (3, 15, 16, 17, 1_000_003)))
    ((reef,),) = publisher.connection.execute("SELECT id FROM published_value WHERE value = 'reef'")
    blocks = publisher.connection.execute("SELECT block FROM published_value_bits WHERE value_id = ?", (reef,))
    assert blocks.fetchall() == [(0,), (1,), (62_500,)]
    assert of_bits(publisher.connection, reef) == {3, 15, 16, 17, 1_000_003}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE published_value_bits SET bits = zeroblob(2)",
        "DELETE FROM published_value_bits",
        "INSERT INTO published_value_bits VALUES (999, 0, x'01')",
    ],
)
def test_bits_that_say_something_else_are_found(publisher, damage):
    publisher.publish(*(company(number, themes=["reef"]) for number in range(1, 6)))
    assert faults_of_indexes(publisher.connection) == []
    publisher.connection.execute(damage)
    (fault,) = faults_of_indexes(publisher.connection)
    assert fault.endswith("filter values have wrong bits")
