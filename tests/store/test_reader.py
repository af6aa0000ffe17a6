"""The reader shows exactly what is published, at once when told and in the asked order."""

import json
import sqlite3
import threading
from contextlib import closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from make.published import AT, company, framework, ids, person
from make.queries import companies_by, frameworks_by
from muniment.schema.objects import registry_schema
from muniment.store import published
from muniment.store import reader as reader_module
from muniment.store.cache import EVERYTHING, MOST_NAMED, least, noting
from muniment.store.published import FeedAheadError, FeedGapError
from muniment.store.queries import ListQuery
from muniment.store.reader import Reader


def companies(reader, **query):
    return ids(reader.companies(companies_by(**query)))


def test_another_process_writes_and_only_what_it_changed_is_dropped(publisher, reader):
    publisher.publish(company(1), company(2), person(1))
    assert reader.refresh() is True
    assert reader.refresh() is False
    edition = reader.edition
    kept = {
        "one": (("company", "company-1"),),
        "two": (("company", "company-2"),),
        "companies": (("company", "*"),),
        "people": (("person", "*"),),
    }
    for key, depends in kept.items():
        reader.answers.put(key, key, size_bytes=10, version=edition, depends=depends)
    publisher.publish(company(1, name="Renamed"))
    assert reader.refresh() is True
    assert [key for key in kept if reader.answers.ready.get(key)] == ["two", "people"]
    assert b"Renamed" in reader.document("company", "company-1").body


def test_an_answer_read_before_a_change_is_not_kept_after_it(publisher, reader):
    publisher.publish(company(1))
    reader.refresh()
    found = reader.document("company", "company-1")
    publisher.publish(company(1, name="Renamed"))
    reader.refresh()
    reader.answers.put("one", found, size_bytes=10, version=found.version, depends=(("company", "company-1"),))
    assert reader.answers.ready.get("one") is None


READS = {
    "document": (("company", "company-1"), {("company", "company-1")}),
    "documents": (([("company", "company-1"), ("person", "x")],), {("company", "company-1"), ("person", "x")}),
    "cap_table": (("company-1", 1, 10), {("company", "company-1")}),
    "changes_of": (("person", "person-1", 5), {("person", "person-1")}),
    "changed_matches": (("company", ListQuery(), 0), {("company", "*")}),
    "companies": ((ListQuery(),), {("company", "*")}),
    "people": ((ListQuery(),), {("person", "*")}),
    "ordered": (("framework", ListQuery(), 5), {("framework", "*")}),
    "sheet_rows": (("framework", [], []), {("framework", "*")}),
    "page": (("framework", ListQuery(q="score")), {("framework", "*")}),
    "frameworks": ((), {("framework", "*")}),
    "stats": ((), {("company", "*"), ("person", "*"), ("framework", "*")}),
    "scores": (("river-score", 1, 10), {("company", "*")}),
    "keys": (("person", "", 5), {("person", "*")}),
    "facets": (("company", ListQuery(), ("type",)), {("company", "*")}),
    "suggest": (("company", ListQuery(), "a", [], 5), {("company", "*")}),
    "values": (("company", "type", 5), {("company", "*")}),
    "named_values": ((registry_schema("USD").listings["company"], "dao"), {("company", "*")}),
    "is_value": (("company", "type", "dao"), {("company", "*")}),
    "count": (("person",), {("person", "*")}),
    "nearest": (("person", "persn"), {("person", "*")}),
    "chain_after": ((1,), {EVERYTHING}),
    "has_past": ((1, None), {EVERYTHING}),
    "changes": ((0, 5), {EVERYTHING}),
    "erased": ((), {EVERYTHING}),
    "snapshot": ((), {EVERYTHING}),
}
"""What each method reads, with arguments."""
NO_READS = {
    *("close", "connection_for_details", "is_built", "is_quick", "keep_current", "place", "refresh", "renew", "tick"),
    "version",
}
"""Members of a reader that no page shows."""


@pytest.mark.parametrize("name", READS)
def test_what_is_read_is_noted_for_the_page_that_is_made_of_it(publisher, reader, name):
    publisher.publish(company(1), person(1), framework(1))
    reader.refresh()
    given, expected = READS[name]
    with noting() as noted:
        getattr(reader, name)(*given)
    assert set(least(noted)) == set(least(expected)) == expected


@pytest.mark.parametrize("name", ["edition", "modified_at", "updated_at"])
def test_what_each_publication_changes_is_noted_as_everything(reader, name):
    with noting() as noted:
        assert getattr(reader, name) is not None
    assert noted == {EVERYTHING}


def test_every_method_of_the_reader_notes_what_it_reads():
    public = {name for name in dir(Reader) if not name.startswith("_")}
    assert public - READS.keys() - NO_READS == {"edition", "modified_at", "updated_at"}


def test_a_part_of_a_page_tells_the_page_what_it_depends_on(reader):
    with noting() as page:
        with noting() as part:
            reader.count("person")
        reader.document("company", "x")
    assert part == {("person", "*")}
    assert page == {("person", "*"), ("company", "x")}
    reader.count("person")  # outside of both blocks
    assert least({*page, ("person", "ada"), ("company", "b")}) == (("company", "b"), ("company", "x"), ("person", "*"))


@pytest.mark.parametrize("count", [MOST_NAMED, MOST_NAMED + 1])
def test_a_page_of_many_documents_of_a_kind_depends_on_all_of_them(count):
    noted = {("person", str(number)) for number in range(count)} | {("company", "x")}
    assert len(least(noted)) == (count + 1 if count == MOST_NAMED else 2)


def test_caches_drop_what_has_changed_before_the_new_version_can_be_read(publisher, reader):
    shown = []
    reader.keep_current(SimpleNamespace(drop_changed=lambda version, _: shown.append((version, reader.version))))
    former = reader.version
    publisher.publish(company(1))
    reader.refresh()
    reader.renew("")
    assert shown[0] == (former, former)
    assert [before for _, before in shown[1:]] == [former, shown[1][0]]
    assert shown[-1][0] == reader.version


def test_pictures_are_addressed_with_the_present_url_of_the_instance(publisher, tmp_path):
    path = f"/pictures/{'a' * 32}-512.webp"
    said = f'the path "{path}" and "/pictures/x"'
    publisher.publish(company(1, icon=path, description=said), company(2, icon="https://elsewhere.example/pictures/a"))
    publisher.publish(framework(1, kind="score"))
    found = {}
    for base in ("", "https://registry.example", "http://127.0.0.1:9100"):
        reader = Reader(tmp_path / "published.sqlite3", base_url=base)
        detail = reader.document("company", "company-1")
        data = json.loads(detail.body)["data"]["company"]
        item = json.loads(reader.companies(companies_by()).items[1])
        assert (data["icon"], data["description"], item["icon"]) == (base + path, said, base + path)
        other = json.loads(reader.document("company", "company-2").body)["data"]["company"]
        assert other["icon"] == "https://elsewhere.example/pictures/a"
        found[base] = detail.etag
        reader.close()
    assert len(set(found.values())) == 3


def test_a_restored_backup_drops_everything(publisher, reader):
    publisher.publish(company(1))
    reader.refresh()
    reader.answers.put("one", "one", size_bytes=10, version=reader.version, depends=(("company", "company-1"),))
    publisher.connection.execute("UPDATE published_meta SET epoch = 'of a restored backup'")
    assert reader.refresh() is True
    assert reader.answers.ready.get("one") is None


def test_answers_stay_within_their_bytes_and_the_oldest_leaves(publisher, tmp_path):
    reader = Reader(tmp_path / "published.sqlite3", cache_bytes=100_000)
    for number in range(100):
        reader.answers.put(number, b"", size_bytes=5_000, version=0, depends=(("company", str(number)),))
        assert reader.answers.currsize <= 100_000
    assert reader.answers.ready.get(0) is None
    assert reader.answers.ready.get(99) == b""
    reader.answers.put("huge", b"", size_bytes=60_000, version=0, depends=())
    assert reader.answers.ready.get("huge") is None
    reader.close()


def test_statistics_follow_every_change(publisher, reader):
    assert json.loads(reader.stats().body)["data"] == {
        "total": 0,
        "projectsRaising": 0,
        "totalTreasury": "$0",
        "founders": 0,
        "frameworks": 0,
    }
    publisher.publish(company(1, raising=True, treasuryMinor=150_000_000), company(2), person(1), framework(1))
    publisher.unlist("company", "company-2")
    reader.refresh()
    assert json.loads(reader.stats().body)["data"] == {
        "total": 1,
        "projectsRaising": 1,
        "totalTreasury": "$1.5M",
        "founders": 1,
        "frameworks": 1,
    }


def test_frameworks_are_listed_in_the_order_of_first_publication(publisher, reader):
    publisher.publish(framework(2, kind="program"), framework(1), framework(3))
    reader.refresh()

    def listed(kind=None):
        return [item["frameworkId"] for item in json.loads(reader.frameworks(frameworks_by(kind=kind)).body)["data"]]

    assert listed() == ["framework-1", "framework-2", "framework-3"]
    assert listed("program") == ["framework-2"]
    assert listed("score") == ["framework-1", "framework-3"]


def test_the_feed_continues_from_a_number_and_reports_when_it_cannot(publisher, reader):
    publisher.publish(*(company(n) for n in range(1, 8)))
    reader.refresh()
    changes = reader.changes(0, 5)
    assert ([row.sequence for row in changes.rows], changes.next_after) == ([1, 2, 3, 4, 5], 5)
    assert [row.key for row in reader.changes(5, 5).rows] == ["company-6", "company-7"]
    assert (reader.changes(7, 5).rows, reader.changes(7, 5).next_after) == ([], 7)
    with pytest.raises(FeedAheadError):
        reader.changes(8, 5)
    publisher.connection.execute("DELETE FROM published_change WHERE sequence <= 3")
    with pytest.raises(FeedGapError):
        reader.changes(2, 5)
    assert reader.changes(3, 1).next_after == 4


def test_token_holders_are_paged(publisher, reader):
    publisher.publish(company(1, capTable=[{"address": f"0x{n}"} for n in range(5)]))
    found = reader.cap_table("company-1", 2, 2)
    assert ([json.loads(item)["address"] for item in found.items], found.total) == (["0x2", "0x3"], 5)
    assert reader.cap_table("company-1", 9, 2).items == []
    assert reader.cap_table("missing", 1, 2) is None


def test_near_keys_are_offered(publisher, reader):
    publisher.publish(company(1, "blue-river-trust"), company(2, "blue-harbour"), company(3, "中国电信"))
    reader.refresh()
    assert reader.nearest("company", "blue-river-trst") == ["blue-river-trust"]
    assert reader.nearest("company", "Blue Harbour")[0] == "blue-harbour"
    assert reader.nearest("company", "zzzz") == []
    assert reader.nearest("company", "") == []
    assert reader.keys("company", "blue", 10) == ["blue-harbour", "blue-river-trust"]


def test_readers_in_many_threads_see_whole_editions_while_one_writes(publisher, reader, monkeypatch):
    monkeypatch.setattr(published, "BLOCK_SPLIT", 8)
    publisher.publish(*(company(n, name="v0") for n in range(1, 40)))
    reader.refresh()
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            page = reader.companies(companies_by(page_size=100))
            names = {json.loads(item)["name"] for item in page.items}
            if len(page.items) != page.total or len(names) > 1:
                wrong.append((len(page.items), page.total, names))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for version in range(1, 25):
        publisher.publish(*(company(n, name=f"v{version}") for n in range(1, 40 + version)))
        reader.refresh()
    stop.set()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_a_held_snapshot_is_never_older_than_what_the_process_has_noticed(publisher, reader):
    publisher.publish(company(1, name="v0"))
    reader.tick()
    assert b"v0" in reader.document("company", "company-1").body
    for version in range(1, 6):
        publisher.publish(company(1, name=f"v{version}"))
        elsewhere = threading.Thread(target=reader.refresh)
        elsewhere.start()
        elsewhere.join(60)
        assert f"v{version}".encode() in reader.document("company", "company-1").body
        assert f"v{version}".encode() in reader.companies(companies_by()).items[0]
        reader.document("company", "company-1")
        assert reader.tick() is False


def test_a_held_snapshot_ends_with_the_next_tick(publisher, reader):
    publisher.publish(company(1))
    reader.tick()
    reader.document("company", "company-1")
    publisher.publish(company(2))
    reader.tick()
    publisher.publish(company(3))
    busy, written, moved = publisher.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy, written, moved) == (0, 0, 0)


def test_many_details_are_found_in_one_go_as_one_by_one(publisher, reader):
    publisher.publish(*(company(number) for number in range(1, 80)), person(3), framework(4))
    names = [
        *(("company", f"company-{number}") for number in range(1, 80)),
        ("company", "missing"),
        ("person", "person-3"),
        ("person", "company-3"),
        ("framework", framework(4).key),
        ("company", "company-1"),
    ]
    for look in (reader.refresh, reader.tick):
        look()
        found = reader.documents(names)
        assert found == {name: one for name in names if (one := reader.document(*name)) is not None}
        assert set(names) - set(found) == {("company", "missing"), ("person", "company-3")}
        assert all(json.loads(found[name].body)["data"] for name in found)
    assert reader.documents([]) == {}


_histories = count(1)


def rebuilt(publisher, *documents, edition):
    """Load another history up to the same number, as a node does after a failover."""
    database = publisher.connection
    database.execute("BEGIN IMMEDIATE")
    published.clear(database, epoch=f"build{next(_histories)}:4:feed", edition=edition)
    published.load(database, documents, at=AT)
    database.execute("COMMIT")


def test_another_history_under_the_same_number_leaves_nothing_cached(publisher, reader):
    publisher.publish(company(1, industry="Energy"), company(2))
    reader.refresh()
    energy = companies_by(industry="Energy")
    assert reader.companies(energy).total == 1
    found = reader.document("company", "company-1")
    reader.answers.put("one", found, size_bytes=10, version=found.version, depends=(("company", "company-1"),))
    edition = reader.edition
    rebuilt(publisher, company(1), company(3, industry="Energy"), company(4, industry="Energy"), edition=edition)
    reader.refresh()
    assert reader.edition == edition
    assert reader.answers.ready == {}
    assert [json.loads(item)["id"] for item in reader.companies(energy).items] == ["company-4", "company-3"]
    reader.answers.put("late", found, size_bytes=10, version=found.version, depends=())
    assert reader.answers.ready == {}, "what was read before is not cached either"


def test_counts_after_each_of_several_histories_under_one_number_are_its_own(publisher, reader):
    publisher.publish(company(1))
    reader.refresh()
    edition = reader.edition
    for number in (3, 4, 5, 6):
        with_energy = {1, number}
        history = [
            company(each, type=f"Type {each}", industry="Energy" if each in with_energy else "Water")
            for each in range(1, 7)
        ]
        rebuilt(publisher, *history, edition=edition)
        reader.refresh()
        types = reader.facets("company", companies_by(industry="Energy"), ("type",)).by_name["type"]
        assert [(each.value, each.n) for each in types.values] == [("Type 1", 1), (f"Type {number}", 1)]


def test_a_snapshot_of_the_former_history_does_not_bring_it_back(publisher, reader):
    publisher.publish(company(1))
    reader.refresh()
    with closing(sqlite3.connect(reader.path, isolation_level=None)) as late:
        late.execute("BEGIN")
        late.execute("SELECT * FROM published_meta").fetchall()
        rebuilt(publisher, company(2), edition=reader.edition)
        reader.refresh()
        version = reader.version
        former = reader._current(late)
    assert reader.version == version != former.version
    assert reader.document("company", "company-2") is not None


def test_threads_keep_more_pages_of_a_large_file(publisher, monkeypatch):
    publisher.publish(company(1))
    (file,) = (row[2] for row in publisher.connection.execute("PRAGMA database_list") if row[1] == "main")
    for least_bytes, kept_kib in ((1, 8_000), (1 << 40, 2_000)):
        monkeypatch.setattr(reader_module, "LARGE_BYTES", least_bytes)
        reader = Reader(Path(file))
        with reader.snapshot() as (connection, _):
            assert connection.execute("PRAGMA cache_size").fetchone() == (-kept_kib,)
        reader.close()
