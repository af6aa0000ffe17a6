"""The data page: what can be downloaded, the public tables, and how to query, cite and follow them."""

import functools
from collections.abc import Iterable
from typing import Final, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment import config
from muniment.declared_fields import instance_schema
from muniment.languages.translated import translated
from muniment.registry_toml import applied
from muniment.registry_toml.queries import saved_queries
from muniment.store.exports.exports import Exports
from muniment.store.exports.files import NAMES, TABLES, ExportFile, latest_name
from muniment.store.reader import Reader
from muniment.store.tables import FILE_NAME
from muniment.store.tables.following import Tables
from muniment.store.tables.outcome import QUERY
from muniment.web.context import address
from muniment.web.lists.search import joined
from muniment.web.presenters.company import day_or_text
from muniment.web.requests.page_cache import once_if, published, reader
from muniment.web.views.overview.home import profile_of_registry
from muniment.web.views.public.queries import shown
from muniment.web.views.public.registry import json_for_script

_FORMS: Final = {"jsonl": "JSON Lines", "csv": "CSV", "sqlite": "SQLite"}
ROWS_OF_EXAMPLE: Final = 100


class Download(NamedTuple):
    """A file to download, under the address that stays."""

    form: str
    address: str
    size_bytes: int
    rows: int
    at: str


class Offer(NamedTuple):
    """What can be downloaded of one kind."""

    label: str
    rows: int
    files: list[Download]


class ShownColumn(NamedTuple):
    """A column of a public table."""

    name: str
    type: str
    help: str


class ShownTable(NamedTuple):
    """
    A public table.

    Args:
        csv: None while there is none.
        statement: the address of its first rows.
    """

    name: str
    help: str
    rows: int
    columns: list[ShownColumn]
    csv: Download | None
    statement: str


@functools.lru_cache(maxsize=1)
def exports_of(source: Reader) -> Exports:
    """Return the list of the export files that this node serves; its server writes them."""
    settings = config.current()
    return Exports(
        source.path.with_name("exports"),
        source.path,
        instance_schema(settings),
        base_url=settings.base_url,
        oldest=source.erased,
        chain_after=source.chain_after,
    )


@functools.lru_cache(maxsize=2)
def tables_of(source: Reader, number: int) -> Tables:  # noqa: ARG001 - another schema
    """Return the tables of this node, with the declared fields of the settings *number*; its server writes them."""
    return Tables(source.path.with_name(FILE_NAME), source, instance_schema(config.current()))


@published()
def data(request: HttpRequest) -> HttpResponse:
    """Show what can be downloaded, and the public tables."""
    source, base, name = reader(), address(request), applied.registry_name()
    files = exports_of(source).files()
    tables = shown_tables(source, files)
    at = max((file.at for file in files), default="")
    edition = files[0].edition if files else source.edition
    context = {
        "page_title": gettext("Data"),
        "room": "data",
        "canonical": f"{base}/data",
        "edition": edition,
        "made_at": at,
        "is_off": not config.current().exports_interval_s,
        "contents": contents(files),
        "tables": tables,
        "saved": [shown(query) for query in saved_queries()],
        "citation": citation(name, base, source),
        "json_ld": json_for_script(profile_of_registry(name, base, source.modified_at)),
    }
    # Files appear without a new edition.
    return once_if(is_lacking=True, response=TemplateResponse(request, "data/home.html", context))


@published()
def verify(request: HttpRequest) -> HttpResponse:
    """Show the page that verifies a document of the log in the browser."""
    context = {
        "page_title": gettext("Verify a document"),
        "room": "data",
        "canonical": f"{address(request)}/data/verify",
    }
    return TemplateResponse(request, "data/verify.html", context)


def contents(files: Iterable[ExportFile]) -> list[Offer]:
    """Return what can be downloaded of each kind, and all tables in one file."""
    labels = {
        NAMES["company"]: gettext("Companies"),
        NAMES["person"]: gettext("People"),
        NAMES["framework"]: gettext("Frameworks"),
        TABLES: gettext("All tables in one file"),
    }
    downloads: dict[str, list[Download]] = {}
    for file in files:
        downloads.setdefault(_name_of(file), []).append(_download(file))
    offers = []
    for name, label in labels.items():
        if name in downloads:
            offers.append(Offer(label, downloads[name][0].rows, downloads[name]))
    return offers


def shown_tables(source: Reader, files: Iterable[ExportFile]) -> list[ShownTable]:
    """Return the public tables with the numbers of their rows; none while they are being made."""
    tables = tables_of(source, applied.applied().number)
    counted = tables.counts()
    if counted is None:
        return []
    _, counts = counted
    csvs = {}
    for file in files:
        if file.name.endswith(".csv.gz"):
            csvs[_name_of(file)] = _download(file)
    shown = []
    for table in tables.form.tables:
        statement = joined(QUERY, [("sql", f"SELECT * FROM {table.name} LIMIT {ROWS_OF_EXAMPLE}")])
        rows = counts.get(table.name, 0)
        columns = [ShownColumn(column.name, column.type, translated(column.help)) for column in table.columns]
        csv = csvs.get(table.name)
        shown.append(ShownTable(table.name, translated(table.help), rows, columns, csv, statement))
    return shown


def citation(name: str, base: str, source: Reader) -> str:
    """Return how to cite the data: by edition and day, so that a reader finds what has changed since."""
    parts = {"name": name, "edition": source.edition, "day": day_or_text(source.updated_at), "address": f"{base}/data"}
    cited = gettext("%(name)s, edition %(edition)s of %(day)s, %(address)s") % parts
    licence = applied.current().registry.licence
    return f"{cited}, {licence}" if licence else cited


def _name_of(file: ExportFile) -> str:
    return file.name.partition("-")[0]


def _download(file: ExportFile) -> Download:
    form = _FORMS[file.name.split(".")[-2]]
    return Download(form, f"/exports/{latest_name(file.name)}", file.size_bytes, file.rows, file.at)
