"""
Raw SQL that both databases accept, for reads of every call: the ORM takes 0.2 ms to compose a query.

Also rows of a model that many changes read, and the insertion of many rows: composing a statement of hundreds of rows
takes longer than executing it for each of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from operator import attrgetter
from typing import Any, Final

import msgspec
from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.fields import JSONText

_Prepare = Callable[[Any], Any]
_Convert = Callable[[Any], Any]
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
def _conversions(model: type[models.Model], names: tuple[str, ...], vendor: str) -> tuple[tuple[str, _Convert], ...]:
    """Return what turns stored values into those of the model, as the ORM does on databases of this *vendor*."""
    meta = model._meta  # noqa: SLF001 - Django's public name
    fields = {field.column: field for field in meta.concrete_fields}
    found: list[tuple[str, _Convert]] = []
    for name in names:
        field = fields.get(name)
        if isinstance(field, JSONText):
            found.append((name, msgspec.json.decode))
        elif vendor == "sqlite" and isinstance(field, models.DateTimeField):
            found.append((name, _aware))
        elif field:
            column = field.get_col(meta.db_table)
            converters = (*connection.ops.get_db_converters(column), *field.get_db_converters(connection))
            found += [(name, partial(_convert, each, column)) for each in converters]
    return tuple(found)


def _convert(converter: Callable[[Any, Any, Any], Any], column: Any, value: Any) -> Any:
    return converter(value, column, connection)


def _aware(stored: datetime) -> datetime:
    """Return a moment that SQLite stores: that of UTC, without a zone."""
    return stored.replace(tzinfo=UTC)


def insert(made: Sequence[models.Model]) -> None:
    """Insert new rows of one table and set their keys, as ``bulk_create`` does."""
    if not made:
        return
    model = type(made[0])
    if connection.vendor != "sqlite":
        model._default_manager.bulk_create(made)  # noqa: SLF001 - Django's public name
        return
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django's public name
    relations = [field for field in fields if field.is_relation]
    with transaction.atomic():  # which holds the write lock, so that the keys are free
        for key, row in enumerate(made, _next_key(model)):
            row.pk = key
            _refer(row, relations)
        insert_values(model, [field.attname for field in fields], map(attrgetter(*(f.attname for f in fields)), made))
    for row in made:
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS  # noqa: SLF001 - Django's public name


def _next_key(model: type[models.Model]) -> int:
    """Return the key that SQLite gives the next row of a table: no row has ever had it."""
    table = model._meta.db_table  # noqa: SLF001 - Django's public name
    found = rows("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
    return int(found[0][0]) + 1 if found else 1


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


def insert_from(
    source: type[models.Model],
    keys: Sequence[int],
    model: type[models.Model],
    taken: Mapping[str, str],
    same: JSONMapping,
) -> None:
    """
    Insert a row for each row of *source* that has one of *keys*.

    Args:
        taken: columns of *source*, by the columns that get their values.
        same: the values that all rows get, by column; other columns are NULL.
    """
    if not keys:
        return
    meta = model._meta  # noqa: SLF001 - Django's public name
    fields = {field.attname: field for field in meta.concrete_fields}
    values = [fields[name].get_db_prep_save(value, connection) for name, value in same.items()]
    columns = ", ".join(f'"{name}"' for name in (*taken, *same))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {meta.db_table} ({columns})"
            f" SELECT {', '.join((*taken.values(), *(['%s'] * len(values))))} FROM {source._meta.db_table}"  # noqa: SLF001 - Django's public name
            f" WHERE id IN ({marks(keys)}) ORDER BY id",
            [*values, *keys],
        )


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
    if isinstance(field, models.DateTimeField):
        return _naive
    return partial(field.get_db_prep_save, connection=connections[DEFAULT_DB_ALIAS])


def _naive(moment: datetime) -> str:
    """Return what SQLite stores of a moment: that of UTC, without a zone."""
    return str(moment.astimezone(UTC).replace(tzinfo=None))
