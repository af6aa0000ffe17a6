"""The published file keeps its documents, order, blocks, facets, search text and totals in step."""

import itertools
import random

import msgspec
import pytest

from make.published import company, person
from muniment.store import published
from muniment.store.published_document import PublishedEntry
from muniment.store.reader import Reader


def rows(publisher, sql, *parameters):
    return publisher.connection.execute(sql, parameters).fetchall()


def assert_in_step(publisher, expected):
    """Every derived table equals what the documents alone say."""
    positions = sorted(document.position for document in expected.values())
    assert [row[0] for row in rows(publisher, "SELECT position FROM published_item_company ORDER BY 1")] == positions
    blocks = rows(publisher, "SELECT first, n FROM published_block WHERE kind = 'company' ORDER BY first")
    bounds = [first for first, _ in blocks] + [1 << 63]
    counted = [sum(low <= p < high for p in positions) for low, high in itertools.pairwise(bounds)]
    assert [n for _, n in blocks] == counted
    assert max(counted) <= published.BLOCK_SPLIT
    facets = rows(
        publisher,
        "SELECT v.name, v.value, f.position FROM published_facet f JOIN published_value v ON v.id = f.value_id",
    )
    assert sorted(facets) == sorted(
        (name, value, document.position)
        for document in expected.values()
        for name, values in document.facets.items()
        for value in values
    )
    assert [row[0] for row in rows(publisher, "SELECT rowid FROM published_text_company ORDER BY 1")] == positions
    n, raising, treasury = rows(publisher, "SELECT n, raising, treasury_minor FROM published_total")[0]
    assert (n, raising, int(treasury)) == (
        len(expected),
        sum(document.raising for document in expected.values()),
        sum(document.treasury_minor for document in expected.values()),
    )


def test_every_table_stays_in_step_through_random_changes(publisher, monkeypatch):
    monkeypatch.setattr(published, "BLOCK_SPLIT", 8)
    chance = random.Random(7)
    expected = {}
    for _ in range(60):
        changed = {}
        for _ in range(chance.randint(1, 6)):
            number = chance.randint(1, 60)
            changed[f"company-{number}"] = company(
                number,
                day=chance.randint(0, 3),
                status=chance.choice(["active", "inactive"]),
                raising=chance.random() < 0.3,
                treasuryMinor=chance.randint(0, 10**17),
                themes=chance.sample(["dao", "open", "water"], chance.randint(0, 3)),
            )
        publisher.publish(*changed.values())
        expected |= changed
        gone = chance.sample(sorted(expected), min(len(expected), chance.randint(0, 3)))
        if gone:
            publisher.unlist("company", *gone)
            for key in gone:
                del expected[key]
        assert_in_step(publisher, expected)


def test_editions_are_dense_and_changes_name_what_happened(publisher):
    assert publisher.publish(company(1), person(1)) == 2
    assert publisher.publish(company(1, name="Renamed")) == 3
    assert publisher.unlist("company", "company-1") == 4
    assert rows(publisher, "SELECT sequence, kind, key, change FROM published_change") == [
        (1, "company", "company-1", "published"),
        (2, "person", "person-1", "published"),
        (3, "company", "company-1", "updated"),
        (4, "company", "company-1", "unlisted"),
    ]
    assert rows(publisher, "SELECT edition FROM published_meta") == [(4,)]


def test_a_publication_that_is_rolled_back_leaves_nothing(publisher):
    publisher.publish(company(1))
    publisher.connection.execute("BEGIN IMMEDIATE")
    first = published.reserve(publisher.connection, 1)
    document = company(2)
    entry = PublishedEntry(
        sequence=first, kind="company", key="company-2", change="published", at="", document=document
    )
    published.apply(publisher.connection, [entry])
    publisher.connection.execute("ROLLBACK")
    assert_in_step(publisher, {"company-1": company(1)})
    assert rows(publisher, "SELECT edition FROM published_meta") == [(1,)]


def test_changes_of_one_document_in_one_go_are_written_one_after_the_other(publisher):
    connection = publisher.connection
    moved = company(1, day=3, status="inactive", themes=["water"])
    changes = [
        ("published", company(1, raising=True)),
        ("updated", moved),
        ("unlisted", None),
        ("published", company(1, day=9)),
        ("updated", moved),
    ]
    entries = [
        PublishedEntry(sequence=number, kind="company", key="company-1", change=change, at="", document=document)
        for number, (change, document) in enumerate(changes, 1)
    ]
    published.apply(connection, entries)
    assert_in_step(publisher, {"company-1": moved})
    assert rows(publisher, "SELECT edition FROM published_meta") == [(5,)]
    published.apply(connection, [msgspec.structs.replace(entries[2], sequence=6)])
    assert_in_step(publisher, {})


def test_documents_with_the_row_ids_of_former_versions_are_read_changed_and_removed(publisher, tmp_path):
    publisher.publish(company(1), company(2), company(3))
    publisher.connection.execute("UPDATE published_document SET id = id * 1000000007")
    renamed = company(2, name="Renamed")
    publisher.publish(renamed, company(4))
    publisher.unlist("company", "company-3")
    assert_in_step(publisher, {"company-1": company(1), "company-2": renamed, "company-4": company(4)})
    reader = Reader(tmp_path / "published.sqlite3")
    assert b"Renamed" in reader.document("company", "company-2").body
    assert reader.document("company", "company-3") is None
    reader.close()


def test_the_feed_keeps_only_its_newest_entries(publisher, monkeypatch):
    publisher.publish(*(company(number) for number in range(1, 11)))
    connection = publisher.connection
    entry = PublishedEntry(sequence=11, kind="company", key="gone", change="unlisted", at="")
    monkeypatch.setattr(published, "CHANGES_KEPT", 4)
    published.apply(connection, [entry])
    assert rows(publisher, "SELECT sequence FROM published_change ORDER BY sequence") == [(8,), (9,), (10,), (11,)]


def test_a_treasury_beyond_64_bits_is_summed_exactly(publisher):
    publisher.publish(*(company(number, treasuryMinor=10**17) for number in range(1, 201)))
    assert rows(publisher, "SELECT treasury_minor FROM published_total WHERE kind = 'company'") == [(str(2 * 10**19),)]


def test_another_schema_version_is_refused_and_clearing_begins_a_new_epoch(publisher):
    publisher.publish(company(1))
    (epoch,) = rows(publisher, "SELECT epoch FROM published_meta")[0]
    publisher.connection.execute("UPDATE published_meta SET schema = 999")
    with pytest.raises(published.SchemaMismatch, match="999"):
        published.create(publisher.connection)
    published.clear(publisher.connection)
    assert_in_step(publisher, {})
    assert rows(publisher, "SELECT epoch FROM published_meta")[0][0] != epoch
