"""
Apply settings of the registry, show their history, and restore a version.

The latest version is applied on all nodes. A file is applied when it differs from the one that was applied last, so
that it does not undo what an operator has changed since on the page.
"""

import hashlib
import logging
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from django.db import connection, transaction

from muniment import config, declared_fields
from muniment.accounts.operations import require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.http.representations import stamp_after
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.kernel.problems import Conflict, NotFound
from muniment.languages.catalogues import installed
from muniment.registry.declared import progress
from muniment.registry.declared.stored import mark_of, unfit_values
from muniment.registry.settings import typefaces
from muniment.registry.settings.artwork import store_artwork
from muniment.registry.settings.tables import RegistryVersion
from muniment.registry_toml import applied, reading
from muniment.registry_toml.applied import Applied
from muniment.registry_toml.document import DEFAULT, FILE, RegistrySettings
from muniment.schema.declared.declarations import declare
from muniment.schema.declared.faults import FieldsError
from muniment.schema.objects import registry_schema
from muniment.store.published import mark_in
from muniment.store.tables.answering import Refused
from muniment.store.tables.form import Form
from muniment.store.tables.statements import fault_of

SHOWN: Final = 100
"""Versions in a history."""
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('muniment.registry_settings', 0))"
log = logging.getLogger(__name__)


class VersionItem(NamedTuple):
    """
    A version in the history.

    Args:
        author: the address of the account, or how it was made without one.
        changes: what changed from the version before, as place, former and new text.
    """

    number: int
    at: datetime
    author: str
    note: str
    changes: list[tuple[str, str, str]]


class FileResult(NamedTuple):
    """
    The result of applying the file.

    Args:
        number: the number of the version that it made; None if it made none.
        faults: why it was not applied.
    """

    path: Path
    number: int | None = None
    faults: tuple[str, ...] = ()


def apply_settings(
    actor: Actor,
    settings: RegistrySettings,
    *,
    artwork: Mapping[str, bytes] | None = None,
    note: str = "",
    expected_number: int | None = None,
    file_digest: str = "",
) -> int:
    """
    Make *settings* the latest version, unless they already are, and return its number.

    Args:
        artwork: files of the logo and the mark, which are drawn again and stored.
        expected_number: raise Conflict if there is a later version.

    Raises:
        Forbidden: the actor is not an operator.
        InvalidSettings: a picture cannot be used, a declared field has faults, or stored values do not fit it.
        Conflict: there is a later version.
    """
    require_operator(actor)
    settings = store_artwork(settings, artwork or {})
    with transaction.atomic():
        latest = _lock_latest()
        number, before = 0, DEFAULT
        if latest is not None:
            number, before = latest.number, _settings(latest)
        if file_digest:
            settings = msgspec.structs.replace(settings, console_queries=before.console_queries)
        if expected_number is not None and expected_number != number:
            raise Conflict("The settings were changed by someone else.", "Open the page again and repeat your changes.")
        if settings == before:
            if latest is not None and file_digest and file_digest != latest.file_digest:
                RegistryVersion.objects.filter(pk=latest.pk).update(file_digest=file_digest)
            return number
        _check_changes(before, settings)
        if settings.fields != before.fields:
            _enqueue_fields(before)
        moment = now()
        former_stamp = latest.stamp if latest else ""
        RegistryVersion.objects.create(
            number=number + 1,
            at=moment,
            stamp=stamp_after(f"{moment:%Y-%m-%dT%H:%M:%SZ}", former_stamp),
            account_id=actor.account_id,
            via=actor.via,
            note=note[:200],
            document=msgspec.to_builtins(settings),
            file_digest=file_digest,
        )
        places = [place for place, *_ in differences(before, settings)]
        record(Event.REGISTRY_CHANGED, actor=actor, detail={"version": number + 1, "changed": places})
        transaction.on_commit(follow)
    return number + 1


def _check_changes(before: RegistrySettings, settings: RegistrySettings) -> None:
    """Check the parts that change against what is beside the settings: stored values, tables, catalogues."""
    if settings.fields != before.fields:
        _check_fields(settings)
    if _asked(settings) != _asked(before):
        _check_queries(settings)
    if settings.registry.languages != before.registry.languages:
        _check_languages(settings)


def _check_languages(settings: RegistrySettings) -> None:
    unknown = [code for code in settings.registry.languages if code not in installed()]
    if unknown:
        known = ", ".join(installed())
        fault = f"registry.languages has {unknown[0]}, of which there is no catalogue. There are: {known}."
        raise reading.InvalidSettings({"registry.languages": fault})


def _check_fields(settings: RegistrySettings) -> None:
    try:
        declared = declared_fields.read(settings.fields)
    except FieldsError as error:
        raise reading.InvalidSettings(
            {"fields": Joined(" ", (Joined("", (each, ".")) for each in error.faults))}
        ) from None
    unfit = unfit_values(declared)
    if unfit:
        way_out = Phrase("Declare the field as before or under another key, or correct the values first.")
        fault = Phrase("Stored values do not fit: {faults}. {way_out}", faults=Joined(". ", unfit), way_out=way_out)
        raise reading.InvalidSettings({"fields": fault})


def _asked(settings: RegistrySettings) -> tuple[object, ...]:
    """Return what decides whether the saved queries can be answered."""
    return settings.queries, settings.console_queries, settings.fields


def _check_queries(settings: RegistrySettings) -> None:
    """Ask each saved query of empty tables that have the declared fields."""
    placed = [("queries", query) for query in settings.queries]
    placed += [(reading.CONSOLE_QUERIES, query) for query in settings.console_queries]
    if not placed:
        return
    form = _form_of(settings)
    faults: dict[str, str] = {}
    for of, query in placed:
        refused = fault_of(query.sql, form)
        if refused is not None:
            place = f"{of}.{query.slug}.sql"
            faults[place] = Phrase("{place}: {message} {hint}", place=place, message=refused.message, hint=refused.hint)
    if faults:
        raise reading.InvalidSettings(faults)


def fault_of_statement(sql: str, settings: RegistrySettings) -> Refused | None:
    """Return why a statement cannot be a saved query; None if it can."""
    return fault_of(sql, _form_of(settings))


def _form_of(settings: RegistrySettings) -> Form:
    """Return the tables with the declared fields of *settings*."""
    currency = config.current().currency
    return Form(declare(registry_schema(currency), declared_fields.read(settings.fields), currency))


def _enqueue_fields(before: RegistrySettings) -> None:
    """Let the documents be published with the new fields, again if they do not have the fields *before* yet."""
    from muniment.registry.publishing import publisher  # which follows the settings

    try:
        former = mark_of(declared_fields.read(before.fields))
    except FieldsError:
        former = ""
    progress.enqueue(again=mark_in(publisher.head()[1]) != former)


def restore_version(actor: Actor, number: int, *, expected_number: int | None = None) -> int:
    """
    Apply a former version again, as a new one, and return its number.

    Raises:
        NotFound: there is no such version.
    """
    require_operator(actor)
    found = get_version(number)
    return apply_settings(actor, found.settings, note=f"Version {number} restored", expected_number=expected_number)


def get_version(number: int) -> Applied:
    """Return a version; raise NotFound if there is none. Version 0 is a registry without settings."""
    if number == 0:
        return applied.NONE
    row = RegistryVersion.objects.filter(number=number).first()
    if row is None:
        raise NotFound(
            Phrase("There is no version {number} of the settings.", number=number), "The history lists the versions."
        )
    return _applied(row)


def latest_version() -> Applied:
    row = RegistryVersion.objects.order_by("-number").first()
    return _applied(row) if row else applied.NONE


def list_versions() -> list[VersionItem]:
    """Return the latest versions, newest first, each with what it changed."""
    # One more than are shown, from which the last one differs.
    rows = list(RegistryVersion.objects.select_related("account").order_by("-number")[: SHOWN + 1])
    versions = []
    for row, former in zip(rows, [*rows, None][1:], strict=True):
        before = _settings(former) if former else DEFAULT
        author = _AUTHORS.get(row.via, row.via)
        if row.account:
            author = row.account.email
        versions.append(VersionItem(row.number, row.at, author, row.note, differences(before, _settings(row))))
    return versions[:SHOWN]


_AUTHORS: Final = {"command": "command line", "system": FILE}
"""What is shown for a version that no account made."""


def differences(before: RegistrySettings, after: RegistrySettings) -> list[tuple[str, str, str]]:
    """Return each place whose value differs, with its former and its new text; empty for a default."""
    former, new = _flat(before), _flat(after)
    changes = []
    for place in sorted(former.keys() | new.keys()):
        if former.get(place) != new.get(place):
            changes.append((place, former.get(place, ""), new.get(place, "")))
    return changes


def follow() -> bool:
    """Copy the latest version into the data folder, if it has another one; return whether it had."""
    latest = latest_version()
    if applied.look() == latest:
        return False
    applied.keep(latest)
    return True


def apply_file(actor: Actor = SYSTEM, *, again: bool = False) -> FileResult | None:
    """
    Apply ``registry.toml`` if it was changed since it was last applied; None without a file, or without a change.

    A file with faults is not applied: the latest version stays.

    Args:
        again: also if the file is the one that was applied last.
    """
    file_of_setting = config.current().registry_file
    path = Path(file_of_setting) if file_of_setting else config.current().data / FILE
    # A file that a setting names must be there; the one in the data folder may be missing.
    if not file_of_setting and not path.is_file():
        return None
    try:
        settings = reading.read_file(path)
        artwork = _artwork_beside(path, settings)
        # With the files that it names: another logo of the same name is a change.
        contents = [msgspec.json.encode(settings), *(artwork[name] for name in sorted(artwork))]
        digest = hashlib.sha256(b"\0".join(contents)).hexdigest()
        if not again and digest == _digest_of_file():
            return None
        return FileResult(path, apply_settings(actor, settings, artwork=artwork, file_digest=digest, note=path.name))
    except reading.InvalidSettings as error:
        faults = tuple(error.faults.values())
    except OSError as error:
        faults = (Phrase("{path} cannot be read: {error}.", path=error.filename or path, error=error.strerror),)
    return FileResult(path, None, faults)


def settle() -> None:
    """Apply the file at the start of a process, and log what became of it; then follow the database."""
    result = apply_file()
    if result is not None and result.faults:
        kept = latest_version().number
        stays = Phrase("version {kept} of the settings stays", kept=kept) if kept else "the defaults stay"
        log.error("%s was not applied, %s: %s", result.path, stays, " ".join(result.faults))
    elif result is not None:
        log.info("%s was applied as version %s of the settings", result.path, result.number)
    follow()


def _artwork_beside(path: Path, settings: RegistrySettings) -> dict[str, bytes]:
    artwork = {}
    for name in ("logo", "mark"):
        value = getattr(settings.brand, name)
        if value and not reading.PICTURE.fullmatch(value):
            with (path.parent / value).open("rb") as file:
                artwork[name] = file.read(reading.MAX_PICTURE_BYTES + 1)
    for name in typefaces.NAMES:
        value = getattr(settings.brand, name)
        if value and not reading.FONT.fullmatch(value):
            with (path.parent / value).open("rb") as file:
                artwork[name] = file.read(typefaces.MAX_BYTES + 1)
    return artwork


def _digest_of_file() -> str:
    rows = RegistryVersion.objects.exclude(file_digest="").order_by("-number")
    return rows.values_list("file_digest", flat=True).first() or ""


def _lock_latest() -> RegistryVersion | None:
    if connection.vendor == "postgresql":  # SQLite has one writer at a time
        with connection.cursor() as cursor:
            cursor.execute(_LOCK)
    return RegistryVersion.objects.order_by("-number").first()


def _settings(row: RegistryVersion) -> RegistrySettings:
    """Return the settings of a stored version; members that this version does not know are left out."""
    try:
        return msgspec.convert(row.document, RegistrySettings)
    except msgspec.ValidationError:
        return reading.known_part(row.document)


def _applied(row: RegistryVersion) -> Applied:
    return Applied(row.number, row.stamp, _settings(row))


def _flat(settings: RegistrySettings) -> dict[str, str]:
    document: JSONObject = msgspec.to_builtins(settings)
    texts = {}
    for section, values in document.items():
        if isinstance(values, dict):
            for name, value in values.items():
                texts[f"{section}.{name}"] = _shown(value)
        else:
            texts[section] = _shown(values)
    return texts


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(text, str) for text in value):
        return ", ".join(value)
    return msgspec.json.encode(value).decode()
