"""
Database rows in a form shared by SQLite and PostgreSQL, for any schema that the migrations describe.

A value is null, a boolean, a number or text: times are ISO 8601 in UTC, dates ISO 8601, binaries base64, JSON columns
canonical text. A line is the JSON array of a row's values, the same bytes on both databases.
"""

import base64
import binascii
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Field, Model

from muniment.backup.container import Tally
from muniment.store import public_log

Migrations = Collection[tuple[str, str]]

BATCH: Final = 500
CHUNK_BYTES: Final = 1 << 20
CHANGES: Final = "published_change"
LEFT_OUT: Final = frozenset({"documents_blobhold", "accounts_keyholder", "scrub_scrubstate"})
"""Only used by a running process."""
CACHES: Final = frozenset({"accounts_cache", "web_forms", "web_kept_forms"})
"""Tables without a model: short-lived counts and submitted forms."""
IN_EVERY_INSTANCE: Final = frozenset(
    {
        *("django_content_type", "auth_permission", "django_site", "django_session", "jobs_job", "jobs_step"),
        *(
            "registry_instancecurrency",
            "accounts_securityevent",
            "accounts_secretkey",
            "accounts_databaseform",
            "published_chain",
            "published_log",
            "registry_logkey",
        ),
    }
)
"""Tables that are not empty in a new instance: migrations and a server that starts write to them."""
_encode = msgspec.json.Encoder().encode


def _moment(value: datetime) -> str:
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()


def _canonical(value: Any) -> str:
    """Sort the keys: PostgreSQL stores JSON columns in its own order."""
    return msgspec.json.encode(msgspec.json.decode(value), order="sorted").decode()


_OUT: Final[dict[str, Callable[[Any], Any]]] = {
    "BooleanField": bool,
    "DateTimeField": _moment,
    "DateField": date.isoformat,
    "JSONField": _canonical,
    "BinaryField": lambda value: base64.b64encode(value).decode(),
}
_IN: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "DateTimeField": lambda value, ops: ops.adapt_datetimefield_value(datetime.fromisoformat(value)),
    "DateField": lambda value, ops: ops.adapt_datefield_value(date.fromisoformat(value)),
    "BinaryField": lambda value, _: binascii.a2b_base64(value),
}
_PLAIN: Final = frozenset(
    {
        *("AutoField", "BigAutoField", "SmallAutoField", "IntegerField", "BigIntegerField", "SmallIntegerField"),
        *("PositiveIntegerField", "PositiveBigIntegerField", "PositiveSmallIntegerField", "FloatField"),
        *("CharField", "TextField", "SlugField", "GenericIPAddressField"),
    }
)


class Table(NamedTuple):
    """A table under one schema; *counter* is its auto-increment column, if any."""

    name: str
    key: str
    types: dict[str, str]
    counter: str = ""


CHANGES_TABLE: Final = Table(
    CHANGES,
    "sequence",
    {"sequence": "BigIntegerField", **dict.fromkeys(("kind", "key", "change", "at", "fields"), "TextField")},
)
CHAIN: Final = "published_chain"
_CHAIN_TABLE: Final = Table(
    CHAIN,
    "sequence",
    {"sequence": "BigIntegerField", **dict.fromkeys(("chain", "leaf", "salt", "digest"), "BinaryField")},
)
_LOG_TABLES: Final = (
    Table(
        public_log.STATE_TABLE,
        "id",
        {
            "id": "SmallIntegerField",
            **dict.fromkeys(("name", "origin", "begun_at"), "TextField"),
            **dict.fromkeys(("sequence", "size"), "BigIntegerField"),
            "frontier": "BinaryField",
            "former_origin": "TextField",
            "former_size": "BigIntegerField",
            "former_root": "BinaryField",
        },
    ),
    Table(
        public_log.LEAF_TABLE,
        "number",
        {
            **dict.fromkeys(("number", "sequence"), "BigIntegerField"),
            "kind": "SmallIntegerField",
            "key": "TextField",
            "change": "SmallIntegerField",
            **dict.fromkeys(("leaf", "salt", "digest"), "BinaryField"),
        },
    ),
    Table(public_log.TILE_TABLE, "place", {"place": "BigIntegerField", "hash": "BinaryField"}),
)


@lru_cache(maxsize=1)
def loader() -> MigrationLoader:
    return MigrationLoader(None)


def applied(using: str) -> frozenset[tuple[str, str]]:
    return frozenset(MigrationRecorder(connections[using]).applied_migrations())


def unknown(migrations: Migrations) -> list[str]:
    known = loader().disk_migrations or {}
    return sorted(f"{app}.{name}" for app, name in migrations if (app, name) not in known)


@lru_cache(maxsize=4)
def tables(migrations: frozenset[tuple[str, str]]) -> dict[str, Table]:
    """Return every table of a database with *migrations*, the feed and the log; raise TypeError for unknown types."""
    state = loader().project_state(list(migrations))
    of_models = []
    for model in state.apps.get_models(include_auto_created=True):
        if model._meta.managed and not model._meta.proxy:  # noqa: SLF001 - documented by Django
            of_models.append(_table(model))
    every = (*of_models, CHANGES_TABLE, _CHAIN_TABLE, *_LOG_TABLES)
    return {table.name: table for table in every if table.name not in LEFT_OUT}


def _table(model: type[Model]) -> Table:
    meta = model._meta  # noqa: SLF001 - documented by Django
    types = {str(field.column): _type(field) for field in meta.local_concrete_fields}
    key = str(meta.pk.column)
    # A key that is the key of another table has its type and no sequence of its own.
    is_counted = types[key].endswith("AutoField") and meta.pk.remote_field is None
    return Table(meta.db_table, key, types, key if is_counted else "")


def _type(field: "Field[Any, Any]") -> str:
    column: Any = field
    while column.remote_field is not None:
        column = column.target_field
    internal_type = str(column.get_internal_type())
    if internal_type not in _PLAIN and internal_type not in _OUT:
        message = f"{field} is a {internal_type}, which backups do not support"
        raise TypeError(message)
    return internal_type


def read(using: str, table: Table) -> Iterator[bytes]:
    connection = connections[using]
    quoted = connection.ops.quote_name
    columns = ", ".join(map(quoted, table.types))
    key = quoted(table.key)
    place = list(table.types).index(table.key)
    converters = [(index, _OUT[type_]) for index, type_ in enumerate(table.types.values()) if type_ in _OUT]
    after: list[Any] = []
    while True:
        where = f"WHERE {key} > %s" if after else ""
        with connection.cursor() as cursor:
            statement = f"SELECT {columns} FROM {quoted(table.name)} {where} ORDER BY {key} LIMIT {BATCH}"
            cursor.execute(statement, after)
            rows = cursor.fetchall()
        for row in rows:
            values = list(row)
            for index, convert in converters:
                if values[index] is not None:
                    values[index] = convert(values[index])
            yield _encode(values)
        if len(rows) < BATCH:
            return
        after = [rows[-1][place]]


def chunks(lines: Iterator[bytes], tally: Tally) -> Iterator[bytes]:
    """Group lines into pieces of about a megabyte, and count them."""
    held, size = [], 0
    for line in lines:
        tally.add(line)
        held.append(line)
        size += len(line) + 1
        if size >= CHUNK_BYTES:
            yield b"\n".join(held) + b"\n"
            held, size = [], 0
    if held:
        yield b"\n".join(held) + b"\n"


def insert(using: str, table: Table, columns: list[str], lines: list[bytes]) -> None:
    connection = connections[using]
    quoted, ops = connection.ops.quote_name, connection.ops
    converters = [_IN.get(table.types[column]) for column in columns]
    names = ", ".join(map(quoted, columns))
    marks = ", ".join(["%s"] * len(columns))

    def read_row(line: bytes) -> list[Any]:
        values: list[Any] = []
        for value, convert in zip(msgspec.json.decode(line), converters, strict=True):
            if value is None or convert is None:
                values.append(value)
            else:
                values.append(convert(value, ops))
        return values

    with connection.cursor() as cursor:
        statement = f"INSERT INTO {quoted(table.name)} ({names}) VALUES ({marks})"
        cursor.executemany(statement, [read_row(line) for line in lines])


def count(using: str, table: Table) -> Tally:
    tally = Tally()
    for line in read(using, table):
        tally.add(line)
    return tally


def delete_all(using: str, table: Table) -> None:
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {connection.ops.quote_name(table.name)}")


def filled(using: str) -> list[str]:
    """Return the tables that contain user data; none in an empty instance."""
    connection = connections[using]
    present = connection.introspection.table_names()
    if "django_migrations" not in present:
        return []
    known = applied(using) & set(loader().disk_migrations or ())
    with_rows = []
    with connection.cursor() as cursor:
        for name in sorted((tables(known).keys() - IN_EVERY_INSTANCE) & set(present)):
            cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(name)} LIMIT 1")
            if cursor.fetchone():
                with_rows.append(name)
    return with_rows


def next_ids(using: str, known: dict[str, Table]) -> dict[str, int]:
    """Return the highest id that each auto-increment table has ever assigned."""
    connection = connections[using]
    assigned = {}
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, seq FROM sqlite_sequence")
            return {name: number for name, number in cursor.fetchall() if name in known and number}
        for table in known.values():
            if not table.counter:
                continue
            cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [f'"{table.name}"', table.counter])
            (sequence,) = cursor.fetchone() or ("",)
            cursor.execute(f"SELECT last_value, is_called FROM {sequence}")
            number, is_called = cursor.fetchone() or (0, False)
            if not is_called:
                number -= 1  # the first id, which no row has yet
            if number:
                assigned[table.name] = number
    return assigned


def set_next_ids(using: str, known: dict[str, Table], assigned: dict[str, int]) -> None:
    """Let each table continue after the highest id it has ever assigned."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for name, number in assigned.items():
            if name not in known:
                continue
            if connection.vendor == "sqlite":
                cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [name])
                cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [name, number])
            else:
                statement = "SELECT setval(pg_get_serial_sequence(%s, %s), %s)"
                cursor.execute(statement, [f'"{name}"', known[name].counter, number])
