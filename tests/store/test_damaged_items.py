"""An item of a list that no longer has its checksum is never returned, whatever reads it."""

import sqlite3
from contextlib import closing
from datetime import date

import pytest

from make.published import Publisher, company, framework
from make.queries import companies_by
from muniment.store.database import faults
from muniment.store.database.faults import DamagedDocument, damages_read
from muniment.store.items import item_at
from muniment.store.lists.highlights import highlights
from muniment.store.published import with_checksum
from muniment.store.reader import Reader

ALPHA = ("company", "alpha")
READS = {
    "the newest": lambda reader: reader.companies(companies_by()),
    "another order": lambda reader: reader.companies(companies_by(sort="name")),
    "a search": lambda reader: reader.companies(companies_by(q="alpha")),
    "highlights": lambda reader: highlights(reader, date(2026, 1, 1).isoformat(), 5),
    "a sheet": lambda reader: reader.sheet_rows("company", [1, 2], ["name"]),
}
DAMAGES = {
    "a bit of the item": "substr(item, 1, 20) || x'00' || substr(item, 22)",
    "a bit of the checksum": "substr(item, 1, length(item) - 4) || x'00000000'",
    "the mark of the checksum": "x'03' || substr(item, 2)",
    "a shorter item": "substr(item, 1, length(item) - 1)",
    "nothing": "x''",
}


@pytest.fixture
def path(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1, "alpha", raising=True), company(2, "beta"), framework(1, "score"))
    publisher.close()
    return tmp_path / "published.sqlite3"


@pytest.fixture
def reader(path, monkeypatch):
    monkeypatch.setattr(faults, "REST_S", 0.0)
    damages_read.take_documents()
    made = Reader(path)
    yield made
    made.close()
    damages_read.take_documents()


def run(path, statement):
    with closing(sqlite3.connect(path)) as own:
        own.execute(statement)
        own.commit()


@pytest.mark.parametrize("read", READS)
def test_a_damaged_item_is_refused_counted_and_waits_to_be_mended(path, reader, read):
    READS[read](reader)
    run(path, f"UPDATE published_item_company SET item = CAST({DAMAGES['a bit of the item']} AS BLOB)")
    reader.answers.drop_changed(-1, None)
    before = damages_read.counts["documents"]
    for _ in range(2):
        with pytest.raises(DamagedDocument) as refused:
            READS[read](reader)
    assert refused.value.headers == {"Retry-After": "2"}
    assert damages_read.counts["documents"] == before + 1
    assert len(damages_read.take_documents()) == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_found(path, reader, damage):
    run(path, f"UPDATE published_item_company SET item = CAST({DAMAGES[damage]} AS BLOB) WHERE position = 1")
    with pytest.raises(DamagedDocument):
        reader.companies(companies_by())
    assert damages_read.take_documents() == [ALPHA]


def test_an_item_that_has_become_text_is_read_if_it_is_whole(path, reader):
    """A flipped bit of a row's header can make it text, and so can a person with an editor."""
    before = reader.companies(companies_by()).items
    run(path, "UPDATE published_item_company SET item = CAST(item AS TEXT)")
    assert reader.companies(companies_by()).items == before
    run(path, "UPDATE published_item_company SET item = replace(item, 'alpha', 'omega') WHERE position = 1")
    with pytest.raises(DamagedDocument):
        reader.companies(companies_by())
    assert damages_read.take_documents() == [ALPHA]


def test_frameworks_are_compared(path, reader):
    assert reader.frameworks().body
    run(path, f"UPDATE published_item_framework SET item = CAST({DAMAGES['a bit of the item']} AS BLOB)")
    with pytest.raises(DamagedDocument):
        reader.frameworks()
    assert damages_read.take_documents() == [("framework", "score")]


def test_each_single_flipped_bit_is_found():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE published_document (kind, key, position)")
        whole = with_checksum(b'{"id":"alpha"}')
        assert item_at(connection, "company", 1, whole) == b'{"id":"alpha"}'
        for bit in range(8 * len(whole)):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises(DamagedDocument):
                item_at(connection, "company", 1, bytes(flipped))
        with pytest.raises(DamagedDocument):
            item_at(connection, "company", 1, whole.decode("latin-1"))
