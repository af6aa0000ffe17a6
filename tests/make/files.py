"""Files of every accepted type, and malicious ones, generated here: nothing is downloaded."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
ODT = "application/vnd.oasis.opendocument.text"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'


def pdf(*pages: str, size_bytes: int = 0, extra: str = "") -> bytes:
    """
    Make a PDF with a line of text on each page.

    Args:
        size_bytes: approximate size, reached with an unused stream.
        extra: additional trailer entries, for example an encryption dictionary.
    """
    pages = pages or ("The board meets in the harbour hall.",)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(pages)} >>"
    out, places = io.BytesIO(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    out.seek(0, io.SEEK_END)
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1"))
    if size_bytes > out.tell() + 1000:
        padding = size_bytes - out.tell() - 400 - 20 * len(objects)
        places.append(out.tell())
        out.write(f"{len(places)} 0 obj\n<< /Length {padding} >>\nstream\n".encode())
        out.write(b"x" * padding + b"\nendstream\nendobj\n")
    start = out.tell()
    rows = "".join(f"{place:010d} 00000 n \n" for place in places)
    out.write(
        f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{rows}"
        f"trailer\n<< /Size {len(places) + 1} /Root 1 0 R {extra} >>\nstartxref\n{start}\n%%EOF\n".encode("latin-1")
    )
    return out.getvalue()


def encrypted_pdf() -> bytes:
    """Make a PDF that cannot be read without a password."""
    key = "00" * 32
    return pdf(
        extra=f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >> /ID [<00112233> <00112233>]"
    )


def archive(parts: dict[str, bytes | str], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return out.getvalue()


def docx(*paragraphs: str, **more: bytes | str) -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs or ("A charter.",))
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>",
            **more,
        }
    )


def xlsx() -> bytes:
    shared = f"<sst {_S}><si><t>Holder</t></si><si><r><t>Sha</t></r><r><t>res</t></r></si></sst>"
    first = (
        f'<worksheet {_S}><sheetData><row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>'
        '<row><c t="inlineStr"><is><t>Ada</t></is></c><c><v>40</v></c></row></sheetData></worksheet>'
    )
    second = f"<worksheet {_S}><sheetData><row><c><v>7</v></c></row></sheetData></worksheet>"
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "xl/workbook.xml": "<workbook/>",
            "xl/sharedStrings.xml": shared,
            "xl/worksheets/sheet1.xml": first,
            "xl/worksheets/sheet2.xml": second,
        }
    )


def pptx(*slides: str) -> bytes:
    parts = {
        f"ppt/slides/slide{number}.xml": f"<sld {_A}><a:p><a:r><a:t>{text}</a:t></a:r></a:p></sld>"
        for number, text in enumerate(slides or ("Plan", "Budget"), 1)
    }
    return archive({"[Content_Types].xml": "<Types/>", "ppt/presentation.xml": "<p/>", **parts})


def odt(kind: str = ODT) -> bytes:
    content = (
        '<o:d xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
        "<text:h>Statutes</text:h><text:p>Every member has one vote.</text:p></o:d>"
    )
    return archive({"mimetype": kind, "content.xml": content}, method=zipfile.ZIP_STORED)


def png(width: int = 2, height: int = 2) -> bytes:
    """Make a PNG; its header may claim any size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\xff\0\0" * 2 for _ in range(2)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def picture(kind: str) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, kind)
    return out.getvalue()


def made(content: bytes | Callable[[], bytes]) -> bytes:
    """Return *content*; a case of a test names the function of a large file, which only that test then makes."""
    return content() if callable(content) else content


def bomb(unpacked_bytes: int = 60 << 20) -> bytes:
    """Make a small Word file that unpacks to a large one."""
    return docx(**{"word/media/a.bin": b"\0" * unpacked_bytes})


def overlapping(by: int | None = None) -> bytes:
    """Make a Word file in which two parts share the bytes of one, as in a zip bomb, or only *by* bytes."""
    made = docx(**{"word/media/a.bin": b"a" * 100, "word/media/b.bin": b"b" * 100})
    content, start = bytearray(made), made.index(b"PK\x01\x02")
    first, second = (made.index(b"word/media/" + name, start) - 46 for name in (b"a.bin", b"b.bin"))
    begins = content[first + 42 : first + 46]
    if by is not None:
        begins = (int.from_bytes(content[second + 42 : second + 46], "little") - by).to_bytes(4, "little")
    content[second + 42 : second + 46] = begins  # where the part begins
    return bytes(content)


def declared(part: str, *, flags: int | None = None, size_bytes: int | None = None) -> bytes:
    """Make a Word file whose directory declares *flags* or *size_bytes* of one part."""
    made = docx()
    content, at = bytearray(made), made.index(part.encode(), made.index(b"PK\x01\x02")) - 46
    if flags is not None:
        content[at + 8 : at + 10] = flags.to_bytes(2, "little")
    if size_bytes is not None:
        content[at + 24 : at + 28] = size_bytes.to_bytes(4, "little")
    return bytes(content)


def lying_bomb() -> bytes:
    """Make a zip bomb whose directory declares a small size."""
    big = 60 << 20
    content = bytearray(bomb(big))
    return bytes(content.replace(struct.pack("<I", big), struct.pack("<I", 1000)))
