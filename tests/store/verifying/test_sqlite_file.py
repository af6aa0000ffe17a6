"""Damaged pages of an SQLite file are found, whatever they hold, and indexes are made again from their table."""

import contextlib
import sqlite3

import pytest

from make.corruption import Page, change_behind_index, damage, pages
from make.published import Publisher, company
from muniment.store.verifying import sqlite_file


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "published.sqlite3"
    publisher = Publisher(path)
    publisher.publish(*(company(number, description=f"word{number} " * 40) for number in range(1, 120)))
    publisher.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    publisher.close()
    return path


def damaged_parts(file):
    return [part for part in sqlite_file.parts(file) if sqlite_file.faults(file, part)]


def test_a_whole_file_has_no_faults(file):
    assert len(sqlite_file.parts(file)) > 10
    assert damaged_parts(file) == []
    assert sqlite_file.faults(file, "dropped_meanwhile") == []


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("published_document", Page.INTERIOR_TABLE),
        ("published_document", Page.LEAF_TABLE),
        ("published_document_key", Page.LEAF_INDEX),
        ("published_facet", Page.LEAF_INDEX),
    ],
)
def test_a_page_whose_head_is_damaged_is_found(file, table, kind):
    number = pages(file, table, kind)[0]
    damage(file, number, at=3, content=b"\xff\xff")  # the number of cells
    assert damaged_parts(file)


def test_a_unique_index_that_lacks_a_row_is_found_and_mended(file):
    """The structure is whole, so that only the comparison of index and table can tell."""
    change_behind_index(file, "published_document_key", "DELETE FROM published_document WHERE key = 'company-7'")
    assert "published_document" in damaged_parts(file)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as own:
        sqlite_file.rebuild_indexes(own, "published_document")
        sqlite_file.rebuild_indexes(own, "dropped_meanwhile")
    assert "published_document" not in damaged_parts(file)


@pytest.mark.parametrize("index", ["published_text_company", "published_fact_company"])
def test_damaged_words_of_a_search_index_are_found_without_the_lock_of_writers_and_mended(file, index):
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as own:
        own.execute(
            f"UPDATE {index}_data SET block = zeroblob(length(block)) WHERE id = (SELECT max(id) FROM {index}_data)"
        )
        own.execute("BEGIN IMMEDIATE")  # a writer at work
        assert damaged_parts(file) == [index]
        own.execute("COMMIT")
        sqlite_file.rebuild_indexes(own, index)
    assert damaged_parts(file) == []


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to have a head" * 40])
def test_a_file_that_is_no_database_is_found(tmp_path, content):
    file = tmp_path / "published.sqlite3"
    file.write_bytes(content)
    if content:
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            sqlite_file.parts(file)
        assert sqlite_file.faults(file, sqlite_file.WHOLE) == ["file is not a database"]
    else:
        assert sqlite_file.parts(file) == [sqlite_file.WHOLE]


def test_a_truncated_file_is_found(file):
    with file.open("r+b") as content:
        content.truncate(file.stat().st_size // 2)
    assert sqlite_file.faults(file, sqlite_file.WHOLE)
