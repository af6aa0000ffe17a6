"""Two hundred hostile statements: each is refused or ends in time, and none changes anything or leads out."""

import asyncio
import hashlib

import pytest

from make.published import company
from muniment.kernel import fairness
from muniment.kernel.problems import BadRequest
from muniment.store.tables import answering, statements
from muniment.store.tables.answering import Asked

N = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
WRITES = [
    *(f"INSERT INTO {table} VALUES (1)" for table in ("companies", "changes", "sqlite_schema", "_followed")),
    *(f"UPDATE {table} SET slug = 1" for table in ("companies", "people", "frameworks", "changes")),
    *(f"DELETE FROM {table}" for table in ("companies", "changes", "_followed", "sqlite_stat1", "sqlite_sequence")),
    *(f"DROP {kind} x" for kind in ("TABLE", "INDEX", "VIEW", "TRIGGER", "TABLE IF EXISTS")),
    *(f"CREATE {kind} x" for kind in ("TABLE", "INDEX", "VIEW", "TRIGGER", "VIRTUAL TABLE")),
    *(
        "CREATE TABLE x AS SELECT 1",
        "CREATE TEMP TABLE x (a)",
        "CREATE VIEW x AS SELECT 1",
        "CREATE TEMP VIEW x AS SELECT 1",
    ),
    *("CREATE VIRTUAL TABLE x USING fts5(a)", "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')"),
    *("CREATE VIRTUAL TABLE temp.x USING dbstat", "CREATE TRIGGER x AFTER INSERT ON companies BEGIN SELECT 1; END"),
    *("CREATE INDEX x ON companies (name)", "ALTER TABLE companies RENAME TO x", "ALTER TABLE companies ADD y"),
    *("REINDEX", "ANALYZE", "ANALYZE companies", "VACUUM", "VACUUM INTO 'x'", "REPLACE INTO people VALUES (1)"),
    *("BEGIN", "BEGIN EXCLUSIVE", "COMMIT", "ROLLBACK", "SAVEPOINT x", "RELEASE x", "ROLLBACK TO x", "END"),
    *("ATTACH '/etc/passwd' AS p", "ATTACH ':memory:' AS p", "ATTACH 'file:x?mode=memory' AS p", "DETACH main"),
    *("WITH t AS (SELECT 1) INSERT INTO people SELECT * FROM t", "WITH t AS (SELECT 1) DELETE FROM people"),
    *("EXPLAIN DELETE FROM people", "EXPLAIN QUERY PLAN UPDATE people SET bio = 1"),
    "INSERT INTO people (slug) VALUES ('x') RETURNING slug",
    "UPDATE people SET bio = 1 RETURNING slug",
]
PRAGMAS = [
    *(
        f"PRAGMA {each}"
        for each in (
            "query_only = 0",
            "writable_schema = 1",
            "journal_mode = DELETE",
            "hard_heap_limit = 0",
            "temp_store = 0",
            "cache_size = 1000000",
            "mmap_size = 1000000000",
            "temp_store_directory = '/tmp'",
            "database_list",
            "wal_checkpoint",
            "user_version = 9",
            "schema_version = 9",
            "locking_mode = EXCLUSIVE",
            "integrity_check",
            "optimize",
            "shrink_memory",
            "trusted_schema = 1",
            "module_list",
            "function_list",
            "compile_options",
            "data_version",
            "key = 'x'",
            "soft_heap_limit = 0",
            "busy_timeout = 1000000",
            "foreign_keys = 1",
            "page_size = 65536",
            "secure_delete = 0",
            "synchronous = 0",
            "threads = 9",
            "incremental_vacuum",
            "auto_vacuum = 1",
            "recursive_triggers = 1",
            "legacy_alter_table = 1",
            "index_list(companies)",
        )
    ),
    *(
        f"SELECT * FROM pragma_{each}"
        for each in (
            "database_list",
            "function_list",
            "module_list",
            "compile_options",
            "query_only",
            "hard_heap_limit(0)",
            "table_info('companies')",
            "user_version",
            "wal_checkpoint",
            "optimize",
        )
    ),
]
FUNCTIONS = [
    f"SELECT {each}"
    for each in (
        *(
            "load_extension('x')",
            "load_extension('/lib/x.so', 'main')",
            "readfile('/etc/passwd')",
            "writefile('x', 1)",
        ),
        *(
            "edit('x')",
            "fts3_tokenizer('simple')",
            "fts3_tokenizer('x', x'00')",
            "zeroblob(1000000000)",
            "randomblob(1e9)",
        ),
        *(
            "sqlite_offset(slug) FROM companies",
            "sqlite_compileoption_get(1)",
            "sqlite_log(1, 'x')",
            "sqlite_source_id()",
        ),
        *("rtreenode(2, x'00')", "rtreecheck('x')", "rtreedepth(x'00')", "matchinfo(companies) FROM companies"),
        *(
            "snippet(companies) FROM companies",
            "offsets(companies) FROM companies",
            "highlight(companies, 1, 'a', 'b')",
        ),
        *("fts5(1)", "fts5_source_id()", "bm25(companies)", "optimize(companies)", "last_insert_rowid()", "changes()"),
        *(
            "total_changes()",
            "match(1, 2)",
            "soundex(zeroblob(9))",
            "generate_series(1, 9)",
            "md5('x')",
            "system('id')",
        ),
        *(
            "eval('SELECT 1')",
            "shell('id')",
            "lsdir('/')",
            "getenv('HOME')",
            "sleep(9)",
            "pg_sleep(9)",
            "benchmark(1, 2)",
        ),
    )
]
TABLES = [
    f"SELECT * FROM {each}"
    for each in (
        *("_followed", "main._followed", "temp.sqlite_schema", "sqlite_stat1", "sqlite_sequence", "sqlite_temp_master"),
        *("dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode('SELECT 1')", "tables_used('SELECT 1')", "fsdir('/')"),
        *(
            "csv('/etc/passwd')",
            "published_document",
            "auth_user",
            "accounts_account",
            "generate_series(1, 9)",
            "completion",
        ),
        *(
            "(SELECT edition FROM _followed)",
            "companies, _followed",
            "companies JOIN _followed",
            "wholenumber",
            "carray(1, 2)",
        ),
        "companies WHERE EXISTS (SELECT 1 FROM _followed)",
    )
]
BROKEN = [
    *("SELECT 1; SELECT 2", "SELECT 1; DROP TABLE companies", ";;; DELETE FROM people", "/* */ ; DROP TABLE people"),
    *(
        "",
        " ",
        ";",
        "--",
        "/*",
        "'",
        '"',
        "`",
        "[",
        "SELECT '",
        "SELECT (",
        "SELECT " + "(" * 5_000,
        "\x01",
        "\ufeff SELECT",
    ),
    *("SELECT ?", "SELECT ?1", "SELECT @x", "SELECT $x", "SELECT :x", "SELECT " + "-" * 9_000 + "1", "é" * 9_000),
    "SELECT " + " + ".join(["1"] * 5_000),
    "SELECT " + ",".join(["1"] * 9_000),
    " UNION ALL ".join(["SELECT 1"] * 500),
    "SELECT * FROM " + ", ".join(f"companies c{number}" for number in range(100)),
    "SELECT " + "abs(" * 1_000 + "1" + ")" * 1_000,
    "SELECT 1 WHERE " + " AND ".join(["1"] * 4_000),
    "SELECT max(" + ",".join(["1"] * 200) + ")",
    "SELECT CASE " + "WHEN 1 THEN 1 " * 1_000 + "END",
    f"SELECT '{'a' * 30_000}'",
    "SELECT hex(" + "'a'||" * 1_500 + "'a')",
    "WITH "
    + ", ".join(f"t{number} AS (SELECT * FROM t{number - 1})" for number in range(1, 400))
    + " SELECT * FROM t399",
]
HEAVY = [
    f"{N} SELECT max(x) FROM n",
    f"{N} SELECT x FROM n ORDER BY x DESC LIMIT 1",
    f"{N} SELECT DISTINCT x % 9999999 FROM n ORDER BY 1 DESC",
    f"{N} SELECT group_concat(x) FROM n",
    f"{N} SELECT json_group_array(x) FROM n",
    f"{N} SELECT count(*) FROM n a, n b",
    f"{N} SELECT sum(length(hex(printf('%.*c', 200000, 'a') || x))) FROM n",
    f"{N} SELECT printf('%.*c', 900000, 'a') || x FROM n ORDER BY 1",
    "WITH RECURSIVE n(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM n) SELECT length(x) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION SELECT x + 1 FROM n UNION SELECT x * 2 FROM n) SELECT count(*) FROM n",
    "SELECT instr(printf('%.*c', 900000, 'a'), printf('%.*c', 450000, 'a') || 'b')",
    "SELECT printf('%.*c', 900000, 'a') LIKE '" + "%a" * 90 + "b'",
    "SELECT printf('%.*c', 900000, 'a') GLOB '" + "*a" * 90 + "b'",
    "SELECT replace(printf('%.*c', 900000, 'a'), 'a', 'aa')",
    "SELECT json_extract('" + "[" * 900 + "]" * 900 + "', '$[0]')",
    "SELECT printf('%999999999d', 1)",
    "SELECT printf('%.999999999f', 1.0)",
]


@pytest.fixture
def made(publisher, reader, tables, monkeypatch):
    monkeypatch.setattr(statements, "DEADLINE_S", 120)
    publisher.publish(*(company(number, themes=["a", "b"]) for number in range(1, 40)))
    reader.refresh()
    tables.follow()
    tables.close()
    return reader.statements


@pytest.fixture
def charged(monkeypatch):
    """Collect the milliseconds that statements are charged."""
    found = []
    monkeypatch.setattr(fairness.current().statements, "charge", lambda _, cost: found.append(cost))
    return found


def is_answered(made, sql):
    try:
        asyncio.run(made.answer(Asked(sql, {}, 1_000, 60_000), "203.0.113.1"))
    except BadRequest as refusal:
        return not (refusal.message and refusal.hint)
    return True


def content(folder):
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if "shm" not in file.name
    }


def test_there_are_two_hundred():
    assert len({*WRITES, *PRAGMAS, *FUNCTIONS, *TABLES, *BROKEN, *HEAVY}) >= 200


def test_hostile_statements_are_refused_or_end_in_time_and_change_nothing(made, tables, charged):
    asyncio.run(made.answer(Asked("SELECT 1", {}, 9, 99), "c"))
    before = content(tables.path.parent)
    answered = [sql for sql in (*WRITES, *PRAGMAS, *FUNCTIONS, *TABLES, *BROKEN) if is_answered(made, sql)]
    assert [sql for sql in answered if sql not in BROKEN] == []
    assert max(charged) < 800
    assert content(tables.path.parent) == before
    assert asyncio.run(made.answer(Asked("SELECT count(*) FROM companies", {}, 9, 99), "c")).answered.rows == [[39]]


def test_a_statement_whose_fault_is_looked_for_changes_nothing_for_the_next_one(made, tables):
    connection = answering.open_guarded(tables.path)
    kept = ("query_only", "trusted_schema", "locking_mode", "cache_size", "hard_heap_limit", "busy_timeout")

    def of_connection():
        return [connection.execute(f"PRAGMA {name}").fetchall() for name in kept]

    def answered(sql):
        return answering.answer(connection, Asked(sql, {}, 9, 999), lambda *_: None)

    before = of_connection()
    changes = (
        "query_only = 0",
        "trusted_schema = 1",
        "locking_mode = EXCLUSIVE",
        "cache_size = -9",
        "busy_timeout = 9",
    )
    for change in (*changes, "case_sensitive_like = 1", "hard_heap_limit = 9000000"):
        # SQLite is asked again with the word EXPLAIN, which makes a statement of it.
        found = answered(f"QUERY PLAN PRAGMA {change} -- QUERY")
        assert found.message.startswith('Syntax error near "QUERY"')
    assert of_connection() == before
    assert answered("SELECT 'a' LIKE 'A'").rows == [[1]]
    connection.close()


def test_statements_that_take_much_end_by_their_limits_within_the_memory_of_their_process(made, charged):
    ended = []
    for sql in HEAVY:
        before = made._reader._running
        is_answered(made, sql)
        running = made._reader._running
        if running is None or (before is not None and running.process is not before.process):
            ended.append(sql)  # its process was ended by the kernel, at the same time
            continue
        assert charged[-1] < 800, sql
        with open(f"/proc/{running.process.pid}/status", encoding="ascii") as status:  # noqa: PTH123 - of the system
            peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        assert peak_kb < 128 << 10, sql
    assert len(ended) < len(HEAVY) // 2
