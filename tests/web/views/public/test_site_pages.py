"""Declared brand and texts on public pages, and the legal pages."""

import json
import re

import pytest
from django.test import Client

from make.declared import declared
from make.published import Publisher, company
from muniment.registry_toml import contrast
from muniment.store.reader import Reader
from muniment.web.requests import page_cache

PICTURE = "/pictures/" + "0" * 32 + "-512.webp"


@pytest.fixture
def visitor(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1, "harbour"))
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client()
    page_cache.use(None)
    reader.close()
    publisher.close()


def text(visitor, path):
    answer = visitor.get(path)
    assert answer.status_code == 200, (path, answer.content[:300])
    return answer.content.decode()


def test_pages_show_the_declared_name_and_texts_and_then_the_built_in_ones(visitor):
    before = text(visitor, "/")
    sections = {
        "registry": {"name": "Guild & Co", "contact": "office@clocks.example", "licence": "CC BY 4.0"},
        "texts": {"heading": "Clocks", "lead": "All <makers>", "tagline": "the makers", "footer": "Since 1801"},
        "legal": {"imprint": "# Imprint\n\nHourglass Lane 1 <script>"},
    }
    with declared(**sections):
        page = text(visitor, "/")
    for shown in ("<h1>Clocks</h1>", "All &lt;makers&gt;", "Guild &amp; Co: the makers</title>", "Since 1801"):
        assert shown in page
    assert 'href="mailto:office@clocks.example"' in page
    assert 'href="/imprint"' in page
    assert 'href="/terms"' not in page
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', page)
    assert found is not None
    assert json.loads(found[1])["license"] == "CC BY 4.0"
    assert text(visitor, "/") == before


def test_legal_pages_exist_only_with_a_text(visitor):
    assert visitor.get("/imprint").status_code == 404
    with declared(legal={"imprint": "# Imprint\n\nHourglass Lane 1 <script>alert(1)</script>"}):
        page = text(visitor, "/imprint")
        assert page.count("<h1") == 1
        assert "Hourglass Lane 1" in page
        assert "<h2" not in page
        assert "alert(1)</script>" not in page
        assert visitor.get("/privacy").status_code == 404
    with declared(legal={"terms": "# Terms\n\n## Be kind\n\nAlways.\n\n### Always\n\nYes."}):
        page = text(visitor, "/terms")
        assert ">Be kind</h2>" in page.replace(' dir="auto"', "")
        assert ">Always</h3>" in page.replace(' dir="auto"', "")
    assert visitor.get("/imprint").status_code == 404


def test_declared_colors_come_as_a_style_sheet(visitor):
    assert "/brand." not in text(visitor, "/companies")
    with declared(brand={"accent": "#0b5d3b"}):
        found = re.search(r'href="(/brand\.[0-9a-f]{12}\.css)"', text(visitor, "/companies"))
        assert found is not None
        sheet = visitor.get(found[1])
        assert "--seal: light-dark(#0b5d3b, " in sheet.content.decode()
        dark = re.search(r"--seal: light-dark\(#0b5d3b, (#[0-9a-f]{6})\)", sheet.content.decode())
        assert dark is not None
        assert contrast.least_contrast(dark[1], contrast.DARK) >= contrast.LEAST
        assert "immutable" in sheet["Cache-Control"]
        assert "max-age=3600" in visitor.get("/brand.000000000000.css")["Cache-Control"]
    assert visitor.get(found[1]).status_code == 404


@pytest.mark.parametrize(("ratio", "size"), [(400, (144, 36)), (2_000, (200, 10)), (100, (36, 36))])
def test_a_logo_stands_for_the_name_in_the_header(visitor, ratio, size):
    with declared(registry={"name": "Guild"}, brand={"logo": PICTURE, "mark": PICTURE, "logo_ratio": ratio}):
        page = text(visitor, "/")
    width, height = size
    assert f'<img src="{PICTURE}" alt="Guild" width="{width}" height="{height}">' in page
    assert f'rel="icon" type="image/webp" href="{PICTURE.replace("512", "144")}"' in page


def test_a_mark_stands_beside_the_name(visitor):
    with declared(registry={"name": "Guild"}, brand={"mark": PICTURE}, fields=[{"name": "x"}]):
        assert 'alt="" width="28" height="28">Guild</a>' in text(visitor, "/")
