"""Batches of import files: bounded, in order, and the next one read while another is committed."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from make.registry import keys, lines
from muniment.registry.exchange import reading
from muniment.registry.exchange.importer import import_registry
from muniment.registry.exchange.json_lines import ImportLine, read_lines
from muniment.registry.exchange.reading import Batch, BatchReader, Source

pytestmark = pytest.mark.django_db


def people(folder: Path, *rows: Any) -> Source:
    return Source("people", lines(folder / "people.jsonl", *rows))


def person(slug: str) -> dict[str, str]:
    return {"slug": slug, "name": slug.title()}


@pytest.fixture
def read(monkeypatch) -> Iterator[dict[int, Event]]:
    """Batches of two lines; the event of a line is set once it is read."""
    monkeypatch.setattr(reading, "BATCH_LINES", 2)
    events = {number: Event() for number in range(1, 10)}

    def told(path: Path) -> Iterator[ImportLine]:
        for line in read_lines(path):
            events[line.number].set()
            yield line

    monkeypatch.setattr(reading, "read_lines", told)
    return events


def test_the_next_batch_is_read_once_that_is_begun(tmp_path, read):
    source = people(tmp_path, *map(person, ("a", "b", "c", "d", "e")))
    with BatchReader(source) as reader:
        found = iter(reader)
        assert [row.slug for _, row in next(found).rows] == ["a", "b"]
        assert not read[3].is_set()
        reader.read_ahead()
        assert read[4].wait(10)
        reader.read_ahead()  # which was begun
        assert [row.slug for _, row in next(found).rows] == ["c", "d"]
        assert not read[5].is_set()
        assert [row.slug for _, row in next(found).rows] == ["e"]
        assert next(found, None) is None


def test_an_import_begins_to_read_inside_the_transaction_that_it_commits(tmp_path, monkeypatch):
    depths: list[int] = []
    outside = len(connection.savepoint_ids)

    class Noted(BatchReader):
        def read_ahead(self) -> None:
            depths.append(len(connection.savepoint_ids))
            super().read_ahead()

    monkeypatch.setattr("muniment.registry.exchange.importer.BatchReader", Noted)
    import_registry(people(tmp_path, person("a")).path)
    assert outside + 1 in depths


def test_a_file_of_invalid_lines_is_told_batch_by_batch(tmp_path, read):
    with BatchReader(people(tmp_path, {"slug": "A B"}, {"slug": "a"}, b"broken\n")) as reader:
        found = list(reader)
    assert [[each.fault.line for each in batch.findings] for batch in found] == [[1, 1, 2], [3]]
    assert [batch.rows for batch in found] == [[], []]


def test_a_slug_is_taken_once_in_all_batches(tmp_path, read):
    with BatchReader(people(tmp_path, *map(person, ("a", "b", "a", "b", "c")))) as reader:
        found = [each.fault for batch in reader for each in batch.findings]
    assert [(each.line, each.field, each.reason) for each in found] == [
        (3, "slug", "'a' is already in line 1"),
        (4, "slug", "'b' is already in line 2"),
    ]


def test_a_batch_that_is_read_again_is_the_same_batch(tmp_path):
    source = people(tmp_path, person("a"), {"slug": "b"}, person("a"))
    with BatchReader(source) as reader:
        (batch,) = reader
    again = batch.read_again(settings.SCHEMA)
    assert isinstance(again, Batch)
    assert (again.rows, again.findings, again.lines) == (batch.rows, batch.findings, batch.lines)


def test_what_was_committed_stays_if_the_file_cannot_be_read_on(tmp_path, monkeypatch, read):
    def broken(path: Path) -> Iterator[ImportLine]:
        for line in read_lines(path):
            if line.number == 4:
                raise OSError(5, "Input/output error")
            yield line

    monkeypatch.setattr(reading, "read_lines", broken)
    with pytest.raises(OSError, match="Input/output error"):
        import_registry(people(tmp_path, *map(person, ("a", "b", "c", "d"))).path)
    assert keys("person") == ["b", "a"]
