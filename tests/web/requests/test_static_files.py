"""Static files of an operator's own: what is served of their folder."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from muniment import web
from muniment.web.requests.static_files import asset


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    own = tmp_path / "static"
    own.mkdir()
    with override_settings(STATICFILES_DIRS=[own]):
        asset.cache_clear()
        yield own
    asset.cache_clear()


def test_a_file_and_a_link_within_the_folder_are_served(folder):
    (folder / "terms.txt").write_text("terms")
    (folder / "link.txt").symlink_to(folder / "terms.txt")
    assert asset("terms.txt")
    assert asset("link.txt")
    assert asset("web/muniment.css")


@pytest.mark.parametrize("name", [".htpasswd", ".git/config", "deep/.env", "../secret.txt", "a/../../secret.txt"])
def test_hidden_files_and_files_outside_are_not_served(folder, name):
    place = folder / name
    for parent in (folder / "a", place.parent):
        parent.mkdir(parents=True, exist_ok=True)
    place.write_text("secret")
    assert asset(name) is None


def test_a_link_that_leaves_the_folder_is_not_served(folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "all").symlink_to(tmp_path)
    assert asset("link.txt") is None
    assert asset("all/secret.txt") is None


def test_what_the_layout_is_measured_by_follows_the_size_of_letters():
    """A browser whose default font is 32 px gets the layout of a screen half as wide."""
    style = (Path(web.__file__).parent / "static" / "web" / "muniment.css").read_text()
    assert not re.findall(r"@media[^{]*-width: *[\d.]+px", style)
    columns = re.findall(r"grid-template-columns:([^;]*);", style)
    assert not [each for each in columns if re.search(r"\d{2,}px", each)]
