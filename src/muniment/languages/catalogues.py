"""
Message catalogues: those that ship, and those of the operator's folder, which may add languages or replace messages.

A catalogue is ``<language>/LC_MESSAGES/django.po``. Python reads its compiled form, which the wheel has beside it. One
that has none, or an older one, is compiled when a process starts: in place in a checkout, and in the data folder for
the operator's.
"""

import functools
import hashlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polib

from muniment import config
from muniment.durable_files import replacing

SOURCE: Final = "en"
"""The language of the texts in the code, which needs no catalogue."""
SHIPPED: Final = Path(__file__).parents[1] / "locale"
COMPILED: Final = "catalogues"
"""The folder of compiled catalogues in a data folder."""
MAX_BYTES: Final = 8 << 20
_PLACE: Final = Path("LC_MESSAGES") / "django.po"
_CODE: Final = re.compile(r"(?P<language>[a-z]{2,3})(?:_(?P<part>[A-Za-z]{2,8}))?")
_PLACEHOLDER: Final = re.compile(
    r"%\((?P<name>\w+)\)(?P<kind>[a-z])|\{(?P<field>\w+)(?:!r)?(?::[^{}]{0,6})?\}|%(?P<plain>[sdif])"
)
log = logging.getLogger(__name__)


def languages(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each language that *folder* has a catalogue of, as in ``lang="pt-br"``, and the catalogue."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return
    for each in found:
        source = each / _PLACE
        if _CODE.fullmatch(each.name) and source.is_file():
            yield each.name.lower().replace("_", "-"), source


def own_folder() -> Path:
    """Return the operator's folder, which need not exist."""
    return config.current().site / "locale"


def compiled_folder() -> Path:
    """Return where the operator's catalogues are compiled: a command with another folder of them has another one."""
    name = hashlib.sha256(str(own_folder()).encode()).hexdigest()[:12]
    return (config.current().data / COMPILED / name).absolute()


@functools.cache
def shipped() -> tuple[str, ...]:
    """Return the languages that ship; the language of the code is the first."""
    return (SOURCE, *(code for code, _ in languages(SHIPPED) if code != SOURCE))


@functools.cache
def installed() -> tuple[str, ...]:
    """Return every language that this process can show; further ones are found at the next start."""
    own = [code for code, source in languages(own_folder()) if _read_own(source) is not None]
    return tuple(dict.fromkeys((*shipped(), *own)))


def locale_paths() -> list[str]:
    """Compile what needs it, and return the folders for Django, those whose messages come first before others."""
    for _, source in languages(SHIPPED):
        _compile_shipped(source)
    target = compiled_folder()
    found = [source.parents[1].name for _, source in languages(own_folder()) if _compile_own(source, target)]
    for former in target.glob("*/LC_MESSAGES/django.mo"):
        if former.parents[1].name not in found:
            former.unlink(missing_ok=True)  # the operator took its source away
    return [str(target), str(SHIPPED)] if found else [str(SHIPPED)]


def is_current(source: Path, compiled: Path) -> bool:
    """Return whether *compiled* was made of *source* as it is now."""
    try:
        return source.stat().st_mtime_ns == compiled.stat().st_mtime_ns
    except OSError:
        return False


def compile_catalogue(catalogue: polib.POFile, source: Path, compiled: Path) -> None:
    """Write the compiled form of a catalogue whole, with the time of its source."""
    modified = source.stat().st_mtime_ns
    compiled.parent.mkdir(parents=True, exist_ok=True)
    with replacing(compiled) as file:
        file.write(catalogue.to_binary())
    os.utime(compiled, ns=(modified, modified))


def faults(entry: polib.POEntry) -> Iterator[str]:
    """Yield what is wrong with a translated message: its placeholders differ from those of the text, or its blanks."""
    texts = entry.msgstr_plural.values() if entry.msgid_plural else (entry.msgstr,)
    wanted = placeholders(entry.msgid) | placeholders(entry.msgid_plural)
    for text in texts:
        if not text:
            yield "there is no translation"
        elif unknown := placeholders(text) - wanted:
            yield f"{', '.join(sorted(unknown))} is no placeholder of the text"
        elif not entry.msgid_plural and (lost := wanted - placeholders(text)):
            yield f"{', '.join(sorted(lost))} is missing"
        elif _has_percent(entry.msgid) and re.search(r"%(?![%(sdif])", text.replace("%%", "")):
            yield "a percent sign must be written twice"
        if text[:1].isspace() != entry.msgid[:1].isspace() or text[-1:].isspace() != entry.msgid[-1:].isspace():
            yield "the blank at its beginning or end differs"


def placeholders(text: str) -> frozenset[str]:
    """Return the placeholders of a text."""
    names = set()
    for match in _PLACEHOLDER.finditer(re.sub(r"%%|\{\{|\}\}", "", text)):
        # How a value is written may differ: “{slug}” for {slug!r}.
        names.add(f"{{{match['field']}}}" if match["field"] else match[0])
    return frozenset(names)


def _has_percent(text: str) -> bool:
    return bool(re.search(r"%\(\w+\)|%[sd]", text))


def _compile_shipped(source: Path) -> None:
    compiled = source.with_suffix(".mo")
    if is_current(source, compiled):
        return
    if compiled.is_file() and not (source.parents[5] / "pyproject.toml").is_file():
        return  # an installed package: the wheel's own, whose times the installer chose
    try:
        compile_catalogue(polib.pofile(str(source)), source, compiled)
    except OSError as error:
        log.warning("%s cannot be compiled: %s", source, error)


def _compile_own(source: Path, target: Path) -> bool:
    compiled = target / source.parents[1].name / _PLACE.with_suffix(".mo")
    if is_current(source, compiled):
        return True
    catalogue = _read_own(source)
    if catalogue is None:
        return False
    try:
        compile_catalogue(catalogue, source, compiled)
    except OSError as error:
        log.warning("%s cannot be used: %s", source, error)
        return False
    return True


@functools.cache
def _read_own(source: Path) -> polib.POFile | None:
    """Read a catalogue of the operator without the messages that would break a page; None if it cannot be read."""
    try:
        if source.stat().st_size > MAX_BYTES:
            log.error("%s is not used: it is larger than %d MB", source, MAX_BYTES >> 20)
            return None
        found = polib.pofile(str(source))
    except (OSError, ValueError, LookupError) as error:
        log.error("%s is not used: %s", source, error)  # noqa: TRY400 - it names the place
        return None
    kept = polib.POFile()
    kept.metadata = {**found.metadata, "Content-Type": "text/plain; charset=UTF-8"}
    for entry in found:
        if not entry.translated():
            continue
        if wrong := next(faults(entry), ""):
            log.warning("%s: the message %r is not used: %s", source, entry.msgid[:80], wrong)
        else:
            kept.append(entry)
    if not kept:
        log.error("%s is not used: it has no translated message", source)
        return None
    return kept
