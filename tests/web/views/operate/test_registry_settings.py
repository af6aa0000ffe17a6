"""The operator's page of the registry's settings: preview, faults, versions and restoring."""

import io
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from make.accounts import account, signed_in
from muniment.kernel.actor import COMMAND
from muniment.registry.models import RegistryVersion
from muniment.registry.settings import versions
from muniment.registry_toml.document import DEFAULT
from muniment.registry_toml.reading import check
from muniment.web.views.operate.registry_settings import form_values

pytestmark = pytest.mark.django_db
PAGE = "/operate/registry"
SCRIPT = b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"
FIRST = check({"registry": {"name": "Guild"}, "fields": [{"preset": "foundedOn"}], "sections": {"token": False}})


@pytest.fixture
def operator():
    return signed_in(account("operator@harbour.example", "operator"))


def png(width=64, height=64) -> SimpleUploadedFile:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "#0b5d3b").save(out, "PNG")
    return SimpleUploadedFile("logo.png", out.getvalue(), "image/png")


def sent(**values):
    """Return the values of an untouched form, with *values*."""
    shown = form_values(DEFAULT)
    return {name: value if isinstance(value, str) else "on" for name, value in shown.items()} | values


def test_a_preview_applies_nothing_and_an_upload_survives_it(operator):
    answer = operator.post(
        PAGE, sent(registry__name="Guild of Clocks", brand__accent="#0b5d3b", logo_file=png(256), do="preview")
    )
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Nothing is applied yet." in page
    assert "Guild of Clocks" in page
    assert not RegistryVersion.objects.exists()
    path = re.search(r'name="kept_logo" value="(/pictures/[^"]+)"', page)
    assert path is not None
    sheet = re.search(r'href="(/operate/registry/preview\.css[^"]+)"', page)
    assert sheet is not None
    colors = operator.get(sheet[1].replace("&amp;", "&")).content.decode()
    assert colors.startswith(".previewed {")
    assert "#0b5d3b" in colors
    answer = operator.post(
        PAGE, sent(registry__name="Guild of Clocks", kept_logo=path[1], kept_ratio="400", do="apply", version="0")
    )
    assert answer.status_code == 302
    assert versions.latest_version().settings.brand.logo == path[1]


def test_what_the_page_does_not_show_stays(operator):
    versions.apply_settings(COMMAND, FIRST)
    operator.post(PAGE, sent(registry__name="Guild two", note="a new name", version="1"))
    latest = versions.latest_version().settings
    assert (latest.registry.name, latest.fields) == ("Guild two", FIRST.fields)
    newest = versions.list_versions()[0]
    assert (newest.author, newest.note) == ("operator@harbour.example", "a new name")
    assert "operator@harbour.example" in operator.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"brand__accent": "#7fd0a8"}, "4.5:1 is needed"),
        ({"registry__contact": "the office"}, "email address"),
        (
            {"logo_file": SimpleUploadedFile("a.svg", SCRIPT)},
            "script",
        ),
        ({"mark_file": SimpleUploadedFile("a.png", b"\x89PNG" + b"0" * (3 << 20))}, "At most 2 MB"),
        ({"kept_mark": "/pictures/" + "0" * 32 + "-512.webp"}, "no picture"),
    ],
)
def test_a_fault_is_shown_at_its_field_and_nothing_is_lost(operator, values, says):
    answer = operator.post(PAGE, sent(registry__name="Guild of Clocks", **values))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert says in page
    assert 'value="Guild of Clocks"' in page
    assert not RegistryVersion.objects.exists()


def test_colors_of_a_preview_are_checked(operator):
    for query in ("accent=%23ffffff", "accent=red;}", ""):
        assert operator.get(f"{PAGE}/preview.css?{query}").content == b""


def test_a_page_that_is_behind_changes_nothing(operator):
    versions.apply_settings(COMMAND, FIRST)
    answer = operator.post(PAGE, sent(registry__name="Other", version="0"))
    assert "changed by someone else" in answer.content.decode()
    assert versions.latest_version().settings == FIRST


def test_a_version_is_restored(operator):
    versions.apply_settings(COMMAND, FIRST)
    assert operator.post(f"{PAGE}/0/restore").status_code == 302
    assert versions.latest_version().settings.registry.name == ""
    operator.post(f"{PAGE}/1/restore")
    assert versions.latest_version().settings == FIRST


def test_pictures_can_be_removed(operator):
    versions.apply_settings(COMMAND, FIRST, artwork={"mark": png().read()})
    kept = versions.latest_version().settings.brand.mark
    operator.post(PAGE, sent(kept_mark=kept, remove_mark="on", version="1"))
    assert versions.latest_version().settings.brand.mark == ""


def test_the_form_shows_lists_by_lines_and_texts_as_they_are():
    assert form_values(FIRST)["registry__name"] == "Guild"


def test_vocabulary_and_sections_are_set_by_lines_and_boxes(operator):
    values = sent(vocabulary__types="Workshop\r\nSchool\r\n")
    del values["sections__token"]
    operator.post(PAGE, values)
    latest = versions.latest_version().settings
    assert latest.vocabulary.types == ("Workshop", "School")
    assert (latest.sections.token, latest.sections.proposals) == (False, True)
    page = operator.get(PAGE).content.decode()
    assert "Workshop\nSchool</textarea>" in page
    assert re.search(r'name="sections__proposals"[^>]* checked', page)
    assert not re.search(r'name="sections__token"[^>]* checked', page)
