"""
Corruptions: each is found by `doctor --deep`, and after a scrub it is mended, or reported with a way out.

Each case damages a stopped instance, as a disk or a person with an editor does.
"""

import contextlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from make.corruption import Page, change_behind_index, checkpoint, damage, pages
from services.prepared import copied
from services.product import DEMO, environment, run

pytestmark = [pytest.mark.proof, pytest.mark.sqlite]  # the pages of its file; PostgreSQL verifies its own
DATABASE = "muniment.sqlite3"
TESTS = Path(__file__).parents[1]
MENDED, REPORTED = "mended", "reported"
DOCUMENTS, PAGES = "published documents", "database pages"
Damaging = Callable[[Path], Any]


class Case(NamedTuple):
    """A corruption: how it is made, the check that must find it, and what a scrub does."""

    name: str
    make: Damaging
    check: str
    outcome: str


def sql(statement: str) -> Damaging:
    def edit(data: Path) -> None:
        with contextlib.closing(sqlite3.connect(data / DATABASE)) as database:
            assert database.execute(statement).rowcount, statement
            database.commit()

    return edit


def page(name: str, kind: Page) -> Damaging:
    """Damage the number of cells in the head of the last page of a kind."""

    def overwrite(data: Path) -> None:
        checkpoint(data / DATABASE)
        damage(data / DATABASE, pages(data / DATABASE, name, kind)[-1], at=3, content=b"\xff\xff")

    return overwrite


def bit_of(table: str, column: str, condition: str) -> Damaging:
    """Flip one bit of a stored value, in the page that holds it."""

    def flip(data: Path) -> None:
        with contextlib.closing(sqlite3.connect(data / DATABASE)) as database:
            (value,) = database.execute(f"SELECT {column} FROM {table} WHERE {condition}").fetchone()
        checkpoint(data / DATABASE)
        content = bytearray((data / DATABASE).read_bytes())
        place = content.index(value[:200]) + 100
        content[place] ^= 1
        (data / DATABASE).write_bytes(content)

    return flip


def file_of(pattern: str, change: Damaging) -> Damaging:
    def edit(data: Path) -> None:
        found = sorted(file for file in data.glob(pattern) if file.is_file())
        assert found, pattern
        checkpoint(data / DATABASE)
        change(found[0])

    return edit


def flip_middle(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def behind_index(data: Path) -> None:
    statement = "UPDATE published_document SET sort_name = 'zzz' WHERE key = 'quillmere'"
    change_behind_index(data / DATABASE, "published_document_name", statement)


def edited(table: str, column: str, condition: str) -> Damaging:
    return sql(f"UPDATE {table} SET {column} = CAST(replace({column}, 'Quill', 'Evil') AS BLOB) WHERE {condition}")


BODY = ("published_document", "body", "key = 'quillmere'")
ITEM = (
    "published_item_company",
    "item",
    "position = (SELECT position FROM published_document WHERE key = 'quillmere')",
)
CASES = [
    Case("a bit of a published body", bit_of(*BODY), DOCUMENTS, MENDED),
    Case("a bit of a list item", bit_of(*ITEM), DOCUMENTS, MENDED),
    Case("a published body is edited", edited(*BODY), DOCUMENTS, MENDED),
    Case("a list item is edited", edited(*ITEM), DOCUMENTS, MENDED),
    Case("a published row is deleted", sql("DELETE FROM published_document WHERE id % 9 = 1"), DOCUMENTS, MENDED),
    Case("filters are deleted", sql("DELETE FROM published_facet"), DOCUMENTS, MENDED),
    Case("totals are edited", sql("UPDATE published_total SET n = n + 5"), DOCUMENTS, MENDED),
    Case("a search text is edited", sql("UPDATE published_text_company_content SET c0 = 'evil'"), DOCUMENTS, MENDED),
    Case(
        "data of the search index",
        sql(
            "UPDATE published_text_company_data SET block = zeroblob(length(block))"
            " WHERE id = (SELECT max(id) FROM published_text_company_data)"
        ),
        PAGES,
        MENDED,
    ),
    Case("an index is behind its table", behind_index, PAGES, MENDED),
    Case("a leaf of a unique index", page("published_document_key", Page.LEAF_INDEX), PAGES, REPORTED),
    Case("an interior page of a table", page("published_document", Page.INTERIOR_TABLE), PAGES, REPORTED),
    Case("a leaf of a table", page("published_document", Page.LEAF_TABLE), PAGES, REPORTED),
    Case(
        "a source row changes alone",
        sql("UPDATE registry_company SET name = 'Quillmerd' WHERE slug = 'quillmere'"),
        DOCUMENTS,
        REPORTED,
    ),
    Case("the change feed is edited", sql("UPDATE published_change SET key = 'evil'"), "public log", REPORTED),
    Case("an orphan row", sql("UPDATE documents_document SET company_id = 999999"), "references", REPORTED),
    Case(
        "the ledger is edited", sql("UPDATE credits_ledgeraccount SET posted = posted + 7"), "credit ledger", REPORTED
    ),
    Case("a document's file is missing", file_of("blobs/documents/*/*", Path.unlink), "document files", REPORTED),
    Case("a bit of a document's file", file_of("blobs/documents/*/*", flip_middle), "document files", REPORTED),
    Case("a bit of an export", file_of("exports/*.gz", flip_middle), "exports", "made again by the server"),
    Case("a bit of a backup", file_of("backups/*.backup", flip_middle), "stored backups", "replaced by the next one"),
    Case("the database is truncated", file_of(DATABASE, truncate), PAGES, "refused"),
    Case("the database is no database", file_of(DATABASE, lambda file: file.write_bytes(b"x" * 9_000)), "", "refused"),
]


def stocked(data: Path) -> None:
    """Make the demo registry with a document, credits, exports and a backup."""
    run("import", str(DEMO), data=data)
    path = {"PYTHONPATH": str(TESTS), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    script = [sys.executable, str(TESTS / "services" / "stocked.py")]
    subprocess.run(script, env={**environment(data), **path}, check=True)
    run("backup", data=data)
    checkpoint(data / DATABASE)


def faults(done: "subprocess.CompletedProcess[str]") -> str:
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith("FAIL"))


def test_a_whole_instance_has_no_fault(tmp_path: Path) -> None:
    done = run("doctor", "--deep", data=copied(stocked, tmp_path / "data"), check=False)
    assert faults(done) == ""
    assert "OK    stored backups: 1 can be restored" in done.stdout
    assert re.search(r"OK    exports: each file has the digest of its list \(\d{2} examined\)", done.stdout)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_corruption_is_found_and_not_served_silently(case: Case, tmp_path: Path) -> None:
    data = copied(stocked, tmp_path / "data")
    case.make(data)
    done = run("doctor", "--deep", data=data, check=False)
    assert done.returncode == 1
    assert f"FAIL  {case.check}" in faults(done), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if case.outcome not in {MENDED, REPORTED}:
        return
    scrubbed = run("scrub", data=data, check=False)
    assert "Traceback" not in scrubbed.stderr
    again = run("doctor", "--deep", data=data, check=False)
    if case.outcome == MENDED:
        assert scrubbed.returncode == 0, scrubbed.stdout
        assert "MENDED  " in scrubbed.stdout
        assert faults(again) == ""
    else:
        assert scrubbed.returncode == 1
        assert f"DAMAGED  {case.check}: " in scrubbed.stdout, scrubbed.stdout
        assert f"FAIL  {case.check}" in faults(again)
