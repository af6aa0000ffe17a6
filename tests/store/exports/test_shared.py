"""Nodes that share a store list the same export files, and each serves whatever another lists."""

import gzip
import sqlite3
from contextlib import closing

import msgspec
import pytest

from make.asgi import Client
from make.published import Publisher, company, person
from muniment.api.application import Api
from muniment.config import Config
from muniment.schema.objects import registry_schema
from muniment.store.exports import shared as shared_module
from muniment.store.exports.exports import Exports
from muniment.store.exports.shared import FILES, SETS, NotKnownYet, SharedExports
from muniment.store.reader import Reader

SCHEMA = registry_schema("USD")


class MemoryStore:
    """A blob store whose *fault* stops it."""

    def __init__(self):
        self.blobs = {}
        self.fault = False
        self.asked = 0

    def _ask(self):
        self.asked += 1
        if self.fault:
            raise OSError("the store does not answer")

    def write(self, key, chunks):
        self._ask()
        self.blobs[key] = b"".join(chunks)

    def read(self, key):
        self._ask()
        if key not in self.blobs:
            raise FileNotFoundError(key)
        return iter([self.blobs[key]])

    def keys(self, prefix):
        self._ask()
        return [key for key in self.blobs if key.startswith(prefix)]

    def delete(self, key):
        self._ask()
        self.blobs.pop(key, None)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "muniment.sqlite3")
    made.publish(company(1), person(1))
    yield made
    made.close()


@pytest.fixture
def node(tmp_path, store, publisher):
    def make(name, **options):
        return Exports(tmp_path / name, tmp_path / "muniment.sqlite3", SCHEMA, shared=SharedExports(store), **options)

    return make


def names(exports):
    return sorted(file.name for file in exports.files())


def test_a_node_lists_what_another_has_made_and_makes_nothing_within_the_interval(node, publisher):
    first, second = node("first"), node("second")
    assert first.make() is True
    publisher.publish(company(2))
    assert second.make() is False
    assert second.files() == first.files()
    for name in names(first):
        assert second.find(name).path.read_bytes() == first.find(name).path.read_bytes()


def test_after_the_interval_one_node_makes_new_files_and_the_other_takes_them(node, publisher):
    first, second = node("first", interval_s=0.001), node("second", interval_s=0.001)
    first.make()
    publisher.publish(company(2))
    assert second.make() is True
    assert first.make() is False
    assert first.files() == second.files()
    assert first.files()[0].edition == 3


def test_a_node_serves_a_file_that_only_another_lists(node, store, publisher, tmp_path):
    behind = node("exports")
    behind.make()
    reader = Reader(tmp_path / "muniment.sqlite3")
    client = Client(Api(reader, Config({}, data=tmp_path), SCHEMA, shared=SharedExports(store)))
    publisher.publish(company(2))
    ahead = node("ahead", interval_s=0.001)
    assert ahead.make() is True
    for file in ahead.files():
        answer = client.ask(f"/exports/{file.name}")
        assert answer.body == ahead.find(file.name).path.read_bytes()
        assert answer.headers["etag"] == f'"{file.sha256}"'
    assert {each["edition"] for each in client.ask("/api/v1/exports").json["data"]} == {2}
    reader.close()


def test_files_are_listed_when_they_are_in_the_store_only(node, store):
    store.fault = True
    alone = node("alone")
    with pytest.raises(OSError, match="does not answer"):
        alone.make()
    assert alone.files() == []
    store.fault = False
    assert alone.make() is True
    store.fault = True
    assert len(alone.files()) > 6
    assert all(alone.find(name) for name in names(alone))


def test_without_the_store_a_file_of_another_node_is_unavailable_and_own_ones_are_served(node, store, tmp_path):
    node("exports").make()
    reader = Reader(tmp_path / "muniment.sqlite3")
    client = Client(Api(reader, Config({}, data=tmp_path), SCHEMA, shared=SharedExports(store)))
    store.fault = True
    assert client.ask("/exports/companies-latest.csv.gz").status == 200
    assert client.ask("/exports/companies-9-00000000.csv.gz").status == 503
    reader.close()


def test_a_file_is_served_as_soon_as_another_node_lists_it(node, store, publisher):
    first, second = node("first", interval_s=0.001), node("second")
    for number in range(2, 6):
        first.make()
        assert second.fetch(names(first)[0]), "also shortly after the store was asked for another name"
        publisher.publish(company(number))


def test_names_that_no_node_lists_reach_the_store_at_a_bounded_rate(node, store, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_module, "LOOKS_A_MINUTE", 0.001)
    exports = node("first")
    exports.make()
    store.asked = 0
    for number in range(shared_module.LOOKS_AT_ONCE):
        assert exports.fetch(f"companies-2-{number:08x}.csv.gz") is None
    with pytest.raises(NotKnownYet):
        exports.fetch("companies-2-ffffffff.csv.gz")
    assert store.asked == shared_module.LOOKS_AT_ONCE
    assert exports.fetch(names(exports)[0]), "a known name"
    assert not exports.may_fetch("manifest.json")
    assert not exports.may_fetch("../people-2-00000000.csv.gz")


def test_who_asks_for_an_unknown_name_when_others_have_asked_for_many_is_told_to_try_again(
    node, store, tmp_path, monkeypatch
):
    monkeypatch.setattr(shared_module, "LOOKS_AT_ONCE", 1)
    node("exports").make()
    reader = Reader(tmp_path / "muniment.sqlite3")
    client = Client(Api(reader, Config({}, data=tmp_path), SCHEMA, shared=SharedExports(store)))
    assert client.ask("/exports/companies-2-00000000.csv.gz").status == 404
    answer = client.ask("/exports/companies-2-00000001.csv.gz")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    reader.close()


def test_a_damaged_file_in_the_store_is_not_served(node, store):
    first = node("first")
    first.make()
    name = names(first)[0]
    store.blobs[FILES + name] = gzip.compress(b"other")
    second = node("second")
    with pytest.raises(OSError, match="damaged export"):
        second.make()
    assert second.find(name) is None
    assert not (second._folder / name).exists()


def test_an_erased_person_leaves_the_store_and_every_node(node, store, publisher, tmp_path):
    reader = Reader(tmp_path / "muniment.sqlite3")
    first, second = node("first", oldest=reader.erased), node("second", oldest=reader.erased)
    first.make()
    second.make()
    old = set(names(first))
    publisher.unlist("person", "person-1")
    publisher.unlist("person", "erased:1")
    reader.refresh()
    assert first.files() == second.files() == []
    assert second.fetch(min(old)) is None
    assert first.make() is True
    assert not {FILES + name for name in old} & set(store.blobs)
    assert second.make() is False
    assert second.files() == first.files()
    reader.close()


def test_the_store_keeps_the_current_files_the_former_ones_and_those_of_ten_minutes(
    node, store, publisher, monkeypatch
):
    exports = node("first", interval_s=0.001)
    made = []
    for number in range(2, 6):
        publisher.publish(company(number))
        exports.make()
        made.append(names(exports))
    assert len(store.keys(SETS)) == 4
    monkeypatch.setattr(shared_module, "KEPT_FOR", shared_module.KEPT_FOR * 0)
    publisher.publish(company(9))
    exports.make()
    assert len(store.keys(SETS)) == 2
    assert {key.removeprefix(FILES) for key in store.keys(FILES)} == {*made[-1], *names(exports)}


def test_files_of_another_history_are_replaced_at_once(node, store, publisher):
    first = node("first")
    first.make()
    publisher.connection.execute("UPDATE published_meta SET epoch = 'restored', edition = 1")
    publisher.connection.commit()
    second = node("second")
    assert second.make() is True
    assert {file.epoch for file in second.files()} == {"restored"}
    assert first.make() is False
    assert first.files() == second.files()
    assert len(store.keys(SETS)) == 1


def test_files_that_a_node_made_before_it_shared_a_store_are_shared(publisher, store, tmp_path):
    Exports(tmp_path / "alone", tmp_path / "muniment.sqlite3", SCHEMA).make()
    shared = Exports(tmp_path / "alone", tmp_path / "muniment.sqlite3", SCHEMA, shared=SharedExports(store))
    assert shared.make() is False
    assert {key.removeprefix(FILES) for key in store.keys(FILES)} == set(names(shared))


def test_a_replaced_list_in_the_folder_is_rebuilt_from_the_store(node, tmp_path):
    exports = node("first")
    exports.make()
    listed = names(exports)
    (tmp_path / "first" / "manifest.json").write_bytes(b"")
    with closing(sqlite3.connect(tmp_path / "muniment.sqlite3")):
        assert exports.make() is False
    assert names(exports) == listed


def test_nodes_that_export_the_same_edition_at_once_agree_on_one_list(node, store):
    first, second = node("first", interval_s=0.001), node("second", interval_s=0.001)
    first.make()
    late = [msgspec.structs.replace(file, at="2099-01-01T00:00:00.000000Z") for file in first.files()]
    SharedExports(store).put(late, first._folder)
    first.make()
    second.make()
    assert first.files() == second.files() == late


def test_nodes_with_different_public_urls_have_files_of_their_own(node, store, publisher):
    first, second = node("first", base_url="https://one.example"), node("second", base_url="https://two.example")
    assert first.make() is True
    assert second.make() is True
    before = first.files(), second.files()
    for _ in range(2):
        assert (first.make(), second.make()) == (False, False)
    assert (first.files(), second.files()) == before
    assert [{file.base_url for file in each.files()} for each in (first, second)] == [
        {"https://one.example"},
        {"https://two.example"},
    ]
    assert len(store.keys(SETS)) == 2
    for name in names(first):
        assert second.fetch(name).path.read_bytes() == first.find(name).path.read_bytes()


def test_sets_of_a_former_public_url_leave_the_store_after_a_day(node, store, publisher, monkeypatch):
    node("first", base_url="https://former.example").make()
    renamed = node("first", base_url="https://one.example", interval_s=0.001)
    assert renamed.make() is True
    assert {file.base_url for file in renamed.files()} == {"https://one.example"}
    assert len(store.keys(SETS)) == 2
    monkeypatch.setattr(shared_module, "OTHERS_KEPT_FOR", shared_module.OTHERS_KEPT_FOR * 0)
    publisher.publish(company(2))
    assert renamed.make() is True
    listed = [msgspec.json.decode(store.blobs[key])[0]["base_url"] for key in store.keys(SETS)]
    assert listed == ["https://one.example"] * 2
