"""A node's published file becomes what the feed on PostgreSQL says, after gaps, restores and outages too."""

import asyncio
import json
import sqlite3
import threading

import msgspec
import psycopg
import pytest
from msgspec.structs import replace

from make.published import AT, company, framework, person
from make.queries import companies_by
from muniment.config import Config
from muniment.server.process.server_process import Process
from muniment.store import postgres_feed, public_log
from muniment.store import replica as replica_module
from muniment.store.published import FeedAheadError, FeedDivergedError, put_stamp
from muniment.store.published_document import PublishedEntry
from muniment.store.reader import Reader
from muniment.store.replica import Replica
from services.ports import wait_until

pytestmark = pytest.mark.postgresql


class Feed:
    """Publishes documents into PostgreSQL, one transaction a call."""

    def __init__(self, url):
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)
        with self.connection.transaction():
            postgres_feed.create(self.connection)

    def publish(self, *documents, unlist=()):
        with self.connection.transaction():
            changes = [("company", key, None) for key in unlist] + [(d.kind, d.key, d) for d in documents]
            first = postgres_feed.reserve(self.connection, len(changes))
            postgres_feed.apply(
                self.connection,
                [
                    PublishedEntry(
                        sequence=sequence,
                        kind=kind,
                        key=key,
                        change="updated" if document else "unlisted",
                        at=AT,
                        document=document,
                        fields=("bio",) if document else None,
                    )
                    for sequence, (kind, key, document) in enumerate(changes, first)
                ],
            )
        return first + len(changes) - 1


@pytest.fixture
def source(postgres):
    postgres.drop("follow")
    made = Feed(postgres.create("follow"))
    yield made
    made.connection.close()


@pytest.fixture
def follower(source, tmp_path):
    made = Replica(source.url, tmp_path / "published.sqlite3", poll_s=0.02)
    yield made
    made.close()


@pytest.fixture
def reader(follower, tmp_path):
    made = Reader(tmp_path / "published.sqlite3")
    yield made
    made.close()


def shown(reader):
    reader.refresh()
    return [json.loads(item)["id"] for item in reader.companies(companies_by(page_size=100)).items]


def test_the_file_holds_what_the_feed_published(source, follower, reader):
    edition = source.publish(company(1), company(2), person(1), framework(1))
    assert follower.catch_up() is True
    assert follower.catch_up() is False
    assert shown(reader) == ["company-2", "company-1"]
    assert reader.edition == edition == 4
    source.publish(company(1, name="Renamed"), unlist=["company-2"])
    follower.catch_up()
    assert shown(reader) == ["company-1"]
    assert b"Renamed" in reader.document("company", "company-1").body
    rows = reader.changes(4, 10).rows
    assert [(row.change, row.fields) for row in rows] == [("unlisted", None), ("updated", ("bio",))]


def test_every_node_has_the_stamps_of_the_source(source, follower, reader):
    for stamp in ("2026-01-05T10:00:04Z", "2026-01-05T10:00:06Z"):
        edition = source.publish(replace(company(1), modified_at=stamp))
        put_stamp(source.connection, edition, stamp)
        follower.catch_up()
        reader.refresh()
        assert reader.stats().modified_at == reader.document("company", "company-1").modified_at == stamp


def test_an_erased_person_leaves_the_feed_the_index_and_the_file_of_a_node(source, follower, reader, tmp_path):
    for version in range(3):
        source.publish(person(1, name=f"Ottoline Ferrisbrook {version}"), company(1))
    follower.catch_up()
    file = tmp_path / "published.sqlite3"
    assert b"Ottoline" in content(file)
    with source.connection.transaction():
        sequence = postgres_feed.reserve(source.connection, 2)
        entries = [
            PublishedEntry(sequence=number, kind="person", key=key, change="unlisted", at=AT)
            for number, key in ((sequence, "person-1"), (sequence + 1, "erased:1"))
        ]
        postgres_feed.apply(source.connection, entries)
        source.connection.execute("UPDATE published_change SET key = 'erased:1' WHERE kind = 'person' AND sequence < 6")
    follower.catch_up()
    reader.refresh()
    rows = [(row.key, row.change) for row in reader.changes(0, 100).rows if row.kind == "person"]
    assert rows == [*[("erased:1", "updated")] * 3, ("person-1", "unlisted"), ("erased:1", "unlisted")]
    reader.tick()
    source.connection.execute("UPDATE published_change SET key = 'erased:1' WHERE key = 'person-1'")
    source.publish(company(2))
    with source.connection.transaction():
        number = postgres_feed.reserve(source.connection, 1)
        entry = PublishedEntry(sequence=number, kind="person", key="erased:1", change="unlisted", at=AT)
        postgres_feed.apply(source.connection, [entry])
    follower.catch_up()
    reader.refresh()
    assert {row.key for row in reader.changes(0, 100).rows if row.kind == "person"} == {"erased:1"}
    assert reader.erased() == number
    for word in (b"ottoline", b"ferrisbrook", b"person-1"):
        assert word not in content(file).lower()


def content(file):
    """Return the bytes of a database and of its write-ahead log."""
    return b"".join(each.read_bytes() for each in sorted(file.parent.glob(f"{file.name}*")))


def test_a_document_that_changed_often_is_taken_as_it_is_now(source, follower, reader):
    for version in range(5):
        source.publish(company(1, name=f"v{version}"))
    source.publish(unlist=["company-1"])
    source.publish(company(1, name="again"), company(2))
    source.publish(unlist=["company-2"])
    follower.catch_up()
    assert shown(reader) == ["company-1"]
    assert b"again" in reader.document("company", "company-1").body
    assert len(reader.changes(0, 100).rows) == 9


def test_the_node_is_told_that_its_file_has_changed(source, tmp_path):
    reader, shown = None, []
    told = Replica(
        source.url, tmp_path / "told.sqlite3", poll_s=0.02, on_moved=lambda: shown.append(reader and reader.refresh())
    )
    told.start()
    reader = Reader(tmp_path / "told.sqlite3")
    edition = source.publish(company(1, "quay"))
    wait_until(lambda: reader.edition == edition, within_s=60, what="the change in the reader")
    assert True in shown
    told.close()
    reader.close()


def test_a_gap_in_the_feed_rebuilds_the_file(source, follower, reader):
    source.publish(company(1))
    follower.catch_up()
    source.publish(company(2), company(3), unlist=["company-1"])
    source.connection.execute("DELETE FROM published_change WHERE sequence = 3")
    assert follower.catch_up() is True
    assert shown(reader) == ["company-3", "company-2"]
    assert reader.edition == 4
    source.publish(company(4))
    source.connection.execute("DELETE FROM published_change WHERE sequence <= 4")
    source.publish(company(5))
    follower.catch_up()
    assert shown(reader) == ["company-5", "company-4", "company-3", "company-2"]


def test_pruned_changes_rebuild_the_file(source, follower, reader):
    source.publish(company(1), company(2))
    source.connection.execute("DELETE FROM published_change WHERE sequence <= 1")
    follower.catch_up()
    assert shown(reader) == ["company-2", "company-1"]


def test_a_feed_with_another_identity_is_copied_again(source, follower, reader):
    source.publish(company(1))
    follower.catch_up()
    epoch = postgres_feed.head(source.connection).epoch
    postgres_feed.renew_epoch(source.connection)
    assert postgres_feed.head(source.connection).epoch != epoch
    postgres_feed.check(source.connection)
    assert follower.catch_up() is True
    reader.refresh()
    assert reader.changes(0, 9).feed_id == postgres_feed.head(source.connection).epoch.partition(":")[2]
    assert shown(reader) == ["company-1"]


class Dump:
    """The feed as it is now, to be restored over a later one."""

    PREFIX = "dump_"
    TABLES = (
        *("published_edition", "published_document", "published_change", "published_chain"),
        *("published_log", "published_leaf", "published_tile"),
    )

    def __init__(self, feed):
        self.feed = feed
        for table in self.TABLES:
            feed.connection.execute(f"CREATE TABLE {self.PREFIX}{table} AS TABLE {table}")

    def restore(self):
        with self.feed.connection.transaction():
            for table in self.TABLES:
                self.feed.connection.execute(f"TRUNCATE {table}")
                self.feed.connection.execute(f"INSERT INTO {table} TABLE {self.PREFIX}{table}")


class Newest(Dump):
    """The feed of the primary, while another server is asked."""

    PREFIX = "newest_"


def content_of(feed):
    with feed.connection.transaction():
        return sorted((each.kind, each.key, each.body) for each in postgres_feed.documents(feed.connection))


@pytest.mark.parametrize("others", [0, 1, 2, 5], ids=["behind", "still behind", "the same number", "beyond it"])
def test_a_running_node_heals_from_a_history_that_the_database_no_longer_has(source, follower, reader, others, caplog):
    source.publish(company(1), company(2))
    dump = Dump(source)
    feed_id = postgres_feed.head(source.connection).epoch
    follower.start()
    lost = source.publish(company(2, name="Lost"), company(3))
    wait_until(lambda: follower.edition == lost, within_s=60, what="the changes that will be lost")
    taken, kept = (reader.changes(number - 1, 1).chain for number in (lost, 2))
    dump.restore()
    for number in range(others):
        source.publish(company(1, name=f"Other {number}"))
    reference = content_of(source)

    def healed():
        assert reader.document("company", "company-1") is not None, "reads never fail"
        reader.refresh()
        names = [("company", key) for key in shown(reader)]
        return sorted((*name, found.body) for name, found in reader.documents(names).items()) == reference

    wait_until(healed, within_s=60, what="the history of the database")
    assert follower.rebuilds["diverged"] == 1
    assert "another history" in caplog.text
    assert public_log.state_digest(follower._file) == state_of(source)
    if others:
        assert reader.changes(2, 100, kept).rows[0].sequence == 3
    with pytest.raises(FeedDivergedError if lost <= 2 + others else FeedAheadError):
        reader.changes(lost, 100, taken)
    wait_until(
        lambda: feed_id != f"{postgres_feed.SCHEMA_VERSION}:{reader.changes(0, 1).feed_id}",
        within_s=60,
        what="the new identity, by which clients without a chain are told",
    )
    source.publish(company(9))
    wait_until(lambda: "company-9" in shown(reader), within_s=60, what="the next change")
    assert dict(follower.rebuilds) == {"damaged": 0, "diverged": 1, "gap": 0}


def test_of_two_nodes_one_renews_the_feed_and_the_other_takes_its_identity(source, follower, reader, tmp_path):
    other = Replica(source.url, tmp_path / "other.sqlite3", poll_s=0.02)
    source.publish(company(1))
    dump, epoch = Dump(source), postgres_feed.head(source.connection).epoch
    source.publish(company(2, name="Lost"))
    try:
        assert follower.catch_up() is other.catch_up() is True
        dump.restore()
        source.publish(company(2, name="Kept"))
        assert follower.catch_up() is True
        renewed = postgres_feed.head(source.connection).epoch
        assert renewed != epoch
        assert follower.catch_up() is True
        other.catch_up()
        assert other.catch_up() is follower.catch_up() is False
        assert postgres_feed.head(source.connection).epoch == renewed, "once for all nodes"
        assert dict(follower.rebuilds) == {"damaged": 0, "diverged": 1, "gap": 0}
        reader.refresh()
        assert renewed.endswith(reader.changes(0, 1).feed_id)
        assert b"Kept" in reader.document("company", "company-2").body
    finally:
        other.close()


def test_a_node_that_only_read_a_standby_which_lagged_does_not_renew_the_feed(source, follower):
    source.publish(company(1))
    dump = Dump(source)
    source.publish(company(2))
    follower.catch_up()
    epoch, newest = postgres_feed.head(source.connection).epoch, Newest(source)
    dump.restore()
    source.connection.execute(f"ALTER DATABASE {source.connection.info.dbname} SET default_transaction_read_only = on")
    assert follower.catch_up() is True
    assert follower.edition == 1
    source.connection.execute(f"ALTER DATABASE {source.connection.info.dbname} RESET default_transaction_read_only")
    newest.restore()
    follower._renew_at = 0.0
    assert follower.catch_up() is True
    assert follower.edition == 2
    assert follower._lost is None
    assert postgres_feed.head(source.connection).epoch == epoch


def state_of(feed):
    with feed.connection.transaction():
        return public_log.state_digest(feed.connection)


def test_documents_that_were_rendered_again_without_an_entry_are_copied_again(source, follower, reader):
    source.publish(company(1))
    follower.catch_up()
    before = reader.changes(0, 1).chain
    with source.connection.transaction():
        changed = company(1, name="Rendered again")
        source.connection.execute("UPDATE published_document SET document = %s", (msgspec.msgpack.encode(changed),))
        edition = postgres_feed.head(source.connection).edition
        public_log.begin_chain(source.connection, edition, public_log.continue_log(source.connection, edition))
    assert follower.catch_up() is True
    reader.refresh()
    assert b"Rendered again" in reader.document("company", "company-1").body
    with pytest.raises(FeedDivergedError):
        reader.changes(1, 1, before)
    assert follower.catch_up() is True, "the new identity"
    assert follower.catch_up() is False


def test_a_file_without_a_chain_is_rebuilt_once(source, follower, reader, caplog):
    source.publish(company(1))
    follower.catch_up()
    follower._file.execute("DELETE FROM published_chain")
    source.publish(company(2))
    follower.catch_up()
    assert dict(follower.rebuilds) == {"damaged": 0, "diverged": 0, "gap": 1}
    assert None not in [row.chain for row in reader.changes(0, 9).rows]
    assert "another history" not in caplog.text


def test_while_the_source_does_not_answer_an_unknown_past_is_neither_refused_nor_continued(source, follower, tmp_path):
    source.publish(company(1))
    follower.catch_up()
    reader = Reader(tmp_path / "published.sqlite3", catch_up=lambda: False)
    found = reader.changes(1, 9, "0" * 64)
    reader.close()
    assert (found.rows, found.next_after, found.chain) == ([], 1, None)


def test_two_processes_of_a_node_may_follow_into_one_file(source, follower, reader, tmp_path):
    second = Replica(source.url, tmp_path / "published.sqlite3", poll_s=0.01)
    follower.start()
    second.start()
    for number in range(1, 40):
        edition = source.publish(company(number))
    wait_until(lambda: follower.edition == edition, within_s=60, what="the file at the feed's edition")
    second.close()
    assert len(shown(reader)) == 39
    assert len(reader.changes(0, 100).rows) == 39


def test_writers_at_once_leave_no_gap_and_the_file_ends_as_the_feed(source, follower, reader):
    follower.start()

    def write(part):
        own = Feed(source.url)
        for number in range(20):
            own.publish(company(part * 100 + number), company(999, name=f"by {part} {number}"))
        own.connection.close()

    threads = [threading.Thread(target=write, args=(part,)) for part in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wait_until(lambda: follower.edition == 160, within_s=60, what="the file at the feed's edition")
    assert len(shown(reader)) == 81
    ((kept,),) = source.connection.execute(
        "SELECT document FROM published_document WHERE key = 'company-999'"
    ).fetchall()
    assert reader.document("company", "company-999").body == postgres_feed._decoder.decode(kept).body


def test_reads_continue_while_postgresql_is_down_and_replication_resumes(source, follower, reader, postgres):
    source.publish(company(1))
    follower.start()
    wait_until(lambda: follower.edition == 1, within_s=60, what="the first edition")
    source.connection.execute("CHECKPOINT")  # the cluster of the tests may lose what no checkpoint has kept
    postgres.stop()
    try:
        assert shown(reader) == ["company-1"]
        with pytest.raises(psycopg.OperationalError):
            follower.catch_up()
    finally:
        postgres.start()
    again = Feed(source.url)
    again.publish(company(2))
    again.connection.close()
    wait_until(lambda: follower.edition == 2, within_s=60, what="the edition after the outage")
    assert shown(reader) == ["company-2", "company-1"]


def test_a_file_that_cannot_be_opened_is_not_tried_without_a_pause(tmp_path, monkeypatch):
    tries = []

    def broken(*_, **__):
        tries.append(True)
        message = "attempt to write a readonly database"
        raise sqlite3.OperationalError(message)

    monkeypatch.setattr(replica_module, "Replica", broken)
    process = Process(Config({}, data=tmp_path, database_url="postgresql://unknown@127.0.0.1:1/none"))
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(process._follow(), 0.3))
    process.bridge.close()
    assert len(tries) == 1
