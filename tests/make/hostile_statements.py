"""Statements of people who mean harm: they write, look for files and other tables, or take as much as they can."""

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
PAIRS = "companies a, companies b"
ON_REAL_ROWS = [
    # Of a registry with thousands of rows: joins without a condition, sorts, long texts, and answers of many bytes.
    f"SELECT count(*) FROM {PAIRS}, companies c",
    f"SELECT count(*) FROM {PAIRS} WHERE a.body = b.body || 'x'",
    f"SELECT a.slug FROM {PAIRS} ORDER BY a.body || b.slug LIMIT 1",
    f"SELECT DISTINCT a.slug || b.slug FROM {PAIRS}",
    f"SELECT group_concat(a.body) FROM {PAIRS}",
    f"SELECT json_group_array(a.body) FROM {PAIRS}",
    f"SELECT json_group_object(a.slug, b.body) FROM {PAIRS}",
    f"SELECT a.type, b.type, count(DISTINCT a.slug || b.slug) FROM {PAIRS} GROUP BY 1, 2",
    f"SELECT sum(row_number) FROM (SELECT row_number() OVER (ORDER BY a.name, b.name) AS row_number FROM {PAIRS})",
    f"SELECT slug FROM companies UNION SELECT a.slug || b.slug FROM {PAIRS}",
    f"SELECT slug FROM companies EXCEPT SELECT a.slug || b.slug FROM {PAIRS}",
    "SELECT slug, (SELECT count(*) FROM companies b WHERE b.body > a.body) FROM companies a ORDER BY 2",
    "SELECT count(*) FROM companies WHERE body LIKE '" + "%e_" * 60 + "'",
    "SELECT count(*) FROM companies WHERE body GLOB '" + "*[a-z]?" * 25 + "'",
    "SELECT count(*) FROM companies a, people b WHERE instr(a.body, b.bio)",
    "SELECT sum(length(replace(replace(replace(body, 'e', 'eee'), 'ee', 'eeee'), 'e', 'ee'))) FROM companies",
    "SELECT hex(hex(hex(hex(group_concat(body))))) FROM companies",
    "SELECT max(length(printf('%s%s%s%s%s%s', body, body, body, body, body, body))) FROM companies a, people",
    "SELECT sum(length(hex(body) || hex(body) || hex(body))) FROM companies, people",
    "SELECT count(*) FROM companies, json_each('[' || replace(hex(body), '0', '0,1,') || '1]')",
    f"SELECT count(*) FROM (SELECT *, sum(a.team_size) OVER (PARTITION BY b.slug) FROM {PAIRS})",
    "WITH RECURSIVE n(x) AS (SELECT body FROM companies UNION ALL SELECT x || x FROM n) SELECT sum(length(x)) FROM n",
    "WITH RECURSIVE n(s) AS (SELECT slug FROM people UNION SELECT s || slug FROM n, people) SELECT count(*) FROM n",
    "SELECT * FROM companies ORDER BY random() LIMIT 1000",
    "SELECT body, description, name, website FROM companies WHERE length(body) > 300 ORDER BY random() LIMIT 1000",
    "SELECT *, random() FROM companies a, positions LIMIT 1000",
    "SELECT " + ", ".join(f"a.body AS b{number}, random() AS r{number}" for number in range(60)) + f" FROM {PAIRS}",
    "SELECT random(), " + ", ".join(["slug"] * 400) + " FROM companies",
]
ALL = [*WRITES, *PRAGMAS, *FUNCTIONS, *TABLES, *BROKEN, *HEAVY, *ON_REAL_ROWS]
REFUSED = [*WRITES, *PRAGMAS, *FUNCTIONS, *TABLES]
"""None of them may be answered."""
