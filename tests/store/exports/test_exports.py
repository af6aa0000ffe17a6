"""Whole-registry files show one edition exactly, replace each other, and are never half there."""

import csv
import gzip
import hashlib
import io
import json
import sqlite3
import time
from contextlib import closing

import pytest

from make.asgi import Client
from make.published import Publisher, company, framework, person
from muniment.api.application import Api
from muniment.config import Config
from muniment.schema.objects import registry_schema
from muniment.store import public_log, published
from muniment.store.exports import exports as exports_module
from muniment.store.exports.exports import Exports, Stopped
from muniment.store.exports.files import latest_name
from muniment.store.reader import Reader
from muniment.store.tables.form import Form
from services.ports import wait_until

SCHEMA = registry_schema("USD")
FILES = 7 + len(Form(SCHEMA).tables) - 3
"""Two of each kind, the tables, and a CSV of each table that is not of a kind."""


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "muniment.sqlite3")
    made.publish(
        company(2, day=5), company(1, day=9, name="=cmd()", themes=["a", "b"]), person(1), framework(1, kind="program")
    )
    yield made
    made.close()


@pytest.fixture
def exports(tmp_path, publisher):
    return Exports(tmp_path / "exports", tmp_path / "muniment.sqlite3", SCHEMA)


def text_of(exports, name):
    """Return the content of the newest edition of a file, such as ``companies.csv``."""
    kind, form = name.split(".")
    return gzip.decompress(exports.find(f"{kind}-latest.{form}.gz").path.read_bytes()).decode()


def names_of(exports):
    return {latest_name(file.name).replace("-latest", "").removesuffix(".gz"): file.name for file in exports.files()}


def test_files_hold_every_document_oldest_publication_first(exports):
    assert exports.files() == []
    assert exports.make() is True
    files = {file.name: file for file in exports.files()}
    assert list(names_of(exports))[:6] == [
        f"{kind}.{form}" for kind in ("companies", "people", "frameworks") for form in ("jsonl", "csv")
    ]
    lines = [json.loads(line) for line in text_of(exports, "companies.jsonl").splitlines()]
    assert [line["company"]["id"] for line in lines] == ["company-1", "company-2"]
    (framework_line,) = text_of(exports, "frameworks.jsonl").splitlines()
    assert json.loads(framework_line)["framework"]["frameworkId"] == "framework-1"
    for name, file in files.items():
        content = exports.find(name).path.read_bytes()
        assert (file.size_bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        if name in list(files)[:6]:
            assert file.rows == (2 if name.startswith("companies") else 1)


def test_the_tables_are_one_file_of_the_same_edition_and_each_list_is_a_csv(exports, publisher, tmp_path):
    publisher.publish(company(3, name="=run()", themes=["a", "=b"]))
    publisher.unlist("company", "company-2")
    exports.make()
    file = next(file for file in exports.files() if file.name.startswith("tables-"))
    whole = tmp_path / "copy.sqlite"
    whole.write_bytes(gzip.decompress(exports.find("tables-latest.sqlite.gz").path.read_bytes()))
    with closing(sqlite3.connect(whole)) as copy:
        assert copy.execute("SELECT edition FROM _followed").fetchone() == (file.edition,)
        assert copy.execute("SELECT slug, name FROM companies ORDER BY slug").fetchall() == [
            ("company-1", "=cmd()"),
            ("company-3", "=run()"),
        ]
        assert copy.execute("SELECT max(sequence) FROM changes").fetchone() == (file.edition,)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        names = [name for (name,) in copy.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        own = [name for name in names if not name.startswith(("_", "sqlite"))]
        counts = [copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in own]
    assert "company-2" not in text_of(exports, "themes.csv")
    assert file.rows == sum(counts)
    themes = list(csv.DictReader(io.StringIO(text_of(exports, "themes.csv"))))
    assert [(row["company"], row["ordinal"], row["theme"]) for row in themes if row["company"] == "company-3"] == [
        ("company-3", "1", "a"),
        ("company-3", "2", "'=b"),
    ]
    assert {"positions.csv", "proposals.csv", "holders.csv", "changes.csv"} < set(names_of(exports))
    assert not list((tmp_path / "exports").glob("*.part"))


def test_two_nodes_write_the_same_tables(publisher, tmp_path):
    made = []
    for node in ("one", "two"):
        exports = Exports(tmp_path / node, tmp_path / "muniment.sqlite3", SCHEMA)
        exports.make()
        made.append([file.name for file in exports.files()])
    assert made[0] == made[1]


def test_files_have_the_addresses_of_pictures_and_are_made_again_for_another_url(publisher, tmp_path):
    path = f"/pictures/{'a' * 32}-512.webp"
    publisher.publish(company(3, icon=path))
    for base in ("https://registry.example", "https://other.example"):
        made = Exports(tmp_path / "exports", tmp_path / "muniment.sqlite3", SCHEMA, base_url=base)
        assert made.make() is True
        assert made.make() is False
        for form in ("jsonl", "csv"):
            assert base + path in text_of(made, f"companies.{form}")


def test_spreadsheets_get_no_formula(exports):
    exports.make()
    text = text_of(exports, "companies.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["name"] == "'=cmd()"
    assert rows[0]["themes"] == "a; b"
    assert rows[1]["createdAt"] == "March 2024"


def test_a_spreadsheet_has_the_exact_treasury_in_columns(exports, publisher):
    amount = {"amount": "1249999.99", "currency": "USD"}
    publisher.publish(company(3, treasuryAmount=amount, listedAt="2024-03-31"))
    exports.make()
    text = text_of(exports, "companies.csv")
    first, *_, last = csv.DictReader(io.StringIO(text))
    assert (last["treasuryAmount.amount"], last["treasuryAmount.currency"]) == ("1249999.99", "USD")
    assert last["listedAt"] == "2024-03-31"
    assert first["treasuryAmount.amount"] == ""


def test_export_files_are_rebuilt_after_a_change_only_and_old_ones_are_removed_later(exports, publisher):
    exports.make()
    assert exports.make() is False
    first = names_of(exports)["companies.csv"]
    publisher.publish(company(3))
    assert exports.make() is True
    assert {file.edition for file in exports.files()} == {5}
    second = names_of(exports)["companies.csv"]
    assert exports.find(first).file.is_former
    publisher.publish(company(4))
    exports.make()
    assert exports.find(first) is None
    assert exports.find(second) is not None


def test_a_making_that_is_stopped_leaves_no_file(exports, tmp_path):
    exports.close()
    with pytest.raises(Stopped):
        exports.make()
    assert exports.files() == []
    assert not list((tmp_path / "exports").glob("companies-*.gz"))


def test_files_with_an_erased_person_are_withheld_at_once_then_deleted_and_replaced(publisher, tmp_path, monkeypatch):
    monkeypatch.setattr(exports_module, "ERASURE_EVERY_S", 0.02)
    monkeypatch.setattr(exports_module, "FIRST_AFTER_S", 0.02)
    reader = Reader(tmp_path / "muniment.sqlite3")
    made = Exports(tmp_path / "exports", tmp_path / "muniment.sqlite3", SCHEMA, oldest=reader.erased)
    made.make()
    first = names_of(made)["people.jsonl"]
    publisher.unlist("person", "person-1")
    made.make()
    second = names_of(made)["people.jsonl"]
    assert made.find(first) is not None
    publisher.unlist("person", "erased:1")
    reader.refresh()
    assert made.files() == []
    assert made.find(first) is None
    assert made.find(second) is None
    made.start()
    wait_until(lambda: len(made.files()) == FILES, within_s=60, what="the files of the new edition")
    names = sorted(path.name for path in (tmp_path / "exports").glob("people-*"))
    assert names == sorted(name for name in names_of(made).values() if name.startswith("people"))
    assert not {first, second} & set(names)
    made.close()
    reader.close()


def test_a_node_that_is_being_built_makes_no_files_of_an_empty_registry(tmp_path):
    file = tmp_path / "published.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None)) as own:
        published.prepare_copy(own)
    assert Exports(tmp_path / "exports", file, SCHEMA).make() is False


def test_the_files_of_a_new_node_are_made_soon_after_it_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(exports_module, "FIRST_AFTER_S", 0.02)
    file = tmp_path / "published.sqlite3"
    made = Exports(tmp_path / "exports", file, SCHEMA)
    with closing(sqlite3.connect(file, isolation_level=None)) as own:
        own.execute("PRAGMA journal_mode=WAL")
        published.prepare_copy(own)
        made.start()
        time.sleep(0.2)
        assert made.files() == []
        own.execute("BEGIN IMMEDIATE")
        published.clear(own, epoch="built", edition=7)
        own.execute("COMMIT")
        wait_until(lambda: len(made.files()) == FILES, within_s=60, what="the making of files")
    made.close()


def test_a_registry_that_is_loaded_after_the_start_has_files_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(exports_module, "FIRST_AFTER_S", 0.02)
    publisher = Publisher(tmp_path / "muniment.sqlite3")
    made = Exports(tmp_path / "exports", tmp_path / "muniment.sqlite3", SCHEMA, interval_s=3600)
    made.start()
    wait_until(lambda: len(made.files()) == FILES, within_s=60, what="the files of the empty registry")
    publisher.publish(company(1), person(1), company(2))
    wait_until(lambda: made.files()[0].edition == 3, within_s=60, what="the files of the loaded registry")
    assert {latest_name(file.name): file.rows for file in made.files()}["companies-latest.jsonl.gz"] == 2
    made.close()
    publisher.close()


def test_the_first_rows_of_a_registry_that_was_set_up_before_have_files_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(exports_module, "FIRST_AFTER_S", 0.02)
    publisher = Publisher(tmp_path / "muniment.sqlite3")
    publisher.publish(company(1))
    publisher.unlist("company", company(1).key)
    made = Exports(tmp_path / "exports", tmp_path / "muniment.sqlite3", SCHEMA, interval_s=3600)
    made.start()
    wait_until(lambda: len(made.files()) == FILES, within_s=60, what="the files of the empty registry")
    publisher.publish(company(2))
    wait_until(lambda: any(file.rows for file in made.files()), within_s=60, what="the files of the first import")
    made.close()
    publisher.close()


def test_an_empty_list_of_export_files_is_rebuilt(exports, tmp_path):
    exports.make()
    (tmp_path / "exports" / "manifest.json").write_bytes(b"")
    assert exports.files() == []
    assert exports.make() is True
    assert len(exports.files()) == FILES


@pytest.mark.parametrize(
    "name", ["", "..", "manifest.json", ".lock", "../muniment.sqlite3", "companies-4.csv", "x" * 300]
)
def test_nothing_else_in_the_folder_can_be_taken(exports, name):
    exports.make()
    assert exports.find(name) is None


def test_the_listed_address_leads_to_the_file(exports, publisher, tmp_path):
    reader = Reader(tmp_path / "muniment.sqlite3")
    exports.make()
    client = Client(Api(reader, Config({}, data=tmp_path), SCHEMA))
    listed = client.ask("/api/v1/exports").json["data"]
    assert len(listed) == FILES
    for entry in listed:
        assert set(entry) == {"name", "url", "latestUrl", "rows", "bytes", "sha256", "edition", "at"}
        answer = client.ask(entry["url"])
        assert answer.headers["content-type"] == "application/gzip"
        assert answer.headers["content-length"] == str(entry["bytes"])
        assert hashlib.sha256(answer.body).hexdigest() == entry["sha256"]
        assert client.ask(entry["url"], "HEAD").headers == answer.headers
        assert client.ask(entry["url"], "DELETE").status == 405
    reader.close()


def test_the_first_reader_waits_for_files_of_what_is_shown(publisher, tmp_path, monkeypatch):
    monkeypatch.setattr(exports_module, "FIRST_AFTER_S", 3600.0)
    reader = Reader(tmp_path / "muniment.sqlite3")
    api = Api(reader, Config({}, data=tmp_path), SCHEMA)
    client = Client(api)
    api.start()
    assert {each["edition"] for each in client.ask("/api/v1/exports").json["data"]} == {4}
    publisher.publish(company(3))  # the registry is still being loaded
    reader.refresh()
    latest = client.ask("/exports/companies-latest.jsonl.gz")
    assert len(gzip.decompress(latest.body).splitlines()) == 3
    api.close()
    reader.close()


def test_a_reader_does_not_wait_for_a_later_edition(exports, publisher, tmp_path):
    exports.make()
    publisher.publish(company(3))
    reader = Reader(tmp_path / "muniment.sqlite3")
    api = Api(reader, Config({}, data=tmp_path), SCHEMA)
    assert {each["edition"] for each in Client(api).ask("/api/v1/exports").json["data"]} == {4}
    reader.close()


def test_a_reader_learns_that_there_are_no_files_yet(publisher, tmp_path, monkeypatch):
    reader = Reader(tmp_path / "muniment.sqlite3")
    api = Api(reader, Config({}, data=tmp_path), SCHEMA)
    api.close()
    answer = Client(api).ask("/api/v1/exports")
    assert (answer.status, answer.error["code"]) == (503, "internal_error")
    assert answer.headers["retry-after"] == "5"
    without = Api(reader, Config({"MUNIMENT_EXPORTS_INTERVAL_S": "0"}, data=tmp_path), SCHEMA)
    assert Client(without).ask("/api/v1/exports").json == {"data": []}
    reader.close()


def test_files_are_made_again_when_one_is_lost_or_cut(exports):
    exports.make()
    names = names_of(exports)
    lost, cut = exports.find(names["people.csv"]).path, exports.find(names["companies.jsonl"]).path
    content = cut.read_bytes()
    lost.unlink()
    cut.write_bytes(content[:10])
    assert exports.make() is True
    assert cut.read_bytes() == content
    assert lost.is_file()
    assert names_of(exports) == names


def test_a_name_belongs_to_one_content(publisher, tmp_path):
    """After a restore the same numbers count other changes, while caches keep files for a day."""
    made = Exports(tmp_path / "exports", tmp_path / "muniment.sqlite3", SCHEMA)
    made.make()
    before = names_of(made)
    publisher.connection.execute("BEGIN IMMEDIATE")
    published.clear(publisher.connection, epoch="restored")
    publisher.connection.execute("COMMIT")
    publisher.publish(company(2, day=5), company(1, day=9, name="Other"), person(1), framework(1, kind="program"))
    assert made.make() is True
    after = names_of(made)
    assert made.files()[0].edition == 4
    assert before["companies.jsonl"] != after["companies.jsonl"]
    assert before["people.csv"] == after["people.csv"]


def test_files_of_a_history_that_the_feed_no_longer_has_are_made_again(publisher, tmp_path):
    reader = Reader(tmp_path / "muniment.sqlite3")
    made = Exports(tmp_path / "exports", reader.path, SCHEMA, chain_after=reader.chain_after)
    assert made.make() is True
    assert {file.chain for file in made.files()} == {reader.chain_after(reader.edition)}
    assert made.make() is False
    public_log.begin_chain(publisher.connection, reader.edition, bytes(32))  # another history under the same number
    assert (made.files(), made.find("companies-latest.csv.gz")) == ([], None)
    assert made.make() is True
    assert {file.edition for file in made.files()} == {reader.edition}
    reader.close()
