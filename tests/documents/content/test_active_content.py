"""Macros, embedded programs, scripts and remote parts are refused, whatever their names; ordinary files are not."""

import io
import time

import pytest

from make import files
from make.documents import uploaded
from muniment.documents.content import active_content, inspection
from muniment.documents.content.inspection import Rejected
from muniment.kernel.problems import BadRequest

_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OLE = active_content.OLE + b"\0" * 600


def look(content, content_type):
    inspection.inspect(io.BytesIO(content), len(content), content_type)


def links(kind, target, mode="External"):
    link = f'<Relationship Id="r1" Type="{_TYPE}/{kind}" Target="{target}" TargetMode="{mode}"/>'
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{link}</Relationships>'


def kinds(kind):
    override = f'<Override PartName="/word/x" ContentType="{kind}"/>'
    return f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{override}</Types>'


@pytest.mark.parametrize(
    "name",
    [
        "word/vbaProject.bin",
        "word/vbaProject.bin ",
        "word/VBAPROJECT.BIN.",
        "word\\vbaProject.bin",
        "word//vbaproject.bin",
        "word/ vbaProject.bin",
        "word/vba%50roject.bin",
        "word/vbaProject.bi\u200bn",
        "word/\uff56baProject.bin",
        "word/vbaData.xml",
        "xl/macrosheets/sheet1.xml",
        "Basic/Standard/Module1.xml",
        "Scripts/python/x.py",
    ],
)
def test_macros_are_refused_under_every_spelling_of_their_name(name):
    with pytest.raises(Rejected, match="contains macros"):
        look(files.docx(**{name: "x"}), files.DOCX)


@pytest.mark.parametrize("name", ["word/embeddings/oleObject1.bin", "word/media/image1.png", "docProps/thumbnail.jpeg"])
def test_an_embedded_object_is_refused_by_its_content_under_any_name(name):
    with pytest.raises(Rejected, match="contains an embedded object or macros"):
        look(files.docx(**{name: OLE}), files.DOCX)
    with pytest.raises(Rejected, match="contains a program"):
        look(files.docx(**{name: b"MZ" + b"\0" * 60}), files.DOCX)


@pytest.mark.parametrize(
    "kind",
    [
        "application/vnd.ms-word.document.macroEnabled.main+xml",
        "application/vnd.ms-office.vbaProject",
        "application/vnd.openxmlformats-officedocument.oleObject",
        "application/vnd.ms-office.activeX+xml",
        "application/vnd.ms-excel.macrosheet+xml",
    ],
)
def test_a_part_that_is_declared_as_a_program_is_refused_under_any_name(kind):
    with pytest.raises(Rejected, match="macros, controls or embedded objects"):
        look(files.docx(**{"[Content_Types].xml": kinds(kind), "word/x": "x"}), files.DOCX)


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/t.dotm", "HTTP://evil.example", "\\\\evil.example\\t.dotm", "//evil.example/t.dotm",
     "file://evil.example/t.dotm", "file:////evil.example/t.dotm", "mhtml:https://evil.example!x", "%68ttps://evil.example"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["attachedTemplate", "oleObject", "image", "frame", "externalLinkPath"])
def test_a_document_that_loads_a_part_from_elsewhere_is_refused(kind, target):
    with pytest.raises(Rejected, match="from another computer"):
        look(files.docx(**{"word/_rels/settings.xml.rels": links(kind, target)}), files.DOCX)
    with pytest.raises(Rejected, match="from another computer"):
        look(files.docx(**{"word/_rels/settings.xml.RELS ": links(kind, target, " external ")}), files.DOCX)


@pytest.mark.parametrize(
    ("kind", "target", "mode"),
    [
        ("hyperlink", "https://harbour.example/", "External"),
        ("attachedTemplate", "file:///C:\\Users\\ada\\Templates\\letter.dotm", "External"),
        ("externalLinkPath", "budget.xlsx", "External"),
        ("image", "media/image1.png", "Internal"),
        ("package", "../embeddings/Microsoft_Excel_Sheet1.xlsx", "Internal"),
    ],
)
def test_links_that_a_reader_clicks_and_parts_of_the_file_pass(kind, target, mode):
    parts = {"word/_rels/document.xml.rels": links(kind, target, mode), "word/embeddings/sheet.xlsx": files.xlsx()}
    look(files.docx(**parts), files.DOCX)


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"Word/Document.xml": "x"}, "two parts of one name"),
        ({"word/_rels/a.rels": "<!DOCTYPE x [<!ENTITY y 'z'>]><x/>"}, "declares entities"),
        ({"word/_rels/a.rels": "<x>"}, "damaged"),
        ({"word/_rels/a.rels": "<x/>" + " " * active_content.MAX_DESCRIPTION_BYTES}, "too many links"),
        (
            {"word/_rels/a.rels": "<x>" + "<y/>" * active_content.MAX_DESCRIBING_ELEMENTS + "</x>"},
            "too many links",
        ),
        ({f"word/_rels/{name}.rels": "<x>" + "<y/>" * 25_000 + "</x>" for name in "ab"}, "too many links"),
        ({"word/activeX/activeX1.xml": "<x/>"}, "contains controls"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_descriptions_that_cannot_be_trusted_are_refused(parts, reason):
    with pytest.raises(Rejected, match=reason):
        look(files.docx(**parts), files.DOCX)


@pytest.mark.parametrize(
    ("hidden", "reason"),
    [
        (b"<html><script>alert(1)</script>", "both a PDF and a web page"),
        (b"<HTML>", "both a PDF and a web page"),
        (b"<< /S /JavaScript /JS (app.alert(1)) >>", "contains scripts"),
        (b"<< /S /Java#53cript /JS (app.alert(1)) >>", "contains scripts"),
        (b"<< /S #2f#4A#61#76#61#53#63#72#69#70#74 /JS (app.alert(1)) >>", "contains scripts"),
        (b"<< /S /JavaScript#20 /JS (app.alert(1)) >>", "contains scripts"),
        (b"<< /S /Launch /F (cmd.exe) >>", "starts programs"),
    ],
)
@pytest.mark.parametrize("at", [2_000, (1 << 20) - 30])
def test_a_pdf_is_searched_to_its_end(hidden, reason, at):
    content = files.pdf()
    with pytest.raises(Rejected, match=reason):
        look(content + b"%" * (at - len(content)) + b"\n" + hidden + b"\n" + content, files.PDF)


@pytest.mark.parametrize("end", [b"s", b"#73", b"_", b"#5F", b"-", b"#2d", b".", b"#2E", b"9", b"#39", b"Z", b"#5A"])
def test_a_longer_name_in_a_pdf_is_another_name(end):
    look(files.pdf() + b"\n/JavaScript" + end + b" /Launch" + end + b"\n" + files.pdf(), files.PDF)


def test_a_pdf_of_escapes_is_judged_in_little_time():
    began_s = time.process_time()
    active_content.check_pdf(io.BytesIO(b"#41" * 9_000_000))
    assert time.process_time() - began_s < 2.5


def test_describing_elements_count_up_to_their_limit():
    content = b"<x>" + b"<y/>" * 9 + b"</x>"
    assert active_content._check_elements(content, 10) == 10
    with pytest.raises(active_content.ActiveContent, match="too many links"):
        active_content._check_elements(content, 9)


@pytest.mark.parametrize(
    "content",
    [
        b"<!-- a comment --><html>",
        b"\xef\xbb\xbf <!-- one -->\n<!-- two --> <?x y?><script>",
        b"<!----><svg onload=alert(1)>",
        b"<body onload=alert(1)>",
        b"<!--" + b"x" * 9_000 + b"--><html>",
        b"<!--" + b"x" * 90_000 + b"--><html>",
    ],
)
@pytest.mark.parametrize("content_type", ["text/plain", "text/markdown", "text/csv"])
def test_a_text_that_begins_as_a_web_page_after_comments_is_refused(content, content_type):
    with pytest.raises(Rejected, match="a web page"):
        look(content, content_type)


@pytest.mark.parametrize("content", [b"<!-- a comment -->\n# Minutes", b"<div align=center>Logo</div>", b"a < b"])
def test_markdown_with_comments_and_a_little_html_passes(content):
    look(content, "text/markdown")


@pytest.mark.django_db
def test_a_document_with_active_content_is_rejected_and_its_owner_reads_why(owner, company):
    with pytest.raises(BadRequest, match=r"The Word file contains macros\. Save it without them\."):
        uploaded(owner, company, files.docx(**{"word/vbaProject.bin ": "x"}), "charter.docx")
