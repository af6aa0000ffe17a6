"""Catalogues: what ships is whole, an operator's adds and overrides, and none of them breaks a page."""

import os
from pathlib import Path

import polib
import pytest

from muniment import config
from muniment.languages import catalogues

HEAD = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"""


@pytest.fixture
def site(tmp_path):
    before = config.current()
    config.use(config.Config(data=tmp_path / "data", site_folder=str(tmp_path / "site")))
    catalogues.installed.cache_clear()
    catalogues._read_own.cache_clear()
    yield tmp_path / "site" / "locale"
    config.use(before)
    catalogues.installed.cache_clear()
    catalogues._read_own.cache_clear()


def write(folder: Path, language: str, body: str) -> Path:
    place = folder / language / "LC_MESSAGES" / "django.po"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(HEAD + body, "utf-8")
    catalogues._read_own.cache_clear()
    catalogues.installed.cache_clear()
    return place


def compiled(language: str) -> dict[str, str]:
    path = catalogues.compiled_folder() / language / "LC_MESSAGES" / "django.mo"
    return {entry.msgid: entry.msgstr for entry in polib.mofile(str(path))}


def test_german_ships_and_has_no_fault():
    assert catalogues.shipped() == ("en", "de")
    (source,) = [path for code, path in catalogues.languages(catalogues.SHIPPED) if code == "de"]
    assert [fault for entry in polib.pofile(str(source)) for fault in catalogues.faults(entry)] == []


def test_an_operators_catalogue_is_a_further_language(site):
    write(site, "pt_BR", '\nmsgid "Sign in"\nmsgstr "Entrar"\n')
    assert catalogues.installed() == ("en", "de", "pt-br")
    assert catalogues.locale_paths() == [str(catalogues.compiled_folder()), str(catalogues.SHIPPED)]
    assert compiled("pt_BR") == {"Sign in": "Entrar"}


def test_a_changed_catalogue_is_compiled_again_and_an_unchanged_one_is_not(site):
    source = write(site, "fr", '\nmsgid "Sign in"\nmsgstr "Connexion"\n')
    catalogues.locale_paths()
    target = catalogues.compiled_folder() / "fr" / "LC_MESSAGES" / "django.mo"
    first = target.stat().st_ino
    catalogues.locale_paths()
    assert target.stat().st_ino == first
    source = write(site, "fr", '\nmsgid "Sign in"\nmsgstr "Se connecter"\n')
    os.utime(source, ns=(1, 1))
    catalogues.locale_paths()
    assert compiled("fr") == {"Sign in": "Se connecter"}


def test_a_catalogue_that_was_taken_away_has_no_effect(site):
    write(site, "de", '\nmsgid "Sign in"\nmsgstr "Einloggen"\n')
    french = write(site, "fr", '\nmsgid "Sign in"\nmsgstr "Connexion"\n')
    catalogues.locale_paths()
    french.unlink()
    catalogues.locale_paths()
    assert [each.parents[1].name for each in catalogues.compiled_folder().glob("*/*/*.mo")] == ["de"]


@pytest.mark.parametrize(
    ("message", "translation", "fault"),
    [
        ("%(name)s left", "%(nam)s weg", "is no placeholder"),
        ("%(name)s left", "weg", "is missing"),
        ("%(share)s%% of it", "%(share)s% davon", "written twice"),
        (" and ", "und", "blank"),
        ("{name} left", "{nam} weg", "is no placeholder"),
        ("{name} left", "{name.__class__} weg", "is missing"),
        ("{name} left", "{name:>999999999} weg", "is missing"),
    ],
)
def test_a_message_that_would_break_a_page_is_not_used(site, caplog, message, translation, fault):
    write(site, "de", f'\nmsgid "{message}"\nmsgstr "{translation}"\n\nmsgid "Sign in"\nmsgstr "Einloggen"\n')
    catalogues.locale_paths()
    assert compiled("de") == {"Sign in": "Einloggen"}
    assert fault in caplog.text


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'msgid "a\nmsgstr "b"\n', b"no catalogue\n"])
def test_a_catalogue_that_cannot_be_read_is_left_out_and_named(site, caplog, content):
    place = write(site, "fr", "")
    place.write_bytes(content)
    catalogues._read_own.cache_clear()
    assert catalogues.installed() == ("en", "de")
    assert catalogues.locale_paths() == [str(catalogues.SHIPPED)]
    assert str(place) in caplog.text


def test_a_catalogue_that_is_too_large_is_left_out(site, monkeypatch, caplog):
    monkeypatch.setattr(catalogues, "MAX_BYTES", 10)
    write(site, "fr", '\nmsgid "Sign in"\nmsgstr "Connexion"\n')
    assert catalogues.installed() == ("en", "de")
    assert "is not used" in caplog.text


def test_folders_that_are_no_languages_are_ignored(site):
    for name in ("..de", "README", "de-DE-1996", "templates"):
        write(site, name, '\nmsgid "Sign in"\nmsgstr "x"\n')
    assert catalogues.installed() == ("en", "de")
