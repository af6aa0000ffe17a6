"""A node builds its copy of the published documents again when the file is damaged, empty or gone."""

import json
import sqlite3
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import msgspec
import psycopg
import pytest

from make.published import AT, company
from make.queries import companies_by
from muniment.config import Config
from muniment.kernel.problems import Internal, Unavailable
from muniment.server.app.app import App
from muniment.server.app.registry_file import RegistryFile
from muniment.server.node_scrub import node_checks
from muniment.store import postgres_feed
from muniment.store.database import faults, node_copy
from muniment.store.published_document import PublishedEntry
from muniment.store.reader import Reader
from muniment.store.replica import Replica
from muniment.store.verifying.node_copy import build_again, compare
from services.ports import wait_until

pytestmark = pytest.mark.postgresql
COMPANIES = 300


@pytest.fixture
def source(postgres):
    postgres.drop("heal")
    url = postgres.create("heal")
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        postgres_feed.create(connection)
        documents = [company(number, body="x" * 3_000) for number in range(1, COMPANIES + 1)]
        first = postgres_feed.reserve(connection, len(documents))
        entries = [
            PublishedEntry(sequence=number, kind="company", key=each.key, change="published", at=AT, document=each)
            for number, each in enumerate(documents, first)
        ]
        postgres_feed.apply(connection, entries)
    return url


@pytest.fixture
def node(source, tmp_path, monkeypatch):
    monkeypatch.setattr(faults, "REST_S", 0.0)
    faults.damage_seen.clear()
    made = Replica(source, tmp_path / "published.sqlite3")
    made.catch_up()
    yield made
    made.close()
    faults.damage_seen.clear()


@pytest.fixture
def reader(node, tmp_path):
    made = Reader(tmp_path / "published.sqlite3", is_copy=True)
    made.tick()
    yield made
    made.close()


def shown(reader):
    return [json.loads(item)["id"] for item in reader.companies(companies_by(page_size=100)).items]


def flip_headers(path):
    """Flip the first bytes of every page but the first."""
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    (size,) = struct.unpack(">H", content[16:18])
    for page in range(size, len(content), size):
        content[page] ^= 0xFF
    path.write_bytes(content)


def test_flipped_page_headers_are_noticed_by_a_read_and_the_file_is_replaced(node, reader, tmp_path):
    path = tmp_path / "published.sqlite3"
    before = shown(reader)
    flip_headers(path)
    with pytest.raises(sqlite3.DatabaseError) as told:
        Reader(path, is_copy=True)
    problem = faults.unexpected(told.value, "r1")
    assert isinstance(problem, Unavailable)
    assert "damaged" in problem.message
    former = node_copy.identity(path)
    node.catch_up()
    assert node_copy.identity(path) != former
    assert not faults.damage_seen.is_set()
    reader.tick()
    assert shown(reader) == before
    assert reader.edition == COMPANIES


def test_a_flipped_bit_of_an_item_is_not_shown_and_the_node_takes_the_document_again(node, reader, tmp_path):
    path = tmp_path / "published.sqlite3"
    before, former = shown(reader), node_copy.identity(path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE published_item_company SET item = substr(item, 1, 40) || x'00' || substr(item, 42)")
        file.execute("UPDATE published_item_company SET item = CAST(item AS BLOB)")
        file.commit()
    with pytest.raises(faults.DamagedDocument):
        shown(reader)
    for _ in range(COMPANIES):
        assert not node.catch_up(), "the edition stays"
        reader.tick()
        try:
            assert shown(reader) == before
            break
        except faults.DamagedDocument:
            continue
    assert node_copy.identity(path) == former, "only what is damaged is written again"


def test_a_flipped_bit_of_a_body_is_not_shown_and_the_node_takes_the_document_again(source, node, reader, tmp_path):
    path = tmp_path / "published.sqlite3"
    former = node_copy.identity(path)
    with closing(sqlite3.connect(path)) as file:
        statement = "UPDATE published_document SET body = CAST(replace(body, 'xxx', 'xyx') AS BLOB)"
        file.execute(f"{statement} WHERE key = 'company-7'")
        file.commit()
    with pytest.raises(faults.DamagedDocument):
        reader.document("company", "company-7")
    assert not node.catch_up(), "the edition stays"
    reader.tick()
    assert b"xyx" not in reader.document("company", "company-7").body
    assert node_copy.identity(path) == former
    assert node.rebuilds.total() == 0
    assert compare(source, path, "", COMPANIES + 1).faults == []


def test_a_document_that_is_damaged_in_the_database_too_stops_no_replication(source, node, reader, tmp_path, caplog):
    with closing(sqlite3.connect(tmp_path / "published.sqlite3")) as file:
        file.execute("UPDATE published_document SET body = x'00' WHERE key IN ('company-7', 'company-8')")
        file.commit()
    with psycopg.connect(source, autocommit=True) as database:
        database.execute("UPDATE published_document SET document = 'garbage' WHERE key = 'company-7'")
        database.execute("DELETE FROM published_document WHERE key = 'company-8'")
        with database.transaction():
            (number,) = [postgres_feed.reserve(database, 1)]
            added = company(COMPANIES + 1)
            entry = PublishedEntry(
                sequence=number, kind="company", key=added.key, change="published", at=AT, document=added
            )
            postgres_feed.apply(database, [entry])
    for key in ("company-7", "company-8"):
        with pytest.raises(faults.DamagedDocument):
            reader.document("company", key)
    assert node.catch_up(), "the change arrives"
    reader.tick()
    assert reader.edition == COMPANIES + 1
    assert "cannot mend company company-7: it is damaged in the database, too" in caplog.text
    assert "mended: " not in caplog.text
    assert not faults.damage_seen.is_set()


def test_a_row_that_cannot_be_mended_alone_has_the_copy_built_again(node, reader, tmp_path):
    path = tmp_path / "published.sqlite3"
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE published_document SET body = x'00', facets = x'ff' WHERE key = 'company-7'")
        file.commit()
    with pytest.raises(faults.DamagedDocument):
        reader.document("company", "company-7")
    with pytest.raises(msgspec.DecodeError):
        node.catch_up()
    node.catch_up()
    reader.tick()
    assert reader.document("company", "company-7") is not None
    assert node.rebuilds["damaged"] == 1


def test_other_errors_stay_unexpected():
    assert isinstance(faults.unexpected(ValueError("x"), "r1"), Internal)
    assert isinstance(faults.unexpected(sqlite3.OperationalError("locked"), "r1"), Internal)
    assert not faults.damage_seen.is_set()


@pytest.mark.parametrize("content", [b"garbage" * 2_000, b"x", b"", None], ids=["garbage", "short", "empty", "gone"])
def test_a_node_starts_with_a_file_that_is_none(source, node, tmp_path, content):
    path = tmp_path / "other" / "published.sqlite3"
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    config = Config({}, data=path.parent, database_url=source)
    file = RegistryFile(config, App(config), on_registry=lambda: None, catch_up=lambda: True)
    file.open()
    assert file.reader is not None
    assert not file.reader.is_built
    other = Replica(source, path)
    other.catch_up()
    file.look()
    assert len(shown(file.reader)) == 100
    file.reader.close()
    other.close()


def test_a_truncated_file_is_replaced_at_the_start(source, node, tmp_path):
    path = tmp_path / "published.sqlite3"
    node.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])
    made = Replica(source, path)
    made.catch_up()
    again = Reader(path)
    assert len(shown(again)) == 100
    again.close()
    made.close()


def test_a_file_that_is_removed_while_it_is_used_comes_back(node, reader, tmp_path):
    path = tmp_path / "published.sqlite3"
    for each in path.parent.glob("published.sqlite3*"):
        each.unlink()
    assert len(shown(reader)) == 100, "the file is still open"
    node.catch_up()
    reader.tick()
    assert len(shown(reader)) == 100
    assert path.exists()


def test_a_second_process_of_the_node_follows_the_file_that_the_first_has_replaced(source, node, reader, tmp_path):
    path = tmp_path / "published.sqlite3"
    second = Replica(source, path)
    faults.damage_seen.set()
    node.catch_up()
    replaced = node_copy.identity(path)
    second.catch_up()
    assert node_copy.identity(path) == replaced
    second.close()


def test_a_scrub_that_cannot_mark_a_copy_because_its_pages_are_damaged_removes_it(node, reader, tmp_path):
    path, before = tmp_path / "published.sqlite3", shown(reader)
    flip_headers(path)
    build_again(path)
    assert not path.exists()
    node.catch_up()
    reader.tick()
    assert shown(reader) == before


def test_pages_that_are_damaged_while_the_scrub_and_the_node_build_again_are_healed(source, node, reader, tmp_path):
    before, config = shown(reader), Config({}, data=tmp_path, database_url=source)
    flip_headers(tmp_path / "published.sqlite3")
    node.start()
    with ThreadPoolExecutor(2) as scrubs:
        for done in [scrubs.submit(scrub, config) for _ in range(2)]:
            done.result(60)
    wait_until(lambda: scrub(config) == [], within_s=30, what="a whole copy")
    wait_until(lambda: reader.tick() or shown(reader) == before, within_s=60, what="the same documents")
    assert (node.edition, reader.edition) == (COMPANIES, COMPANIES)


def scrub(config):
    """Run a whole pass of the node's checks; return what is damaged, or why the file could not be read."""
    try:
        parts = [part for check in node_checks(config) for part in check.whole(mend=True)]
    except (sqlite3.OperationalError, TimeoutError) as error:  # the file is being replaced
        return [str(error)]
    return [damage for part in parts for damage in part.damages]
