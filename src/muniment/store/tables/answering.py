"""
Answer statements in SQL about the tables, one after another.

This module is a program: a statement is a line of JSON on standard input; its answer is frames on standard output. It
is a process of its own because a statement may take a core and much memory, and what a stranger makes SQLite do must
end with a process that can reach nothing. Within it, SQLite itself refuses all but reading these tables.
"""

import difflib
import os
import re
import resource
import select
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from muniment import confinement
from muniment.kernel.csv_text import PLAIN, CsvForm, CsvText
from muniment.store.cache import release_free_memory
from muniment.store.database.reading import open_for_reading

HEAD: Final = struct.Struct(">cI")
"""The head of each frame: what it is, and its size."""
PART, END = b"p", b"e"
"""A part of a CSV, and the end of an answer, which is an :class:`Answered` or a :class:`Refused`."""

MEMORY_BYTES: Final = 512 << 20
"""Addresses, of which libraries map many."""
DATA_BYTES: Final = 112 << 20
"""The most memory of its own, beside 10 MB of programs: small allocations of SQLite take half more than it counts."""
HEAP_BYTES: Final = 64 << 20
"""What SQLite may allocate."""
IDLE_S: Final = 120
"""Seconds without a statement after which the process ends; the next statement starts another one."""
CPU_S: Final = 0.5
"""Seconds of CPU after which a statement is interrupted."""
MOST_CPU_S: Final = 0.75
"""Seconds after which the process ends: a single step of SQLite, and its compiler, cannot be interrupted."""
STEPS: Final = 1_000
"""Steps of SQLite between two looks at the time."""
NICENESS: Final = 10
"""
Requests for pages and documents come first: on a core that they take whole, a statement has a tenth of it.

That is enough for the longest statement to end within its deadline by the clock, as a greater niceness would not be.
"""
MAX_CELL_CHARACTERS: Final = 10_000
PART_BYTES: Final = 256 << 10
MAX_SQL_BYTES: Final = 20_000
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_SQL_BYTES,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
CHANGING: Final = frozenset(
    {"date", "time", "datetime", "julianday", "unixepoch", "strftime", "random"}
    | {"current_date", "current_time", "current_timestamp"}
)
"""Functions whose value may be another one a moment later, so that the answer is not kept."""
FUNCTIONS: Final = CHANGING | frozenset(
    # A list of what is allowed, so that nothing is that another version of SQLite adds.
    {
        *("abs", "avg", "char", "coalesce", "count", "cume_dist", "dense_rank", "first_value", "format", "glob"),
        *("group_concat", "string_agg", "hex", "ifnull", "iif", "if", "instr", "lag", "last_value", "lead", "length"),
        *("octet_length", "like", "likelihood", "likely", "unlikely", "lower", "ltrim", "max", "min", "nth_value"),
        *("ntile", "nullif", "percent_rank", "printf", "quote", "rank", "replace", "round", "row_number", "rtrim"),
        *("sign", "soundex", "substr", "substring", "sum", "total", "trim", "typeof", "unicode", "upper", "concat"),
        *("concat_ws", "unhex", "timediff", "median", "percentile", "percentile_cont", "percentile_disc"),
        *("json", "json_array", "json_array_length", "json_extract", "json_group_array", "json_group_object"),
        *("json_insert", "json_object", "json_patch", "json_quote", "json_remove", "json_replace", "json_set"),
        *("json_type", "json_valid", "json_each", "json_tree", "->", "->>"),
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceiling", "cos", "cosh", "degrees"),
        *("exp", "floor", "ln", "log", "log10", "log2", "mod", "pi", "pow", "power", "radians", "sin", "sinh", "sqrt"),
        *("tan", "tanh", "trunc", "sqlite_version"),
    }
)
_PRAGMAS: Final = frozenset({"table_info", "table_xinfo", "table_list"})
"""What clients ask for to learn the columns; they read only."""
_PLACE: Final = "SELECT edition, epoch, form FROM _followed"
_READABLE: Final = frozenset({"json_each", "json_tree", "sqlite_master", "sqlite_schema"})


class Asked(msgspec.Struct, frozen=True):
    """
    A statement.

    Args:
        rows: the most rows, also of a CSV.
        size_bytes: the most bytes of all rows.
        is_csv: its rows are sent as CSV with a head, in parts.
        is_named: its rows are JSON objects, which have the names of the columns.
    """

    sql: str
    parameters: dict[str, str | int | float | bool | None]
    rows: int
    size_bytes: int
    is_csv: bool = False
    form: CsvForm = PLAIN
    is_named: bool = False


class Answered(msgspec.Struct, frozen=True, tag="answer"):
    """
    The answer to a statement.

    Args:
        form: that of the tables: after an upgrade, or with other declared fields, the same edition has other columns.
        rows: none of a CSV, nor of JSON objects.
        objects: the rows as JSON, if objects were asked for: a list, made here so that the server only sends it.
        cut_by: which of ``rows``, ``cells`` and ``bytes`` cut it.
        changes: it may be another one later, without a change of the tables.
        cpu_s: the seconds of CPU that it took.
    """

    edition: int
    epoch: str
    form: str
    columns: list[str]
    rows: list[list[str | int | float | None]]
    count: int
    cut_by: list[str]
    changes: bool
    cpu_s: float
    objects: msgspec.Raw = msgspec.Raw(b"[]")


class Refused(msgspec.Struct, frozen=True, tag="refusal"):
    """
    Why a statement has no answer.

    Args:
        has_no_tables: the tables have not been made yet; there is no message then.
    """

    message: str = ""
    hint: str = ""
    cpu_s: float = 0.0
    has_no_tables: bool = False


class _Refusal(Exception):  # noqa: N818 - an answer
    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


# ---------------------------------------------------------------------- guards


class Guard:
    """
    Decides what SQLite may do for a statement: it asks before it compiles each part.

    Attributes:
        changes: the statement uses a function whose value may be another one a moment later.
        refused: what was refused first: a table, a function with brackets, or "statement"; "" if nothing was.
    """

    def __init__(self, tables: frozenset[str]) -> None:
        self._readable = tables | _READABLE
        self.changes = False
        self.refused = ""

    def __call__(self, action: int, first: str | None, second: str | None, _: str | None, __: str | None) -> int:
        if self._allows(action, first, second):
            if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in CHANGING:
                self.changes = True
            return sqlite3.SQLITE_OK
        if not self.refused:
            names = {sqlite3.SQLITE_READ: first, sqlite3.SQLITE_FUNCTION: f"{second}()"}
            self.refused = names.get(action) or "statement"
        return sqlite3.SQLITE_DENY

    def _allows(self, action: int, first: str | None, second: str | None) -> bool:
        """Return whether a statement may do this; the meaning of the names depends on the action."""
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                return True
            case sqlite3.SQLITE_READ:
                return first in self._readable or _is_of_statement(first, second)
            case sqlite3.SQLITE_FUNCTION:
                return (second or "").lower() in FUNCTIONS
            case sqlite3.SQLITE_PRAGMA:
                return first in _PRAGMAS
        return False


def _is_of_statement(table: str | None, column: str | None) -> bool:
    """
    Return whether no column of a table is read that can be a part of the statement, such as that of a WITH.

    SQLite's own tables begin with its name; a virtual one that is none of these cannot be made here.
    """
    return column == "" and not (table or "").startswith(("_", "sqlite_"))


class _Clock:
    """Interrupts a statement when it has used its CPU time."""

    def __init__(self) -> None:
        self.began_s = time.process_time()

    @property
    def used_s(self) -> float:
        return time.process_time() - self.began_s

    def is_over(self) -> bool:
        return self.used_s > CPU_S


def open_guarded(path: Path) -> sqlite3.Connection:
    """Open the tables; everything that needs another file is opened by this first read."""
    connection = open_for_reading(path, isolation_level=None, timeout=2)
    for pragma in (
        "query_only=ON",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
        "cache_size=-8000",
        f"hard_heap_limit={HEAP_BYTES}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    limit(connection)
    connection.execute(_PLACE).fetchone()
    return connection


def limit(connection: sqlite3.Connection) -> None:
    """Limit what a statement may be made of."""
    for part, most in _LIMITS.items():
        connection.setlimit(part, most)


# ---------------------------------------------------------------------- answers


Send = Callable[[bytes, bytes], None]


def answer(connection: sqlite3.Connection, asked: Asked, send: Send) -> Answered | Refused:
    """Answer a statement from one snapshot of the tables."""
    clock = _Clock()
    connection.execute("BEGIN")
    try:
        place = connection.execute(_PLACE).fetchone()
        if place is None:
            return Refused(has_no_tables=True)
        tables = frozenset(_tables(connection))
        guard = Guard(tables)
        _prepare(connection, asked.sql)
        try:
            columns, sent = _run(connection, asked, guard, clock, send)
        except _Refusal as refusal:
            return Refused(refusal.message, refusal.hint, clock.used_s)
        except (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError) as error:
            found = _Explaining(connection, asked, guard, tables).refusal(error)
            return Refused(found.message, found.hint, clock.used_s)
        return Answered(
            edition=place[0],
            epoch=place[1],
            form=place[2],
            columns=columns,
            rows=sent.rows,
            objects=sent.objects,
            count=sent.number,
            cut_by=sent.cut_by,
            changes=guard.changes,
            cpu_s=clock.used_s,
        )
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)
        if connection.in_transaction:  # without memory, SQLite has ended it
            connection.execute("COMMIT")


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return [name for (name,) in rows if not name.startswith(("_", "sqlite_"))]


def _prepare(connection: sqlite3.Connection, sql: str) -> None:
    """Let SQLite make the tables of JSON functions, which it declares by a statement that the guard would refuse."""
    for function in ("json_each", "json_tree"):
        if function in sql.lower():
            connection.execute(f"SELECT 1 FROM {function}('[]')").fetchall()


class _Sent(NamedTuple):
    rows: list[list[str | int | float | None]]
    number: int
    cut_by: list[str]
    objects: msgspec.Raw = msgspec.Raw(b"[]")


def _run(
    connection: sqlite3.Connection, asked: Asked, guard: Guard, clock: _Clock, send: Send
) -> tuple[list[str], _Sent]:
    connection.set_authorizer(guard)
    connection.set_progress_handler(clock.is_over, STEPS)
    cursor = connection.execute(asked.sql, asked.parameters)
    if cursor.description is None:
        raise _Refusal("There is no statement.", f"Begin with SELECT or WITH. {_LIST}")
    columns = _different([name for name, *_ in cursor.description])
    if len(msgspec.json.encode(columns)) > asked.size_bytes // 2:
        raise _Refusal("The names of the columns take too much of the answer.", "Give them short names, with AS.")
    return columns, _csv(cursor, columns, asked, send) if asked.is_csv else _rows(cursor, columns, asked)


def _different(names: list[str]) -> list[str]:
    """Return names of columns, each once: an object has each member once."""
    seen: dict[str, int] = {}
    different = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        different.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return different


def _rows(cursor: sqlite3.Cursor, columns: list[str], asked: Asked) -> _Sent:
    rows: list[list[Any]] = []
    objects: list[bytes] = []
    size_bytes, count, cut_by = 0, 0, set()
    for row in cursor:
        if count == asked.rows:
            cut_by.add("rows")
            break
        cells, is_cut = _cells(row)
        # Joins name a column again and again: a statement of 20 KB can ask for 300 KB of names in each object.
        encoded = msgspec.json.encode(dict(zip(columns, cells, strict=True)) if asked.is_named else cells)
        size_bytes += len(encoded) + 1
        if size_bytes > asked.size_bytes:
            cut_by.add("bytes")
            break
        if is_cut:
            cut_by.add("cells")
        count += 1
        if asked.is_named:
            objects.append(encoded)
        else:
            rows.append(cells)
    return _Sent(rows, count, sorted(cut_by), msgspec.Raw(b"[%s]" % b",".join(objects)))


def _cells(row: tuple[Any, ...]) -> tuple[list[Any], bool]:
    """Return the cells of a row as JSON has them, and whether one was cut."""
    cells, is_cut = [], False
    for cell in row:
        shown = cell.hex() if isinstance(cell, bytes) else cell
        if isinstance(shown, str) and len(shown) > MAX_CELL_CHARACTERS:
            shown, is_cut = shown[:MAX_CELL_CHARACTERS], True
        cells.append(shown)
    return cells, is_cut


def _csv(cursor: sqlite3.Cursor, columns: list[str], asked: Asked, send: Send) -> _Sent:
    text = CsvText(asked.form)
    text.write(columns)
    size_bytes, count, cut_by = 0, 0, []
    for row in cursor:
        if count == asked.rows:
            cut_by.append("rows")
            break
        if text.characters > PART_BYTES:
            size_bytes += _send_part(text.take(), send)
        if size_bytes > asked.size_bytes:
            cut_by.append("bytes")
            break
        text.write(row)
        count += 1
    _send_part(text.take(), send)
    return _Sent([], count, cut_by)


def _send_part(part: bytes, send: Send) -> int:
    send(PART, part)
    return len(part)


# ---------------------------------------------------------------------- refusals


_NEAR: Final = re.compile(r'near "(.*)": syntax error', re.DOTALL)
_NO_TABLE: Final = re.compile(r"no such table: (?:main\.)?(.*)", re.DOTALL)
_NO_COLUMN: Final = re.compile(r"(?:no such column|ambiguous column name): (.*)", re.DOTALL)
_NO_FUNCTION: Final = re.compile(r"no such function: (.*)", re.DOTALL)
_NO_VALUE: Final = re.compile(r"binding parameter :(\w+)|Binding (\d+) has no name")
_SELECT_ONLY: Final = "Only reading is allowed: one statement that begins with SELECT or WITH."
_LIST: Final = "SELECT name, sql FROM sqlite_schema lists the tables and their columns."
_OF_SQLITE: Final = "SQLite's functions for numbers, texts, dates, JSON and windows are available."
_SHOWN: Final = 100
"""Characters of a statement in a message."""


class _Explaining:
    """Says what is wrong with a statement, and where."""

    def __init__(self, connection: sqlite3.Connection, asked: Asked, guard: Guard, tables: frozenset[str]) -> None:
        self._connection, self._asked, self._guard, self._tables = connection, asked, guard, tables

    def refusal(self, error: BaseException) -> _Refusal:
        said = str(error)
        if isinstance(error, MemoryError):
            return _Refusal(
                f"The statement takes more than {HEAP_BYTES >> 20} MB of memory.",
                "Sort or group fewer rows: filter first, and leave out long texts such as body.",
            )
        if said == "interrupted":
            return _Refusal(
                f"The statement takes more than {CPU_S:g} s of CPU time.",
                "Join on slugs, filter before joining, and leave out long texts; LIMIT alone does not shorten a sort.",
            )
        if "VACUUM" in said:
            return _Refusal(_SELECT_ONLY, _LIST)
        if isinstance(error, sqlite3.Warning | sqlite3.ProgrammingError) and "one statement" in said:
            return _Refusal("There is more than one statement.", "Send one at a time.")
        for explain in (self._refused, self._syntax, self._table, self._column, self._function, self._value):
            found = explain(said)
            if found is not None:
                return found
        return _Refusal(f"SQLite says: {said[:300].rstrip(chr(46))}.", _LIST)

    def _refused(self, said: str) -> _Refusal | None:
        what = self._guard.refused
        if not what or not ("prohibited" in said or "not authorized" in said):
            return None
        if what == "statement":
            return _Refusal(_SELECT_ONLY, _LIST)
        if what.endswith("()"):
            return _Refusal(
                f"The function {what} is not available{self._at(what[:-2])}.", _nearest(what[:-2], FUNCTIONS)
            )
        return _Refusal(
            f"The table {what} cannot be read{self._at(what)}.", f"Tables: {', '.join(sorted(self._tables))}."
        )

    def _syntax(self, said: str) -> _Refusal | None:
        match = _NEAR.fullmatch(said)
        if match is None:
            if said == "incomplete input":
                return _Refusal("The statement is incomplete.", "Close its brackets and quotes.")
            return None
        near = match[1]
        return _Refusal(
            f'Syntax error near "{near[:_SHOWN]}"{self._at_fault(near, said)}.',
            f"The dialect is that of SQLite; texts are in single quotes. {_LIST}",
        )

    def _table(self, said: str) -> _Refusal | None:
        match = _NO_TABLE.fullmatch(said)
        if match is None:
            return None
        hint = _nearest(match[1], self._tables, f"Tables: {', '.join(sorted(self._tables))}.")
        return _Refusal(f"There is no table {match[1][:_SHOWN]}{self._at(match[1])}.", hint)

    def _column(self, said: str) -> _Refusal | None:
        match = _NO_COLUMN.fullmatch(said)
        if match is None:
            return None
        name = match[1].rpartition(".")[2]
        if said.startswith("ambiguous"):
            hint = f"Name its table, for example companies.{name[:_SHOWN]}."
            return _Refusal(f"Several tables have the column {match[1][:_SHOWN]}{self._at(match[1])}.", hint)
        columns = self._columns()
        named = {each for each in columns if re.search(rf"\b{each}\b", self._asked.sql, re.IGNORECASE)} or set(columns)
        of_tables: dict[str, list[str]] = {}
        for table in sorted(named):
            for column in columns[table]:
                of_tables.setdefault(column, []).append(table)
        near = difflib.get_close_matches(name.lower(), of_tables, n=3, cutoff=0.6)
        hint = f"Did you mean {' or '.join(f'{of_tables[each][0]}.{each}' for each in near)}?"
        if not near:
            shown = sorted(named)[:2]
            hint = " ".join(f"{each} has {', '.join(columns[each])}." for each in shown)
        return _Refusal(f"There is no column {match[1][:_SHOWN]}{self._at(match[1])}.", hint)

    def _function(self, said: str) -> _Refusal | None:
        match = _NO_FUNCTION.fullmatch(said)
        if match is None:
            return None
        return _Refusal(f"There is no function {match[1][:_SHOWN]}{self._at(match[1])}.", _nearest(match[1], FUNCTIONS))

    def _value(self, said: str) -> _Refusal | None:
        match = _NO_VALUE.search(said)
        if match is None:
            return None
        if match[1] is None:
            return _Refusal("The statement has parameters without a name.", "Name them, for example :city.")
        return _Refusal(f"The parameter :{match[1]} has no value.", f"Send {match[1]} with the statement.")

    def _columns(self) -> dict[str, list[str]]:
        self._connection.set_authorizer(None)
        columns = {}
        for table in self._tables:
            rows = self._connection.execute(f'PRAGMA table_info("{table}")')
            columns[table] = [row[1] for row in rows]
        return columns

    def _at(self, name: str) -> str:
        """Return the place of the first occurrence of a name; an empty text without one."""
        match = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", self._asked.sql, re.IGNORECASE)
        return "" if match is None else self._place(match.start())

    def _at_fault(self, near: str, said: str) -> str:
        """
        Return the place of the token that SQLite does not expect, of which there may be several.

        A statement that ends with the right one has the same fault; one that ends before it is only incomplete. The
        guard stays: with the word before it, a statement may be another one, and some PRAGMAs work when compiled.
        """
        for match in re.finditer(re.escape(near), self._asked.sql):
            try:
                self._connection.execute(f"EXPLAIN {self._asked.sql[: match.end()]}", self._asked.parameters)
            except (sqlite3.Error, sqlite3.Warning) as error:
                if str(error) == said:
                    return self._place(match.start())
        return ""

    def _place(self, offset: int) -> str:
        before = self._asked.sql[:offset]
        return f", line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}"


def _nearest(name: str, names: frozenset[str], otherwise: str = _OF_SQLITE) -> str:
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise


# ---------------------------------------------------------------------- the process


def _main() -> None:
    cpu_s, memory_bytes, path = sys.argv[1:]
    os.nice(NICENESS)
    connection = open_guarded(Path(path))
    confinement.limit(int(cpu_s), int(memory_bytes))
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    confinement.confine(locks=True)
    given, out = sys.stdin.buffer, sys.stdout.buffer

    def send(kind: bytes, content: bytes) -> None:
        out.write(HEAD.pack(kind, len(content)) + content)
        out.flush()

    for line in _lines(given):
        # Its signal ends the process, whatever SQLite does at that moment.
        signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
        found = answer(connection, msgspec.json.decode(line, type=Asked), send)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(END, msgspec.json.encode(found))
        # What one statement leaves in pieces would be missing to a next one that needs large pieces.
        release_free_memory()


def _lines(given: BinaryIO) -> Iterator[bytes]:
    while select.select([given], [], [], IDLE_S)[0] and (line := given.readline()):
        yield line


if __name__ == "__main__":
    _main()
