"""Files that are no tables, damaged, or made to harm: each is refused with its reason, and nothing is executed."""

import io
import json
import zipfile
from datetime import UTC, date, datetime

import pytest

from make.spreadsheets import workbook, zipped
from muniment.kernel.problems import BadRequest
from muniment.outbound.fetching import Fetched, NotFetched
from muniment.registry.tables import formats, reading
from muniment.registry.tables.formats import NotATable, read_sheets
from muniment.registry.tables.reading import TableFile, open_file, read_file

FORMULA = '=HYPERLINK("http://evil.example","x")'


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n;;;\n", "is empty"),
        ("paper.csv", b"%PDF-1.7 \n", "is a PDF"),
        ("page.csv", b"  <!DOCTYPE html><html>", "is a web page"),
        ("raw.csv", b"a,\0\1\0\2" * 50, "is binary data"),
        ("bad.zip", b"PK\x03\x04 damaged", "is a damaged archive"),
        ("bad.xls", b"\xd0\xcf\x11\xe0 damaged", "cannot be read as a workbook"),
        ("bad.json", b'{"a": ', "is not JSON"),
        ("text.json", b"[1, 2]", "holds no list of objects"),
        ("deep.json", b"[" * 100_000, "is nested too deeply"),
        ("wide.csv", b",".join(b"x%d" % n for n in range(5_000)), "has 5,000 columns"),
        (
            "zips.zip",
            zipped({"a.zip": zipped({"b.zip": zipped({"c.zip": zipped({"d.csv": "a,b"})})})}),
            "an archive in",
        ),
        ("many.zip", zipped({f"{n}.csv": "a" for n in range(101)}), "holds 101 files"),
    ],
)
def test_a_file_without_a_table_is_refused_with_its_reason(name, content, reason):
    with pytest.raises(NotATable, match=reason):
        read_sheets(content, name)


def test_250_sheets_are_read_and_no_more():
    reading = formats.Reading("many.xlsx", 1, "", "")
    reading.take_sheets(250)
    with pytest.raises(formats.TooMuch, match=r"more than 250 sheets"):
        reading.take_sheets(1)


def test_limits_of_size(monkeypatch):
    monkeypatch.setattr(formats, "MAX_ROWS", 2)
    with pytest.raises(NotATable, match="too many"):
        read_sheets(b"a,b\n1,2\n3,4\n", "long.csv")
    with pytest.raises(NotATable, match="The sheet One has 3 rows and 1 columns"):
        read_sheets(workbook({"One": [["a"], ["b"], ["c"]]}), "long.xlsx")
    monkeypatch.setattr(formats, "MAX_SHEETS", 2)
    sheets = {"One": [["a"]], "Two": [], "Three": [["c"]]}
    with pytest.raises(NotATable, match=r"many\.xlsx has more than 2 sheets\."):
        read_sheets(workbook(sheets), "many.xlsx")
    sheets.pop("Two")
    assert len(read_sheets(workbook(sheets), "two.xlsx")) == 2
    with pytest.raises(NotATable, match=r"all\.zip has more than 2 sheets\."):
        read_sheets(zipped({"a.xlsx": workbook(sheets), "b.csv": "c"}), "all.zip")
    monkeypatch.setattr(formats, "MAX_UNPACKED_BYTES", 10)
    with pytest.raises(NotATable, match="unpacks to more"):
        read_sheets(zipped({"a.csv": "x" * 100}), "bomb.zip")


def damaged(files):
    """Return a ZIP of *files* without compression, in which "Quay" is another word than the checksum says."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    whole = out.getvalue()
    assert b"Quay" in whole
    return whole.replace(b"Quay", b"Quip")


def test_a_damaged_file_in_an_archive_is_named_and_the_others_are_read():
    (sheet,) = read_sheets(damaged({"good.csv": "a,b\n1,2\n", "bad.csv": "name\nQuay\n"}), "both.zip")
    assert sheet.rows == [["a", "b"], ["1", "2"]]
    assert "bad.csv cannot be unpacked." in sheet.notes
    with pytest.raises(NotATable, match=r"bad\.csv cannot be unpacked\."):
        read_sheets(damaged({"bad.csv": "name\nQuay\n"}), "one.zip")


def test_a_given_encoding_must_fit():
    with pytest.raises(NotATable, match="not in the encoding ascii"):
        read_sheets("Größe".encode(), "a.csv", "ascii")
    assert read_sheets("Größe,b".encode("cp437"), "a.csv", "cp437")[0].rows == [["Größe", "b"]]


def test_what_was_left_out_while_reading_is_noted():
    (sheet,) = read_sheets(b"Name,City\nA\0cme,Rome\n", "nul.csv")
    assert sheet.rows[1] == ["Acme", "Rome"]
    assert sheet.notes == ["1 NUL characters were left out."]
    mixed = "Name,City\nÄrmel,Köln\nÖl,Wörth\n".encode() + "Übel,Fürth\n".encode("cp1252")
    (sheet,) = read_sheets(mixed, "mixed.csv")
    assert sheet.rows[1] == ["Ärmel", "Köln"]
    assert sheet.notes == ["2 characters are not utf-8; set the right encoding in the mapping."]
    found = read_sheets(zipped({"a.csv": "Name,City\nAcme,Rome", "b.pdf": "%PDF-1"}), "two.zip")
    assert found[0].notes == ["b.pdf is a PDF, not a table. Save the table as CSV or XLSX, and import that file."]
    (sheet,) = read_sheets(zipped({"a.zip": zipped({"b.csv": "Name,City\nAcme,Rome"})}), "zips.zip")
    assert sheet.rows[1] == ["Acme", "Rome"], "an archive in an archive is read"


def test_delimiters_and_quotes():
    assert read_sheets(b"sep=|\r\na|b\r\n", "excel.csv")[0].rows[1] == ["a", "b"]
    (sheet,) = read_sheets(b'Name;Text\n"A;B";"two\nlines"\n', "quoted.csv")
    assert sheet.rows[1] == ["A;B", "two\nlines"]
    (sheet,) = read_sheets(b'Name,Text\n"' + b"never closed\n" * 100_000, "open.csv")
    assert len(sheet.rows) == 100_001


def test_formulas_are_neither_calculated_nor_kept_from_csv_and_a_workbook_gives_its_kept_results():
    (sheet,) = read_sheets(workbook({"One": [["Name", "Sum"], ["Acme", "=A1+1"]]}), "f.xlsx")
    assert sheet.rows[1] == ["Acme", "result"]
    (sheet,) = read_sheets(f"Name;Site\nAcme;{FORMULA}\n".encode(), "f.csv")
    assert sheet.rows[1][1] == FORMULA


def test_a_workbook_gives_days_and_times_as_people_write_them():
    cells = [date(2024, 3, 1), datetime(2024, 3, 1, 9, 30, tzinfo=UTC), 12.0, 12.5]
    (sheet,) = read_sheets(workbook({"One": [["Day", "Time", "Staff", "Share"], cells]}), "days.xlsx")
    assert sheet.rows[1] == ["2024-03-01", "2024-03-01 09:30:00", "12", "12.5"]


def test_a_long_list_of_objects_keeps_the_rest_as_text():
    rows = [{"name": "Acme", "places": [{"city": str(n)} for n in range(7)]}] * 2
    (sheet,) = read_sheets(json.dumps(rows).encode(), "places.json")
    assert sheet.rows[0][-1] == "places (more)"
    assert json.loads(sheet.rows[1][-1]) == [{"city": "5"}, {"city": "6"}]


def test_the_child_gives_the_tables_or_the_reason():
    (sheet,) = read_file(TableFile("a.csv", b"Name,City\nAcme,Rome\n"))
    assert sheet.rows == [["Name", "City"], ["Acme", "Rome"]]
    with pytest.raises(BadRequest, match="is a PDF"):
        read_file(TableFile("a.csv", b"%PDF-1"))


def test_a_workbook_that_names_a_far_cell_harms_only_the_child():
    bomb = workbook({"One": [["Name"]]})
    far = zipfile.ZipFile
    import io

    with far(io.BytesIO(bomb)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet = files["xl/worksheets/sheet1.xml"].replace(
        b"</sheetData>", b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    )
    with pytest.raises(BadRequest) as caught:
        read_file(TableFile("bomb.xlsx", zipped({**files, "xl/worksheets/sheet1.xml": sheet})))
    assert caught.value.message


def test_a_child_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(reading, "WALL_S", 0.0)
    with pytest.raises(BadRequest, match="too much time"):
        read_file(TableFile("a.csv", b"Name\n"))


def test_addresses_are_fetched_through_the_guard(monkeypatch, tmp_path):
    with pytest.raises(BadRequest, match="cannot be fetched"):
        open_file("http://localhost/members.csv")
    with pytest.raises(BadRequest, match="names a port"):
        open_file("http://registry.example:8080/members.csv")

    def answered(*_: object, **__: object) -> Fetched:
        raise NotFetched(404)

    monkeypatch.setattr(reading, "follow", answered)
    with pytest.raises(BadRequest, match="the server answered 404"):
        open_file("https://registry.example/members.csv")

    def refused(*_: object, **__: object) -> Fetched:
        raise TimeoutError

    monkeypatch.setattr(reading, "follow", refused)
    with pytest.raises(BadRequest, match="did not answer in time"):
        open_file("https://registry.example/members.csv")
    large = tmp_path / "large.csv"
    large.write_bytes(b"x")
    monkeypatch.setattr(reading, "MAX_BYTES", 0)
    with pytest.raises(BadRequest, match="is larger than"):
        open_file(large)


def test_what_json_holds_beside_its_rows_is_noted():
    document = {
        "made": "2026-10-02",
        "page": {"next": None, "size": 2},
        "hints": [{"code": 4}],
        "members": [
            {"name": "Alder", "board": [{"name": "Ida", "role": "Chair", "email": "ida@alder.example"}]},
            {"name": "Birch", "board": [{"label": "Kim", "since": 1999, "note": ""}]},
            "a line that is no row",
        ],
    }
    (sheet,) = read_sheets(json.dumps(document).encode(), "members.json")
    assert sheet.rows[1:] == [["Alder", "Ida (Chair)"], ["Birch", "Kim"]]
    assert sheet.notes == [
        "Outside of the list of rows, and left out: made, page.size, hints.",
        "1 value that is no object was left out.",
        "Of lists of people, names and positions are read. Left out: board.email, board.since.",
    ]


def test_json_that_is_all_rows_has_no_notes():
    for text in (
        '[{"name": "Alder"}, {"name": "Birch"}]',
        '{"name": "Alder"}\n{"name": "Birch"}\n',
        '{"name": "Alder"}',
    ):
        (sheet,) = read_sheets(text.encode(), "members.json")
        assert sheet.notes == []


def test_lines_of_json_that_are_no_rows_are_noted():
    (sheet,) = read_sheets(b'{"name": "Alder"}\n7\n"note"\n', "members.jsonl")
    assert sheet.notes == ["2 values that are no objects were left out."]


@pytest.mark.parametrize(
    ("name", "start", "reason"),
    [
        ("members.xls", "<html><table><tr><td>Name</td>", "is a web page that was saved with the ending .xls"),
        ("members.XLSX", "<!DOCTYPE html><html>", "is a web page that was saved with the ending .xlsx"),
        (
            "members.xls",
            '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">',
            "is a workbook in the XML form of Excel 2003",
        ),
        ("members.html", "<html>", "is a web page or XML, not a table"),
    ],
)
def test_a_web_page_under_the_name_of_a_workbook_is_refused_with_a_way_out(name, start, reason):
    with pytest.raises(NotATable, match=reason) as refused:
        read_sheets(start.encode(), name)
    assert "save it as XLSX" in str(refused.value) or "Save the table as CSV" in str(refused.value)
