"""What the tables of a file hold is limited in sum, and a small file cannot make the process that serves large."""

import json
import subprocess
import sys
import zipfile

import pytest

from make.spreadsheets import open_cell, open_document, open_row, workbook, zipped
from muniment.kernel.problems import BadRequest
from muniment.registry.tables import formats, reading
from muniment.registry.tables.formats import NotATable, read_sheets
from muniment.registry.tables.reading import TableFile, read_file

ROWS = [["Name", "City"], ["Alder", "Rome"]]
LONG = "x" * 32_000
GROWTH = """
import json, resource, sys
from pathlib import Path
from muniment.kernel.problems import BadRequest
from muniment.registry.tables.reading import TableFile, read_file

content = Path(sys.argv[1]).read_bytes()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_file(TableFile("small", content))
except BadRequest as refusal:
    said = refusal.message
else:
    said = ""
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps([said, grown]))
"""


def merged_over_many() -> bytes:
    """Return a workbook whose one long cell is merged over 20,000."""
    rows = [[LONG], *[[]] * 19_998, ["end"]]
    return workbook({"One": rows}, merged=("A1:A20000",))


def shared_by_many() -> bytes:
    """Return a workbook whose 20,000 cells name one long shared text."""
    with zipfile.ZipFile(io_of(workbook({"One": [["a"]]}))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    cells = b"".join(b'<row r="%d"><c r="A%d" t="s"><v>0</v></c></row>' % (n, n) for n in range(1, 20_001))
    files["xl/worksheets/sheet1.xml"] = b'<worksheet xmlns="%b"><sheetData>%b</sheetData></worksheet>' % (space, cells)
    files["xl/sharedStrings.xml"] = b'<sst xmlns="%b"><si><t>%b</t></si></sst>' % (space, LONG.encode())
    relation = b'<Relationship Id="ss" Type="%b" Target="sharedStrings.xml"/></Relationships>' % (
        b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    )
    name = "xl/_rels/workbook.xml.rels"
    files[name] = files[name].replace(b"</Relationships>", relation)
    return zipped(files)


def io_of(content: bytes):
    import io

    return io.BytesIO(content)


TOO_LARGE = "The tables of small take more than 192 MB."
SMALL_AND_HEAVY = {
    "a cell merged over many": (merged_over_many, TOO_LARGE),
    "a shared text": (shared_by_many, TOO_LARGE),
    "a repeated cell": (lambda: open_document(open_row(open_cell(LONG, columns=500), rows=1_000)), "MB"),
    "repeated rows": (lambda: open_document(open_row(open_cell("ab", columns=900), rows=200_000)), "cannot be read"),
    "many members": (lambda: zipped({f"{n}.csv": "Name\n" + "alder ash\n" * 250_000 for n in range(20)}), TOO_LARGE),
    "short cells": (lambda: zipped({"a.csv": "ab,cd,ef,gh,ij,kl,mn,op,qr,st,uv,wx,yz,ab\n" * 290_000}), TOO_LARGE),
    "objects of JSON": (
        lambda: zipped({"a.json": json.dumps([{"name": LONG, "n": n} for n in range(8_000)])}),
        TOO_LARGE,
    ),
}


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("kind", SMALL_AND_HEAVY)
def test_a_small_file_with_heavy_tables_is_refused_and_the_process_stays_small(tmp_path, kind):
    file = tmp_path / "small"
    make, says = SMALL_AND_HEAVY[kind]
    file.write_bytes(make())
    assert file.stat().st_size < 1_500_000
    command = [sys.executable, "-I", "-c", GROWTH, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    said, grown_kb = json.loads(done.stdout)
    assert says in said
    assert grown_kb < 40_000


def size_of(rows: list[list[str]]) -> int:
    return sum(sys.getsizeof(row) + sum(sys.getsizeof(cell) for cell in row if cell) for row in rows)


def test_the_memory_of_all_tables_together_may_reach_the_limit_and_not_pass_it(monkeypatch):
    content = workbook({"One": ROWS, "Two": ROWS})
    most = 2 * size_of(ROWS)
    monkeypatch.setattr(formats, "TIMES_OF_FILE", 0)
    monkeypatch.setattr(formats, "MAX_TABLE_BYTES", most)
    assert [sheet.rows for sheet in read_sheets(content, "a.xlsx")] == [ROWS, ROWS]
    monkeypatch.setattr(formats, "MAX_TABLE_BYTES", most - 1)
    with pytest.raises(NotATable, match=r"The tables of a\.xlsx take more than 0 MB"):
        read_sheets(content, "a.xlsx")


def test_a_large_file_may_take_as_many_times_its_size(monkeypatch):
    content = b"Name,City\nAlder,Rome\n"
    most = size_of(ROWS)
    monkeypatch.setattr(formats, "MAX_TABLE_BYTES", 0)
    monkeypatch.setattr(formats, "TIMES_OF_FILE", -(-most // len(content)))
    assert read_sheets(content, "a.csv")[0].rows == ROWS
    monkeypatch.setattr(formats, "TIMES_OF_FILE", (most - 1) // len(content))
    with pytest.raises(NotATable, match="take more than"):
        read_sheets(content, "a.csv")


def test_the_cells_of_all_tables_are_counted_together(monkeypatch):
    content = zipped({"a.csv": "Name,City\nAlder,Rome\n", "b.csv": "Name,City\nAlder,Rome\n"})
    monkeypatch.setattr(formats, "MAX_CELLS", 8)
    assert len(read_sheets(content, "two.zip")) == 2
    monkeypatch.setattr(formats, "MAX_CELLS", 7)
    with pytest.raises(NotATable, match=r"two\.zip has more than 7 cells"):
        read_sheets(content, "two.zip")


def test_merged_cells_beyond_the_limit_are_left_empty_with_a_note(monkeypatch):
    content = workbook({"One": [["a"], [], ["b"], [], ["end"]]}, merged=("A1:A2", "A3:A4"))
    monkeypatch.setattr(formats, "MAX_MERGED_CELLS", 4)
    (sheet,) = read_sheets(content, "a.xlsx")
    assert (sheet.rows, sheet.notes) == ([["a"], ["a"], ["b"], ["b"], ["end"]], [])
    monkeypatch.setattr(formats, "MAX_MERGED_CELLS", 3)
    (sheet,) = read_sheets(content, "a.xlsx")
    assert sheet.rows == [["a"], ["a"], ["b"], [""], ["end"]]
    assert sheet.notes == ["Only the first 3 merged cells were filled with their text."]


def test_what_archives_in_an_archive_unpack_to_is_counted_together(monkeypatch):
    inner = zipped({"a.csv": "Name\n" + "x" * 95})
    content = zipped({"one.zip": inner, "two.zip": inner})
    most = 2 * len(inner) + 200
    monkeypatch.setattr(formats, "MAX_UNPACKED_BYTES", most)
    assert len(read_sheets(content, "a.zip")) == 2
    monkeypatch.setattr(formats, "MAX_UNPACKED_BYTES", most - 1)
    with pytest.raises(NotATable, match=r"a\.zip unpacks to more than"):
        read_sheets(content, "a.zip")


def test_the_process_that_asks_takes_no_more_than_the_limit_of_an_answer(monkeypatch):
    """It does not rely on the child, which reads the untrusted file."""
    file = TableFile("a.csv", b"Name,City\nAlder,Rome\n")
    monkeypatch.setattr(reading, "most_bytes", lambda _: 40)
    with pytest.raises(BadRequest, match="take more than 0 MB") as refused:
        read_file(file)
    assert "Split the file" in refused.value.hint
    monkeypatch.setattr(reading, "most_bytes", lambda _: 1_000)
    assert read_file(file)[0].rows == ROWS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"Name,City\nAlder,Rome\n"),
        ("a.tsv", "Name\tCity\nAlder\tRome\n".encode("utf-16")),
        ("a.json", b'[{"Name": "Alder", "City": "Rome"}]'),
        ("a.xlsx", workbook({"One": ROWS})),
        ("a.ods", open_document("".join(open_row(*map(open_cell, row)) for row in ROWS))),
        ("a.zip", zipped({"a.xlsx": workbook({"One": ROWS})})),
    ],
)
def test_every_format_is_read_by_a_confined_child(name, content):
    assert [sheet.rows for sheet in read_file(TableFile(name, content))] == [ROWS]


def test_an_encoding_is_recognized_and_loaded_by_a_confined_child():
    rows = "Name;Město\nŽižka;Plzeň\nČapek;Třebíč\n"
    (sheet,) = read_file(TableFile("a.csv", rows.encode("cp1250")))
    assert [";".join(row) for row in sheet.rows] == rows.splitlines()
