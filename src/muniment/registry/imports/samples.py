"""The first entries of an import as their pages will show them."""

from contextlib import suppress
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import transaction

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.registry.exchange.batch import BatchRun
from muniment.registry.exchange.companies import import_companies
from muniment.registry.exchange.people import import_people
from muniment.registry.exchange.rows import read_company, read_person
from muniment.registry.models import Company
from muniment.registry.publishing.documents import company_bundle, company_object, company_views
from muniment.registry.tables.records import Records
from muniment.schema.validation import Validation

SHOWN: Final = 5


class _Taken(Exception):  # noqa: N818 - rolls the transaction back
    """The entries were read; nothing of them must stay."""


def sample_bundles(actor: Actor, records: Records, options: list[str]) -> list[JSONObject]:
    """
    Return the public documents that the first companies of *records* will have.

    They are imported in a transaction that is rolled back, so that they are exactly what an import makes, with what is
    stored already.
    """
    lines = records.companies[:SHOWN]
    named: set[str | None] = set()
    for _, line in lines:
        named.update(position["person"].get("slug") for position in line.get("positions") or ())
    # Only the people whom these companies name: a table can have thousands.
    people = [(row, line) for row, line in records.people if line["slug"] in named]
    bundles: list[JSONObject] = []
    with suppress(_Taken), transaction.atomic():
        run = BatchRun(actor, settings.SCHEMA, overwrite="overwrite" in options)
        run.partial = True
        import_people(run, _read(people, read_person))
        import_companies(run, _read(lines, read_company))
        slugs = [line["company"]["id"] for _, line in lines]
        keys = dict(Company.objects.filter(slug__in=slugs).values_list("slug", "pk"))
        views = company_views(list(keys.values()))
        for slug in slugs:
            if slug in keys:
                view = views[keys[slug]]
                bundle = company_bundle(view, company_object(view, settings.SCHEMA), settings.SCHEMA)
                plain: JSONObject = msgspec.json.decode(msgspec.json.encode(bundle))
                plain["company"] = {key: value for key, value in plain["company"].items() if value not in (None, "")}
                bundles.append(plain)
        raise _Taken
    return bundles


def _read(lines: list[tuple[int, JSONObject]], read: Any) -> list[tuple[int, Any]]:
    """Return the lines that are valid, as rows."""
    rows = []
    for number, line in lines:
        validation = Validation(change=False)
        row = read(line, settings.SCHEMA, validation)
        if row is not None and not validation.faults:
            rows.append((number, row))
    return rows
