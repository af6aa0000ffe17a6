"""JSON lines: how files are read, and what a broken line is."""

import gzip
import json
from typing import Any

import pytest

from make.registry import bring, keys
from muniment.registry.exchange import json_lines

pytestmark = pytest.mark.django_db


def company(slug: str = "acme", /, **members: Any) -> dict[str, Any]:
    return {"id": slug, "name": slug.title(), **members}


@pytest.mark.requirement("import.form")
def test_files_come_with_a_byte_order_mark_windows_line_ends_blank_lines_and_gzip(tmp_path):
    content = b"\xef\xbb\xbf" + b'{"company": {"id": "a", "name": "A"}}\r\n\r\n{"company": {"id": "b", "name": "B"}}'
    (tmp_path / "companies.jsonl.gz").write_bytes(gzip.compress(content))
    assert bring(tmp_path)[1] == []
    assert keys("company") == ["b", "a"]


def test_broken_gzip_is_reported_and_the_rows_before_it_are_imported(tmp_path):
    rows = b"".join(json.dumps({"company": company(f"c{n}", body=str(n) * 200)}).encode() + b"\n" for n in range(400))
    (tmp_path / "companies.jsonl.gz").write_bytes(gzip.compress(rows)[:-400])
    bad = bring(tmp_path)[1]
    assert "gzip data is damaged" in bad[0].reason
    assert "c0" in keys("company")


def test_a_line_of_a_hundred_megabytes_is_a_bad_row_in_bounded_memory(tmp_path, monkeypatch):
    import tracemalloc

    file = tmp_path / "companies.jsonl"
    with file.open("wb") as out:
        out.write(b'{"company": {"id": "big", "name": "')
        for _ in range(100):
            out.write(b"x" * 1_000_000)
        out.write(b'"}}\n{"company": {"id": "small", "name": "Small"}}\n')
    tracemalloc.start()
    bad = bring(file)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each.line for each in bad] == [1]
    assert bad[0].reason.startswith("has more than 8,388,608 bytes in one line. Put long lists of a company into")
    assert keys("company") == ["small"]
    assert peak < 60_000_000


def test_each_line_has_its_number_its_size_and_how_far_the_file_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "MAX_LINE_BYTES", 20)
    file = tmp_path / "companies.jsonl"
    file.write_bytes(b'{"a": 1}\n\n{"long": "' + b"x" * 30 + b'"}\nbroken\n{"a": 2}')
    found = [(line.number, line.value, bool(line.fault), line.size) for line in json_lines.read_lines(file)]
    assert found == [(1, {"a": 1}, False, 9), (3, None, True, 0), (4, None, True, 7), (5, {"a": 2}, False, 8)]
    assert max(line.read for line in json_lines.read_lines(file)) == file.stat().st_size


def test_damaged_gzip_data_has_no_size(tmp_path):
    file = tmp_path / "companies.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"a": 1}\n')[:-9])
    *_, last = json_lines.read_lines(file)
    assert (last.value, last.size, "gzip" in last.fault.reason) == (None, 0, True)
