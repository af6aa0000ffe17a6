"""Versions of the settings: who may apply them, their history, and the file at the start."""

import io
import logging
from collections.abc import Iterator

import pytest
from PIL import Image

from make.registry import owner
from muniment import config
from muniment.accounts.security.events import Event
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry.models import RegistryVersion
from muniment.registry.settings import versions
from muniment.registry_toml import applied, queries
from muniment.registry_toml.document import DEFAULT
from muniment.registry_toml.reading import InvalidSettings, check

pytestmark = pytest.mark.django_db

FIRST = check({"registry": {"name": "Guild of Clockmakers"}})
SECOND = check({"registry": {"name": "Guild"}, "sections": {"token": False}, "vocabulary": {"types": ["A", "B"]}})
FORGED = "/pictures/" + "0" * 32 + "-512.webp"


@pytest.fixture(autouse=True)
def folder(tmp_path) -> Iterator[None]:
    """Use a data folder of its own for the file and the copy."""
    before = config.current()
    config.use(config.Config(data=tmp_path))
    yield
    config.use(before)


def png(width: int = 64, height: int = 64) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "#0b5d3b").save(out, "PNG")
    return out.getvalue()


def test_a_version_is_applied_and_recorded(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        assert versions.apply_settings(COMMAND, FIRST) == 1
    assert applied.registry_name() == "Guild of Clockmakers"
    event = SecurityEvent.objects.get(event=Event.REGISTRY_CHANGED)
    assert event.detail == {"version": 1, "changed": ["registry.name"]}
    assert versions.apply_settings(COMMAND, FIRST) == 1
    assert RegistryVersion.objects.count() == 1


def test_the_history_says_what_changed_and_a_version_can_be_restored():
    assert versions.list_versions() == []
    versions.apply_settings(COMMAND, FIRST, note="first")
    versions.apply_settings(COMMAND, SECOND)
    newest, first = versions.list_versions()
    assert newest.changes == [
        ("registry.name", "Guild of Clockmakers", "Guild"),
        ("sections.token", "", "off"),
        ("vocabulary.types", "", "A, B"),
    ]
    assert (first.note, first.author) == ("first", "command line")
    assert versions.restore_version(COMMAND, 1) == 3
    assert versions.latest_version().settings == FIRST
    assert versions.restore_version(COMMAND, 0) == 4
    assert versions.latest_version().settings == DEFAULT


def test_stamps_rise():
    for each in (FIRST, SECOND, FIRST):
        versions.apply_settings(COMMAND, each)
    stamps = list(RegistryVersion.objects.order_by("number").values_list("stamp", flat=True))
    assert stamps == sorted(set(stamps))


def test_only_operators_apply_and_restore():
    with pytest.raises(Forbidden):
        versions.apply_settings(owner(), FIRST)
    with pytest.raises(Forbidden):
        versions.restore_version(owner(), 0)


def test_a_page_that_is_behind_and_an_unknown_version_are_refused():
    versions.apply_settings(COMMAND, FIRST)
    with pytest.raises(Conflict):
        versions.apply_settings(COMMAND, SECOND, expected_number=0)
    with pytest.raises(NotFound):
        versions.get_version(7)


def test_a_changed_file_is_applied_once_and_does_not_undo_a_later_page(tmp_path):
    assert versions.apply_file() is None
    file = tmp_path / "registry.toml"
    file.write_text('[registry]\nname = "From the file"\n[brand]\nlogo = "logo.png"\n')
    (tmp_path / "logo.png").write_bytes(png(256, 64))
    result = versions.apply_file()
    assert result is not None
    assert result.number == 1
    brand = versions.latest_version().settings.brand
    assert brand.logo.startswith("/pictures/")
    assert brand.logo_ratio == 400
    versions.apply_settings(COMMAND, FIRST)
    assert versions.apply_file() is None
    assert versions.latest_version().settings == FIRST
    (tmp_path / "logo.png").write_bytes(png(128, 64))
    versions.settle()
    assert versions.latest_version().settings.brand.logo_ratio == 200


def test_a_broken_file_leaves_the_last_version_and_says_so(tmp_path, caplog):
    versions.apply_settings(COMMAND, FIRST)
    (tmp_path / "registry.toml").write_text("[registry")
    with caplog.at_level(logging.ERROR):
        versions.settle()
    assert "version 1 of the settings stays" in caplog.text
    assert "not TOML" in caplog.text
    assert applied.current() == FIRST


def test_a_file_that_is_missing_or_too_large_is_a_fault(tmp_path):
    file = tmp_path / "registry.toml"
    file.write_text('[brand]\nmark = "mark.svg"\n')
    result = versions.apply_file()
    assert result is not None
    assert "mark.svg cannot be read" in result.faults[0]
    with (tmp_path / "mark.svg").open("wb") as mark:
        mark.truncate(50 << 20)
    result = versions.apply_file()
    assert result is not None
    assert "larger than 2 MB" in result.faults[0]


def test_a_saved_query_that_cannot_be_answered_is_named_and_knows_the_declared_fields():
    declared = [{"of": "company", "key": "berth", "label": "Berth", "kind": "text"}]
    query = {"slug": "berths", "title": "Berths", "sql": "SELECT berth FROM companies WHERE slug = :slug"}
    with pytest.raises(InvalidSettings) as refused:
        versions.apply_settings(COMMAND, check({"queries": [query]}))
    assert list(refused.value.faults) == ["queries.berths.sql"]
    assert "There is no column berth" in str(refused.value)
    versions.apply_settings(COMMAND, check({"queries": [query], "fields": declared}))
    assert versions.latest_version().settings.queries[0].title == "Berths"
    assert queries.saved_query("open-votes") in queries.SHIPPED


def test_a_picture_with_a_script_or_that_is_not_stored_is_refused():
    script = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    with pytest.raises(InvalidSettings, match="script") as caught:
        versions.apply_settings(COMMAND, FIRST, artwork={"logo": script})
    assert set(caught.value.faults) == {"brand.logo"}
    with pytest.raises(InvalidSettings, match="no picture"):
        versions.apply_settings(COMMAND, check({"brand": {"mark": FORGED}}))


def test_an_svg_is_drawn():
    drawing = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 10"><rect width="40" height="10"/></svg>'
    versions.apply_settings(COMMAND, FIRST, artwork={"logo": drawing})
    assert versions.latest_version().settings.brand.logo_ratio == 400
    versions.apply_settings(COMMAND, check({"brand": {"logo_ratio": 400}}))
    assert versions.latest_version().settings.brand.logo_ratio == 0


def test_a_version_of_a_later_release_is_read_as_far_as_it_is_known():
    RegistryVersion.objects.create(number=1, stamp="", via="web", document={"registry": {"name": "A", "motto": "B"}})
    assert versions.latest_version().settings == check({"registry": {"name": "A"}})


def test_a_damaged_copy_is_replaced_from_the_database(tmp_path, caplog):
    versions.apply_settings(COMMAND, FIRST)
    (tmp_path / applied.COPY).write_text("{")
    assert applied.look() == applied.NONE
    assert "cannot be read" in caplog.text
    assert versions.follow()
    assert not versions.follow()
    assert applied.current() == FIRST


def test_a_language_without_a_catalogue_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidSettings, match="tlh") as refused:
        versions.apply_settings(COMMAND, check({"registry": {"languages": ["en", "tlh"]}}))
    assert "registry.languages" in refused.value.faults
    assert not RegistryVersion.objects.exists()
