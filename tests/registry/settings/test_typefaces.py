"""Fonts of a registry: what is accepted, where it is served, and what pages load then."""

import struct

import pytest
from django.test import Client

from muniment.registry.models import BrandFont
from muniment.registry.settings.artwork import store_artwork
from muniment.registry.settings.typefaces import MAX_BYTES, NotAFont, store_font
from muniment.registry_toml.document import DEFAULT, RegistrySettings
from muniment.registry_toml.reading import InvalidSettings, check
from muniment.web.branding import brand_of, style_sheet

pytestmark = pytest.mark.django_db


def woff2(*, flavor=b"\x00\x01\x00\x00", length=None, tables=3, unpacked=1000, size=64) -> bytes:
    """Return a file with the header of a WOFF2 font."""
    head = struct.pack(">4s4sIHHI", b"wOF2", flavor, size if length is None else length, tables, 0, unpacked)
    return head.ljust(size, b"\0")


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a WOFF2"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a WOFF2"),
        (woff2(flavor=b"ttcf"), "not a WOFF2"),
        (woff2(length=65), "cut off"),
        (woff2(tables=0), "not a WOFF2"),
        (woff2(unpacked=100 << 20), "8 MB"),
        (woff2(size=MAX_BYTES + 1), "at most"),
    ],
)
def test_what_is_no_font_or_too_large_is_refused(content, says):
    with pytest.raises(NotAFont, match=says):
        store_font(content)
    assert not BrandFont.objects.exists()


def test_a_font_is_stored_once_and_served_for_ever():
    path = store_font(woff2())
    assert store_font(woff2()) == path
    assert BrandFont.objects.count() == 1
    answer = Client().get(path)
    assert (answer.status_code, answer["Content-Type"], answer.content) == (200, "font/woff2", woff2())
    assert "immutable" in answer["Cache-Control"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert Client().get(f"/fonts/{'0' * 32}.woff2").status_code == 404


def test_faults_name_the_font():
    with pytest.raises(InvalidSettings) as refused:
        store_artwork(DEFAULT, {"font_text": b"nothing"})
    assert "brand.font_text" in refused.value.faults
    forged = check({"brand": {"font_headings": f"/fonts/{'0' * 32}.woff2"}})
    with pytest.raises(InvalidSettings, match="Upload it again"):
        store_artwork(forged, {})
    for brand in ({"typeface": "comic"}, {"font_text": "../text.woff2"}, {"font_text": "text.ttf"}):
        with pytest.raises(InvalidSettings):
            check({"brand": brand})


def test_pages_use_uploaded_fonts_and_none_of_another_site():
    found = store_artwork(DEFAULT, {"font_text": woff2()})
    sheet = style_sheet(found)
    assert f'url("{found.brand.font_text}")' in sheet
    assert '--sans: "Registry text"' in sheet
    assert '--serif: "Registry text"' in sheet  # headings follow
    assert "http" not in sheet
    assert store_artwork(found, {}) == found, "a font that is stored need not be uploaded again"
    assert not brand_of(found).is_bundled


def test_the_fonts_of_the_system_need_no_file():
    found = check({"brand": {"typeface": "system"}})
    assert style_sheet(found) == (":root {\n  --sans: system-ui, sans-serif;\n  --serif: system-ui, sans-serif;\n}\n")
    assert brand_of(RegistrySettings()).is_bundled
    assert style_sheet(RegistrySettings()) == ""
