"""Files of tables for tests: workbooks and archives, made of rows."""

import io
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape

_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


def zipped(files: dict[str, bytes | str]) -> bytes:
    """Return a ZIP of *files*."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def workbook(sheets: dict[str, Sequence[Sequence[Any]]], merged: Iterable[str] = ()) -> bytes:
    """
    Return an XLSX file.

    Args:
        sheets: the rows of each sheet; a text that begins with ``=`` is a formula with a kept result.
        merged: ranges of the first sheet, such as ``A1:B1``.
    """
    files: dict[str, bytes | str] = {
        "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_TYPES}"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        'ContentType="application/xml"/></Types>',
        "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}"><Relationship Id="r1" '
        f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    }
    names = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="s{n}"/>' for n, name in enumerate(sheets, 1))
    files["xl/workbook.xml"] = (
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{names}</sheets></workbook>'
    )
    targets = "".join(
        f'<Relationship Id="s{n}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    style = f'<Relationship Id="st" Type="{_RELATIONS}/styles" Target="styles.xml"/>'
    files["xl/_rels/workbook.xml.rels"] = f'{_HEAD}<Relationships xmlns="{_PACKAGE}">{targets}{style}</Relationships>'
    formats = '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    files["xl/styles.xml"] = f'{_HEAD}<styleSheet xmlns="{_MAIN}">{formats}</styleSheet>'
    for n, rows in enumerate(sheets.values(), 1):
        body = "".join(f'<row r="{at}">{_cells(at, row)}</row>' for at, row in enumerate(rows, 1))
        ranges = "".join(f'<mergeCell ref="{each}"/>' for each in merged) if n == 1 else ""
        ranges = f"<mergeCells>{ranges}</mergeCells>" if ranges else ""
        files[f"xl/worksheets/sheet{n}.xml"] = (
            f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData>{ranges}</worksheet>'
        )
    return zipped(files)


def _cells(row: int, cells: Sequence[Any]) -> str:
    return "".join(_cell(f"{chr(65 + n)}{row}", cell) for n, cell in enumerate(cells) if cell not in {None, ""})


def _cell(place: str, cell: Any) -> str:
    if isinstance(cell, datetime):
        return f'<c r="{place}" s="1"><v>{(cell - datetime(1899, 12, 30, tzinfo=UTC)) / timedelta(days=1)}</v></c>'
    if isinstance(cell, date):
        return f'<c r="{place}" s="1"><v>{(cell - date(1899, 12, 30)).days}</v></c>'
    if isinstance(cell, int | float):
        return f'<c r="{place}"><v>{cell}</v></c>'
    if cell.startswith("="):
        return f'<c r="{place}" t="str"><f>{escape(cell[1:])}</f><v>result</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'


def open_document(rows: str) -> bytes:
    """Return an ODS file whose only sheet has these rows, as XML."""
    table, text = "urn:oasis:names:tc:opendocument:xmlns:table:1.0", "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    spaces = f'xmlns:office="{office}" xmlns:table="{table}" xmlns:text="{text}"'
    sheet = f'<table:table table:name="One">{rows}</table:table>'
    body = f"<office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body>"
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f"{_HEAD}{manifest}",
            "content.xml": f"{_HEAD}<office:document-content {spaces}>{body}</office:document-content>",
        }
    )


def open_cell(text: str, *, columns: int = 1) -> str:
    """Return a cell of an ODS file, for so many columns."""
    return (
        f'<table:table-cell office:value-type="string" table:number-columns-repeated="{columns}">'
        f"<text:p>{escape(text)}</text:p></table:table-cell>"
    )


def open_row(*cells: str, rows: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{rows}">{"".join(cells)}</table:table-row>'
