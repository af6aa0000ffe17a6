"""Every command and any number of workers handle published documents that another version has written."""

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from django.db.migrations.loader import MigrationLoader

from make.registry import lines
from muniment.mcp.declarations import PROVENANCE
from muniment.store.published import SCHEMA_VERSION
from muniment.store.published_document import KINDS
from services.mcp import modern
from services.ports import wait_until
from services.product import Product, run

FIRST = Path(__file__).parent / "0.1-first"
KNOWN = json.loads((FIRST / "known.json").read_text())
UNREADABLE = 1

pytestmark = pytest.mark.sqlite  # the data folder of the first version is on SQLite


@pytest.fixture
def data(tmp_path):
    """Return a data folder of the first version, with pending migrations and documents of another schema."""
    folder = tmp_path / "data"
    with tarfile.open(FIRST / "data.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    assert meta(folder) == (2, "f492a5b480f6d748")
    return folder


def meta(data):
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as connection:
        return connection.execute("SELECT schema, epoch FROM published_meta").fetchone()


def call(product, name):
    headers, body = modern("tools/call", {"name": name, "arguments": {}})
    sent = {name: value for name, value in headers if name != "host"}
    return product.request("POST", "/api/mcp", sent, body).json()["result"]


def set_schema(data, schema):
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as connection, connection:
        connection.execute("UPDATE published_meta SET schema = ?", (schema,))


@pytest.mark.parametrize(
    # All begin alike: what is readable and what is not matter to each other command as they do to the first.
    ("command", "schema"),
    [("migrate", 2), ("migrate", UNREADABLE), ("user list", UNREADABLE), ("import", 2), ("export", UNREADABLE)],
)
def test_a_command_renders_the_documents_again(data, tmp_path, command, schema):
    set_schema(data, schema)
    arguments = {
        "import": ["import", str(lines(tmp_path / "people.jsonl", {"slug": "ada-moss", "name": "Ada Moss"}))],
        "export": ["export", str(tmp_path / "out")],
    }.get(command, command.split())
    done = run(*arguments, data=data, database_url="")
    assert "Traceback" not in done.stderr
    found, epoch = meta(data)
    assert found == SCHEMA_VERSION
    assert epoch != "f492a5b480f6d748"
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as connection:
        applied = set(connection.execute("SELECT app, name FROM django_migrations"))
    assert applied >= MigrationLoader(None).disk_migrations.keys(), "nothing is left for another command"
    if command == "migrate":
        assert "Nothing to do" in run("migrate", data=data, database_url="").stdout


def test_two_workers_start_without_an_error_and_both_serve_owners_as_soon_as_they_are_ready(data):
    set_schema(data, UNREADABLE)
    headers, body = modern("tools/call", {"name": "list_my_companies", "arguments": {}})
    sent = {name: value for name, value in headers if name != "host"} | {"authorization": f"Bearer {KNOWN['token']}"}
    with Product(data, "--workers", "2", database_url="") as product:
        product.wait_ready()
        answers = [product.request("POST", "/api/manage/mcp", sent, body) for _ in range(12)]
        assert [answer.status for answer in answers] == [200] * 12
        assert len({answer.process for answer in answers}) == 2
        assert "start-up failed" not in product.output()
        assert "Traceback" not in product.output()
    assert meta(data)[0] == SCHEMA_VERSION


def test_documents_of_a_readable_schema_are_served_until_they_are_rendered_again(data):
    """A writer that does not end delays the rendering; public reads do not wait for it."""
    run("migrate", data=data, database_url="")
    set_schema(data, 3)
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as connection, connection:
        for table in ("published_document", *(f"published_item_{kind}" for kind in KINDS)):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN provenance")
    former = meta(data)[1]
    with closing(sqlite3.connect(data / "muniment.sqlite3", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with Product(data, database_url="") as product:
            feed = product.get("/api/v1/changes?after=160").json()
            assert feed["feedId"] == former
            assert product.get("/api/v1/companies").status == 200
            for name in ("list_companies", "list_people", "list_frameworks"):
                result = call(product, name)
                assert result["structuredContent"]["data"]
                assert PROVENANCE not in result["_meta"]
            writer.execute("ROLLBACK")
            wait_until(
                lambda: product.get("/api/v1/changes?after=160").json()["feedId"] != former,
                within_s=30,
                what="new documents",
            )
            assert product.get("/api/v1/companies").status == 200
            result = call(product, "list_companies")
            marks = result["_meta"][PROVENANCE]["companies"]
            shown = {each["id"] for each in result["structuredContent"]["data"]}
            assert "*" in marks, "items of one origin share a mark"
            assert marks.keys() - {"*"} < shown
            assert {mark.split()[0] for mark in marks.values()} <= {"reviewed", "owner", "imported"}
