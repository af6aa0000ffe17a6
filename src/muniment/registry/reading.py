"""
Frequent reads as SQL for both databases.

Composing a query takes the ORM half a millisecond, many times what the database needs to answer it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection, models


def rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of *statement*, with ``%s`` parameters. JSON columns are returned as stored text."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def columns(
    model: type[models.Model], clause: str, parameters: Sequence[Any], *, more: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """
    Return all columns of *model*'s rows, converted like the model's values.

    Args:
        clause: the SQL after the table's name: joins, conditions, order, lock.
        more: expressions over the joined tables, returned under their own text and unconverted.
    """
    form = _form(model, connection.vendor)
    names = [*form.names, *more]
    for row in rows(f"SELECT {', '.join([*form.columns, *more])} FROM {form.table} {clause}", parameters):
        values = list(row)
        for index, cell, converters in form.converters:
            for convert in converters:
                values[index] = convert(values[index], cell, connection)
        yield dict(zip(names, values, strict=True))


class _Form(NamedTuple):
    table: str
    names: list[str]
    columns: list[str]
    converters: list[tuple[int, Any, list[Callable[..., Any]]]]
    """Index, column, and the functions that convert the database's value."""


@lru_cache
def _form(model: type[models.Model], _vendor: str) -> _Form:
    """Cache the ORM's column list and converters, which are most of a query's cost."""
    options = model._meta  # noqa: SLF001 - Django's public name
    quoted = connection.ops.quote_name
    cells: list[Any] = [field.get_col(options.db_table) for field in options.concrete_fields]
    converters = [
        (index, cell, [*connection.ops.get_db_converters(cell), *cell.get_db_converters(connection)])
        for index, cell in enumerate(cells)
    ]
    return _Form(
        quoted(options.db_table),
        [cell.target.attname for cell in cells],
        [f"{quoted(options.db_table)}.{quoted(cell.target.column)}" for cell in cells],
        [each for each in converters if each[2]],
    )


def marks(values: Collection[Any]) -> str:
    """Return the ``%s, %s, …`` of an IN list."""
    return ", ".join(["%s"] * len(values))
