"""Statements of strangers: what is answered, what is refused and where it is wrong, and how one is ended."""

import asyncio
import os
import signal
from tempfile import TemporaryFile

import msgspec
import pytest

from make.published import company, person
from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness
from muniment.kernel.problems import BadRequest, TooMany, Unavailable
from muniment.schema.kinds import Number
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field
from muniment.store.tables import answering, following, statements
from muniment.store.tables.answering import Asked
from muniment.store.tables.statements import MAX_SQL_BYTES, Statements, value_of

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


@pytest.fixture(autouse=True)
def _limits():
    before = fairness.current()
    yield
    fairness.use(before)


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Judge statements by their CPU time: beside a busy suite, a process of low priority takes long by the clock."""
    monkeypatch.setattr(statements, "DEADLINE_S", 120)


@pytest.fixture
def made(publisher, reader, tables):
    publisher.publish(
        company(1, "harbour", teamSize=3, themes=["ports", "water"]),
        company(2, "quay", teamSize=12, description="=1+1"),
        person(1, "ada", bio="b" * 12_000),
    )
    reader.refresh()
    tables.follow()
    return reader.statements


def ask(of, sql, *, rows=100, size_bytes=60_000, client="203.0.113.1", **parameters):
    return asyncio.run(of.answer(Asked(sql, parameters, rows, size_bytes), client)).answered


def refused(of, sql, **parameters):
    with pytest.raises(BadRequest) as caught:
        ask(of, sql, **parameters)
    return caught.value


@pytest.mark.parametrize(
    ("sql", "columns", "rows"),
    [
        ("SELECT slug FROM companies ORDER BY 1", ["slug"], [["harbour"], ["quay"]]),
        ("  with t as (select * from themes) SELECT count(*) AS n FROM t ; -- end", ["n"], [[3]]),
        ('SELECT "slug", slug FROM companies LIMIT 1', ["slug", "slug_2"], [["harbour", "harbour"]]),
        ("SELECT value FROM json_each('[1,2]')", ["value"], [[1], [2]]),
        ("SELECT 1.5 AS a, NULL AS b, x'00ff' AS c, 9e999 AS d", ["a", "b", "c", "d"], [[1.5, None, "00ff", None]]),
        ("SELECT sum(team_size) OVER (ORDER BY slug) AS s FROM companies", ["s"], [[3], [15]]),
        ("PRAGMA table_info(themes)", ["cid", "name", "type", "notnull", "dflt_value", "pk"], None),
        ("SELECT name FROM sqlite_schema WHERE name = 'people'", ["name"], [["people"]]),
        ("EXPLAIN QUERY PLAN SELECT * FROM people", ["id", "parent", "notused", "detail"], None),
        ("VALUES (1)", ["column1"], [[1]]),
        ("WITH t AS (SELECT slug FROM people) SELECT 1 AS one FROM t", ["one"], [[1]]),
        ("SELECT count(*) AS n FROM (SELECT slug FROM companies) AS t", ["n"], [[2]]),
    ],
)
def test_statements_that_read_are_answered(made, sql, columns, rows):
    found = ask(made, sql)
    assert found.columns == columns
    assert rows is None or found.rows == rows
    assert (found.edition, found.cut_by) == (3, [])


def test_parameters_have_names(made):
    sql = "SELECT slug FROM companies WHERE team_size > :least AND slug <> :not"
    assert ask(made, sql, **{"least": 2, "not": "quay"}).rows == [["harbour"]]
    assert refused(made, sql, least=1).message == "The parameter :not has no value."
    assert "without a name" in refused(made, "SELECT ?").message
    assert [value_of(each) for each in ("5", "-1.5", "0100", "1e3", "x", "nan", "9" * 30)] == [
        *(5, -1.5, "0100", "1e3", "x", "nan", "9" * 30)
    ]


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("SELEC 1", 'Syntax error near "SELEC", line 1, column 1.', "SQLite"),
        ("SELECT slug\nFROM companies\nWHERE slug = 1 1", 'Syntax error near "1", line 3, column 16.', "SQLite"),
        ("SELECT * FROM companys", "There is no table companys, line 1, column 15.", "Did you mean companies"),
        ("SELECT * FROM xyzzy", "There is no table xyzzy, line 1, column 15.", "Tables: addresses, "),
        ("SELECT\n nam FROM companies", "There is no column nam, line 2, column 2.", "companies.name"),
        ("SELECT people.zzz FROM people", "There is no column people.zzz", "people has slug, "),
        ("SELECT slug FROM companies, people", "Several tables have the column slug", "companies.slug"),
        ("SELECT floo(1)", "There is no function floo, line 1, column 8.", "Did you mean floor"),
        ("SELECT (1", "The statement is incomplete.", "brackets"),
        ("SELECT 1; SELECT 2", "There is more than one statement.", "one at a time"),
        ("-- nothing", "There is no statement.", "SELECT"),
        ("DELETE FROM companies", "Only reading is allowed", "sqlite_schema"),
        ("VACUUM", "Only reading is allowed", "sqlite_schema"),
        ("BEGIN", "Only reading is allowed", "sqlite_schema"),
        ("ATTACH 'x' AS y", "Only reading is allowed", "sqlite_schema"),
        ("PRAGMA query_only = 0", "Only reading is allowed", "sqlite_schema"),
        ("SELECT * FROM _followed", "The table _followed cannot be read, line 1, column 15.", "Tables: "),
        ("SELECT 1 FROM _followed", "The table _followed cannot be read, line 1, column 15.", "Tables: "),
        ("SELECT count(*) FROM sqlite_stat1", "The table sqlite_stat1 cannot be read", "Tables: "),
        ("SELECT count(*) FROM dbstat", "SQLite says: vtable constructor failed: dbstat.", "sqlite_schema"),
        ("SELECT load_extension('x')", "The function load_extension() is not available", "functions"),
        ("SELECT zeroblob(9)", "The function zeroblob() is not available, line 1, column 8.", "functions"),
        ("SELECT cast(x'ff' AS TEXT)", "SQLite says: Could not decode to UTF-8", "sqlite_schema"),
        ("SELECT '" + "a" * MAX_SQL_BYTES + "'", "The statement has 20,009 bytes", "several"),
        ("SELECT 1\0", "The statement contains a NUL character.", "Leave it out."),
    ],
)
def test_a_statement_that_is_wrong_says_what_and_where_and_what_is_near(made, sql, message, hint):
    found = refused(made, sql)
    assert found.message.startswith(message)
    assert hint in found.hint


def test_too_many_or_too_long_parameters_are_refused(made):
    assert "more than 20" in refused(made, "SELECT 1", **{f"p{n}": 1 for n in range(21)}).message
    assert "at most 1,000" in refused(made, "SELECT :p", p="x" * 1_001).message


def test_the_answer_says_which_cap_cut_it(made):
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200) SELECT x FROM n"
    assert (ask(made, many, rows=200).cut_by, ask(made, many, rows=199).cut_by) == ([], ["rows"])
    assert ask(made, many, rows=200, size_bytes=300).cut_by == ["bytes"]
    found = ask(made, "SELECT bio FROM people")
    assert (found.cut_by, len(found.rows[0][0])) == (["cells"], answering.MAX_CELL_CHARACTERS)


def test_the_names_of_columns_count_where_each_row_repeats_them(made):
    names = ", ".join(f"1 AS {letter * 400}" for letter in "abcde")
    many = f"WITH t AS (SELECT {names}) SELECT * FROM t JOIN t other JOIN json_each('[{','.join('1' * 90)}]')"
    asked = Asked(many, {}, 100, 20_000)
    assert len(asyncio.run(made.answer(asked, "c")).answered.rows) == 90
    named = asyncio.run(made.answer(msgspec.structs.replace(asked, is_named=True), "c")).answered
    objects = msgspec.json.decode(named.objects)
    assert (len(objects), named.count, named.rows, named.cut_by) == (4, 4, [], ["bytes"])
    assert list(objects[0]) == named.columns
    assert len(named.objects) <= asked.size_bytes
    with pytest.raises(BadRequest, match="The names of the columns take too much"):
        ask(made, many, size_bytes=8_000)


def test_a_csv_is_written_whole_and_without_formulas(made):
    with TemporaryFile() as file:
        told = asyncio.run(made.answer(Asked("SELECT slug, description FROM companies", {}, 9, 9_999, True), "c", file))
        file.seek(0)
        assert file.read() == b"slug,description\r\nharbour,\r\nquay,'=1+1\r\n"
    assert (told.answered.count, told.answered.rows) == (2, [])
    with TemporaryFile() as file:
        large = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT hex(x) FROM n"
        cut = asyncio.run(made.answer(Asked(large, {}, 10**6, 1_000, True), "c", file)).answered
        assert cut.cut_by == ["bytes"]


def test_the_tag_is_of_the_statement_and_the_edition(made, publisher, reader, tables):
    def told(sql, **parameters):
        return asyncio.run(made.answer(Asked(sql, parameters, 9, 9_999), "c"))

    first, other = told("SELECT count(*) FROM people"), told("SELECT count(*) FROM companies")
    assert first.tag == told("SELECT count(*) FROM people").tag != other.tag
    assert first.version == reader.version
    assert told("SELECT date('now')").version is None, "another day it is another"
    publisher.publish(company(3))
    reader.refresh()
    assert told("SELECT count(*) FROM people").version is None, "the tables do not show this edition yet"
    tables.follow()
    assert told("SELECT count(*) FROM people").tag != first.tag


def test_an_answer_from_tables_of_another_form_is_not_kept_and_has_another_tag(made, reader, tables):
    def told():
        return asyncio.run(made.answer(Asked("SELECT * FROM people", {}, 9, 99_999), "c"))

    before = told()
    assert before.version == reader.version
    with_field = registry_schema("USD").declare(person=(Field("rank", Number(0, 9), "Rank"),))
    made.use(following.Form(with_field))
    assert told().version is None, "these tables are about to be made again"
    tables.use(with_field)
    assert tables.follow()
    after = told()
    assert (after.answered.edition, after.version) == (before.answered.edition, reader.version)
    assert after.tag != before.tag
    assert {*after.answered.columns} - {*before.answered.columns} == {"rank"}


def test_a_long_statement_is_interrupted_and_its_process_goes_on(made):
    assert refused(made, ENDLESS).message == "The statement takes more than 0.5 s of CPU time."
    process = made._reader._running.process
    large = ENDLESS.replace("max(x)", "printf('%.*c', 900000, 'a') || x")
    assert "64 MB" in refused(made, f"{large} ORDER BY 1").message
    assert ask(made, "SELECT 1").rows == [[1]]
    assert made._reader._running.process is process


def test_what_a_statement_took_is_there_for_the_next_one_and_the_process_stays_small(made):
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
    # It takes all memory in small pieces, unless a busy machine ends it by its time before.
    assert "takes more than" in refused(made, f"{numbers} SELECT DISTINCT x % 9999999 FROM n ORDER BY 1 DESC").message
    process = made._reader._running.process
    long_texts = ", ".join(
        f"printf('%.*c', 500000, 'a') || '\N{WATER WAVE}{number}' AS t{number}" for number in range(40)
    )
    for _ in range(3):
        # Python takes four bytes for each letter of a text with such a sign.
        assert "memory" in refused(made, f"SELECT {long_texts}").message
    assert ask(made, "SELECT length(printf('%.*c', 900000, 'a')) AS n").rows == [[900_000]]
    assert made._reader._running.process is process
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:  # noqa: PTH123 - of the system
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert 64 << 10 < peak_kb < 128 << 10


def test_the_process_lets_requests_go_first(made):
    ask(made, "SELECT 1")
    own, process = os.getpriority(os.PRIO_PROCESS, 0), made._reader._running.process
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(19, own + answering.NICENESS)


def test_a_step_that_cannot_be_interrupted_ends_the_process_and_the_next_statement_starts_another(made):
    ask(made, "SELECT 1")
    process = made._reader._running.process
    found = refused(made, "SELECT instr(printf('%.*c', 900000, 'a'), printf('%.*c', 450000, 'a') || 'b')")
    assert found.message == "The statement takes too much time or memory."
    assert process.wait() in {-signal.SIGPROF, -signal.SIGKILL}
    assert ask(made, "SELECT 2").rows == [[2]]


def test_an_idle_process_ends_and_the_next_statement_starts_another(made):
    ask(made, "SELECT 1")
    process = made._reader._running.process
    process.stdin.close()  # as it ends by itself
    process.wait()
    made._reader._running.process.stdin = open(os.devnull, "wb", buffering=0)  # noqa: SIM115, PTH123 - in its place
    assert ask(made, "SELECT 2").rows == [[2]]
    assert made._reader._running.process is not process


def test_a_process_that_says_nonsense_or_too_much_is_ended(made, monkeypatch):
    ask(made, "SELECT 1")
    monkeypatch.setattr(statements, "_ENDING_BYTES", 1)
    assert "too much time or memory" in refused(made, "SELECT 2").message
    monkeypatch.undo()
    assert ask(made, "SELECT 3").rows == [[3]]
    monkeypatch.setattr(statements, "MAX_USED_S", -1)
    assert "too much time or memory" in refused(made, "SELECT 4").message


def test_a_client_that_goes_away_ends_its_statement(made):
    async def leave():
        asked = asyncio.ensure_future(made.answer(Asked(ENDLESS, {}, 9, 9), "c"))
        while made._reader._running is None:  # noqa: ASYNC110 - the process starts in a thread
            await asyncio.sleep(0)
        process = made._reader._running.process
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        return process

    assert asyncio.run(leave()).wait() == -signal.SIGKILL
    assert not made._waiting
    assert ask(made, "SELECT 1").rows == [[1]]


def test_a_statement_is_charged_to_its_address_alone(made):
    limits = fairness.use(Fairness(rate=600, burst=100))
    limits.statements.charge("198.51.100.1", limits.statements.burst * 1.5)
    with pytest.raises(TooMany, match="computing time"):
        ask(made, "SELECT 1", client="198.51.100.1")
    assert ask(made, "SELECT 1", client="198.51.100.2").rows == [[1]]
    before = limits.statements.peek("198.51.100.2").remaining
    refused(made, ENDLESS, client="198.51.100.2")
    assert before - limits.statements.peek("198.51.100.2").remaining > 400, "milliseconds, also of a refusal"


def test_few_statements_of_one_address_and_of_all_wait_at_once(made, monkeypatch):
    async def crowd(clients):
        asked = [asyncio.ensure_future(made.answer(Asked("SELECT 1", {}, 9, 99), client)) for client in clients]
        return await asyncio.gather(*asked, return_exceptions=True)

    async def twice():
        of_one = await crowd(["a"] * 5 + ["b"])
        monkeypatch.setattr(statements, "MAX_WAITING", 2)
        return of_one, await crowd(["a", "b", "c"])

    for found, refusal in zip(asyncio.run(twice()), (TooMany, Unavailable), strict=True):
        assert [type(each) for each in found if isinstance(each, Exception)] == [refusal]
    assert not made._waiting


def test_before_the_tables_are_made_a_statement_waits_and_is_told_to_come_back(publisher, reader, tables, monkeypatch):
    publisher.publish(company(1))
    reader.refresh()

    async def ask_and_follow():
        asked = asyncio.ensure_future(reader.statements.answer(Asked("SELECT 1", {}, 9, 99), "c"))
        await asyncio.sleep(0)
        assert tables.follow()
        return await asked

    assert asyncio.run(ask_and_follow()).answered.rows == [[1]]
    reader.statements.close()
    following.remove(tables.path)
    monkeypatch.setattr(statements, "WAIT_S", 0)
    with pytest.raises(Unavailable, match="being built"):
        ask(reader.statements, "SELECT 1")
    path = tables.path.with_name("elsewhere.sqlite")
    following._open(path).close()
    empty = Statements(path, reader)
    with pytest.raises(Unavailable, match="being built"):
        ask(empty, "SELECT 1")
    empty.close()
