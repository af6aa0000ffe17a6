"""The tables of the demo registry: each row is as published, what is private is in none, and agents' questions work."""

import json
import sqlite3
from contextlib import closing

import pytest

from muniment.mcp.tools.near_statements import near_statement
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader
from muniment.store.tables import FILE_NAME
from muniment.store.tables.comparing import compare
from muniment.store.tables.following import Tables
from services.prepared import demo_registry
from services.product import DEMO

pytestmark = pytest.mark.sqlite


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    data = demo_registry(tmp_path_factory.mktemp("demo") / "data")
    reader = Reader(data / "muniment.sqlite3")
    tables = Tables(data / FILE_NAME, reader, registry_schema("USD"))
    tables.follow()
    yield reader, tables
    tables.close()
    reader.close()


def test_every_row_is_as_published_and_none_is_missing(demo):
    reader, tables = demo
    found = compare(reader.path, tables.path, tables.form, "", 100_000)
    assert found.faults == []
    assert found.examined > sum(reader.count(kind) for kind in ("company", "person", "framework"))
    with closing(sqlite3.connect(tables.path)) as own:
        for name in ("companies", "positions", "proposals", "holders", "themes", "addresses", "socials", "changes"):
            assert own.execute(f"SELECT count(*) FROM {name}").fetchone()[0] > 5, name


def test_private_specifications_are_in_no_table(demo):
    reader, tables = demo
    content = tables.path.read_bytes() + tables.path.with_name(f"{FILE_NAME}-wal").read_bytes()
    lines = [json.loads(line) for line in (DEMO / "frameworks.jsonl").read_text().splitlines()]
    specifications = [line["specification"] for line in lines if line.get("specification")]
    criteria = [
        criterion["title"]
        for specification in specifications
        for section in specification["sections"]
        for criterion in section["criteria"]
    ]
    with closing(sqlite3.connect(reader.path)) as own:
        public = b"".join(body for (body,) in own.execute("SELECT body FROM published_document"))
    private = [title for title in criteria if title.encode() not in public]
    assert len(private) > 10
    assert [title for title in private if title.encode() in content] == []


@pytest.mark.parametrize(
    "question",
    [
        "DAOs with an open vote",
        "failed proposals",
        "three people with the most positions",
        "average treasury by state",
        "companies by type",
    ],
)
def test_a_statement_that_is_near_a_question_finds_something(demo, question):
    _, tables = demo
    with closing(sqlite3.connect(tables.path)) as own:
        assert own.execute(near_statement(question)).fetchall()
