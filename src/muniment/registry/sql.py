"""
Raw SQL that both databases accept, for reads of every call: the ORM takes 0.2 ms to compose a query.

Also rows of a model that many changes read, and the insertion of many rows: composing a statement of hundreds of rows
takes longer than executing it for each of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction

from muniment.kernel.json import JSONObject

_Prepare = Callable[[Any], Any]
_AS_THEY_ARE: Final = (models.ForeignKey, models.BooleanField, models.IntegerField)
"""Fields whose numbers are stored as they are."""


def rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of *statement*, with ``%s`` for each parameter; JSON columns come as text."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def marks(values: Collection[object]) -> str:
    """Return the ``%s, %s, …`` of an IN list."""
    return ", ".join(["%s"] * len(values))


def stored(model: type[models.Model], statement: str, parameters: Sequence[Any]) -> Iterator[JSONObject]:
    """Return rows of *model*'s table by column, with values as the model has them; other columns as they come."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        names = tuple(each[0] for each in cursor.description)
        found = cursor.fetchall()
    converted = _conversions(model, names, connection.vendor)
    for row in found:
        values = dict(zip(names, row, strict=True))
        for name, convert in converted:
            if values[name] is not None:
                values[name] = convert(values[name])
        yield values


@cache
def _conversions(model: type[models.Model], names: tuple[str, ...], vendor: str) -> tuple[tuple[str, _Prepare], ...]:
    """Return what turns stored values into those of the model, as the ORM does on databases of this *vendor*."""
    del vendor  # which the converters depend on
    meta = model._meta  # noqa: SLF001 - Django's public name
    fields = {field.column: field for field in meta.concrete_fields}
    found = []
    for name in names:
        if field := fields.get(name):
            column = field.get_col(meta.db_table)
            converters = (*connection.ops.get_db_converters(column), *field.get_db_converters(connection))
            found += [(name, partial(_convert, each, column)) for each in converters]
    return tuple(found)


def _convert(converter: Callable[[Any, Any, Any], Any], column: Any, value: Any) -> Any:
    return converter(value, column, connection)


def insert(made: Sequence[models.Model]) -> None:
    """Insert new rows of one table and set their keys, as ``bulk_create`` does."""
    if not made:
        return
    model = type(made[0])
    if connection.vendor != "sqlite":
        model._default_manager.bulk_create(made)  # noqa: SLF001 - Django's public name
        return
    meta = model._meta  # noqa: SLF001 - Django's public name
    fields = [field for field in meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{field.column}"' for field in fields)
    statement = f'INSERT INTO "{meta.db_table}" ({names}) VALUES ({", ".join("?" * len(fields))})'
    values_of = attrgetter(*(field.attname for field in fields))
    relations = [field for field in fields if field.is_relation]
    prepared = [(place, prepare) for place, field in enumerate(fields) if (prepare := _preparation_of(field))]
    with transaction.atomic(), connection.wrap_database_errors:
        execute = connection.connection.execute
        for row in made:
            _refer(row, relations)
            values = list(values_of(row))
            for place, prepare in prepared:
                if values[place] is not None:
                    values[place] = prepare(values[place])
            row.pk = execute(statement, values).lastrowid
            row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS  # noqa: SLF001 - Django's public name


def insert_values(model: type[models.Model], names: Sequence[str], values: Iterable[Sequence[Any]]) -> None:
    """
    Insert rows that are not needed as objects: their values by the names of the columns; other columns are NULL.

    An object costs more than its row: Django sets each of its fields.
    """
    if connection.vendor != "sqlite":
        model._default_manager.bulk_create(model(**dict(zip(names, each, strict=True))) for each in values)  # noqa: SLF001 - Django's public name
        return
    meta = model._meta  # noqa: SLF001 - Django's public name
    fields = {field.attname: field for field in meta.concrete_fields}
    chosen = [fields[name] for name in names]
    columns = ", ".join(f'"{field.column}"' for field in chosen)
    statement = f'INSERT INTO "{meta.db_table}" ({columns}) VALUES ({", ".join("?" * len(chosen))})'
    prepared = [(place, prepare) for place, field in enumerate(chosen) if (prepare := _preparation_of(field))]

    def rows() -> Iterator[list[Any]]:
        for each in values:
            row = list(each)
            for place, prepare in prepared:
                if row[place] is not None:
                    row[place] = prepare(row[place])
            yield row

    with transaction.atomic(), connection.wrap_database_errors:
        connection.connection.executemany(statement, rows())


def _refer(row: models.Model, relations: list[Any]) -> None:
    """Set the keys of rows that had none yet when *row* referred to them."""
    for field in relations:
        if getattr(row, field.attname) is None and field.is_cached(row):
            related = field.get_cached_value(row)
            setattr(row, field.attname, None if related is None else related.pk)


def _preparation_of(field: Any) -> _Prepare | None:
    """Return what turns a value into what SQLite stores; None for a value that it stores as it is."""
    if isinstance(field, _AS_THEY_ARE):
        return None
    if isinstance(field, models.TextField | models.CharField):
        prepared: _Prepare = field.get_prep_value
        return prepared
    return partial(field.get_db_prep_save, connection=connections[DEFAULT_DB_ALIAS])
