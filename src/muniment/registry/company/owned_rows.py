"""
The newest rows of an account's listings, such as its documents or its report runs, and its listings themselves.

An account can have a listing with 100,000 documents, or 10,000 listings. Sorting all of their rows for a page of 25
takes as long as they are many, so the rows of a page are read in the order of an index.
"""

from typing import Any, Final

from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL

from muniment.kernel.pagination import Page
from muniment.registry.fields import rows as rows_of
from muniment.registry.models import Company, Ownership

_NEWEST: Final = ("-created_at", "-pk")


def newest_page(
    rows: QuerySet[Any], account_id: int, page: int, page_size: int, *, company: Company | None = None
) -> Page[str]:
    """
    Return the keys of a page of *rows* of the account's listings, newest first.

    Args:
        rows: of a model with ``company`` and ``created_at``; an index begins with both.
        company: only those of this listing, which the account owns.
    """
    owned = Ownership.objects.filter(account_id=account_id)
    if company is None:
        # Not by a join, which would look up every company.
        mine = rows.filter(company__in=owned.values("company"))
    else:
        mine = rows.filter(company=company)
    total = mine.count()
    start, end = (page - 1) * page_size, page * page_size
    if start >= total:
        return Page([], page, page_size, total)
    if company is None:
        keys = _merged(rows, account_id, start, end)
    else:
        keys = list(mine.order_by(*_NEWEST).values_list("pk", flat=True)[start:end])
    return Page(keys, page, page_size, total)


def _merged(rows: QuerySet[Any], account_id: int, start: int, end: int) -> list[str]:
    """
    Return the keys from *start* to *end* of the rows of all of the account's listings, newest first.

    The first *end* rows are among the first *end* of those *end* listings whose newest row is the newest. The ORM has
    no join with a part of each listing's rows.
    """
    of_listing = rows.filter(company=RawSQL("listing.company_id", ())).order_by(*_NEWEST)
    newest, newest_values = of_listing.values("created_at")[:1].query.sql_with_params()
    first, first_values = of_listing.values("pk")[:end].query.sql_with_params()
    table = rows.model._meta.db_table  # noqa: SLF001 - Django's public name
    # SQLite has no LATERAL. PostgreSQL would test each row of the table for being one of a list.
    if connection.vendor == "sqlite":
        joined = f"{table} listed ON listed.id IN ({first})"
    else:
        joined = f"LATERAL ({first}) newest_row(id) JOIN {table} listed ON listed.id = newest_row.id"
    statement = (
        f"WITH recent AS (SELECT listing.company_id, ({newest}) AS newest FROM registry_ownership listing"
        " WHERE listing.account_id = %s ORDER BY newest DESC NULLS LAST LIMIT %s)"
        f" SELECT listed.id FROM recent listing CROSS JOIN {joined}"
        " ORDER BY listed.created_at DESC, listed.id DESC LIMIT %s OFFSET %s"
    )
    values = [*newest_values, account_id, end, *first_values, end - start, start]
    return [key for (key,) in rows_of(statement, values)]


def read_page(rows: QuerySet[Model], keys: Page[Any]) -> Page[Any]:
    """Return the rows of a page of keys, in the order of the keys."""
    by_key = rows.in_bulk(keys.items)
    return keys.with_items([by_key[key] for key in keys.items if key in by_key])


def latest_companies(account_id: int, page: int, page_size: int) -> Page[Company]:
    """Return a page of the account's listings, last changed first."""
    owned = Ownership.objects.filter(account_id=account_id).order_by("-company__updated_at", "company_id")
    # Only keys are sorted: a whole listing can have many kilobytes.
    keys = Page.of(owned.values_list("company_id", flat=True), page, page_size)
    return read_page(Company.objects.all(), keys)
