"""The tables follow the published documents: they equal them at each edition, and hold nothing else."""

import sqlite3
from contextlib import closing

import pytest

from make.published import company, framework, person
from muniment.schema.kinds import Country, Money, Number
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field
from muniment.store import published
from muniment.store.exports.exports import Stopped
from muniment.store.reader import Reader
from muniment.store.tables import copying, following
from muniment.store.tables.comparing import compare, count
from muniment.store.tables.copying import followed
from muniment.store.tables.following import Tables, make_again

ADDRESS = {"address_1": "Quay 1", "address_2": None, "city": "Lisbon", "state": None, "zip": "0100", "country": "PT"}
WHOLE = {
    "symbol": "HARB",
    "teamSize": 3,
    "treasury": "$1.2M",
    "treasuryAmount": {"amount": "1249999.99", "currency": "USD"},
    "listedAt": "2024-03-31",
    "raising": True,
    "maintainedByOwner": True,
    "verifiedDomain": {"domain": "harb.example", "method": "dns", "verifiedAt": "2026-01-01T00:00:00.000000Z"},
    "formerNames": [{"name": "Old Harbour", "until": "2025-01-01"}],
    "address": [ADDRESS, {**ADDRESS, "city": "Porto"}],
    "socials": {"email": "a@b.example", "tiktok": "@harb", "twitter": None},
    "themes": ["water", "ports"],
    "proposals": [{"id": "1", "title": "Dredge", "status": "active", "votes": {"for": 12, "against": 1e30},
                   "endDate": "2026-02-01"}],
    "positions": [{"id": "a", "title": "Pilot", "person": {"name": "Ada", "slug": "ada"}},
                  {"id": "b", "title": "Cook", "person": {"name": "Bo"}}],
    "capTable": [{"id": "x", "address": "0xb1", "name": "Treasury", "tokens": "500", "percentage": 50}],
    "fundingRounds": [{"id": "r", "name": "Seed", "target": "$2.5M", "opened": "2026-01-01"}],
    "assessments": [{"frameworkId": "river", "frameworkName": "River", "score": 72.5, "url": "/x",
                     "assessedAt": "2026-01-01T00:00:00.000000Z", "specificationVersion": 3, "evaluator": "rules",
                     "sections": [{"title": "A", "score": 1}]}],
}  # fmt: skip


def declared_schema():
    """Return a schema with declared fields, of which one has the name of a built-in column."""
    company = (Field("country", Country(), "Seat"), Field("fee", Money(40, "USD"), "Fee"))
    return registry_schema("USD").declare(company=company, person=(Field("rank", Number(0, 9), "Rank"),))


@pytest.fixture
def publish(publisher, reader, tables):
    def publish(*documents, **more):
        publisher.publish(*documents, **more)
        reader.refresh()
        return tables.follow()

    return publish


def faults(reader, tables):
    found = compare(reader.path, tables.path, tables.form, "", 1_000)
    assert found.examined == count(reader.path)
    return found.faults


def test_every_field_and_list_of_a_company_is_a_column_or_a_table(publish, rows):
    publish(company(1, "harbour", **WHOLE))
    facts = "slug, treasury_minor, treasury, listed_month, listed_on, raising, team_size, country, city"
    facts += ", verified_domain"
    assert rows(f"SELECT {facts} FROM companies") == [
        ("harbour", 124_999_999, 1_249_999.99, "2024-03", "2024-03-31", 1, 3, "PT", "Lisbon", "harb.example")
    ]
    assert rows("SELECT * FROM positions") == [
        ("harbour", 1, "Pilot", "ada", "Ada"),
        ("harbour", 2, "Cook", None, "Bo"),
    ]
    assert rows("SELECT company, title, votes_for, votes_against, end_date FROM proposals") == [
        ("harbour", "Dredge", 12.0, 1e30, "2026-02-01")
    ]
    assert rows("SELECT address, tokens, tokens_number, percentage FROM holders") == [("0xb1", "500", 500.0, 50.0)]
    assert rows("SELECT name, target_minor, target, opened_on FROM funding_rounds") == [
        ("Seed", 250_000_000, 2_500_000.0, "2026-01-01")
    ]
    assert rows("SELECT city, zip FROM addresses") == [("Lisbon", "0100"), ("Porto", "0100")]
    assert rows("SELECT network, value FROM socials") == [("email", "a@b.example"), ("tiktok", "@harb")]
    assert rows("SELECT theme FROM themes ORDER BY ordinal") == [("water",), ("ports",)]
    assert rows("SELECT name, until FROM former_names") == [("Old Harbour", "2025-01-01")]
    assert rows("SELECT framework_id, score, evaluator FROM assessments") == [("river", 72.5, "rules")]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("20,508.39 OP", 20508.39), ("500000", 500000.0), ("1,000,000", 1e6), (" 7.5 UNI ", 7.5), ("12 $TIDE", 12.0),
        ("3OP", 3.0), ("0", 0.0), ("999,999", 999_999.0),
        ("1,5", None), ("1.000,5", None), ("10,00", None), ("1,0000", None), ("about 5", None), ("5-6", None),
        ("5 of 6", None), ("OP", None), ("", None), ("-5", None), ("1e9", None),
    ],
)  # fmt: skip
def test_the_number_of_a_quantity_is_read_where_it_can_be_told(publish, rows, text, number):
    publish(company(1, capTable=[{"address": "0xb1", "tokens": text, "percentage": 50}]))
    assert rows("SELECT tokens, tokens_number FROM holders") == [(text, number)]


def test_the_ids_of_proposals_are_a_column(publish, rows):
    publish(company(1, proposals=[{"id": "eip-1", "title": "Purpose", "status": "passed"}]))
    assert rows("SELECT id, title FROM proposals") == [("eip-1", "Purpose")]


def test_people_frameworks_and_the_feed_are_tables_too(publish, rows):
    ada = person(1, "ada", positions=(("A", "harbour"), ("B", "quay"), ("C", "quay")))
    publish(ada, framework(1, "river"))
    assert rows("SELECT slug, company_count FROM people") == [("ada", 2)]
    assert rows("SELECT slug, kind FROM frameworks") == [("river", "score")]
    assert rows("SELECT sequence, kind, slug, change FROM changes") == [
        (1, "person", "ada", "published"),
        (2, "framework", "river", "published"),
    ]


def test_declared_fields_are_columns_and_leave_built_in_ones_their_names(publish, tables, rows):
    tables.use(declared_schema())
    publish(company(1, country="FR", fee="$1.5K", address=[ADDRESS]), company(2, country=["kept", "as it was"], fee=7))
    assert rows("SELECT own_country, country, fee_minor, fee FROM companies ORDER BY slug") == [
        ("FR", "PT", 150_000, 1_500.0),
        ('["kept","as it was"]', None, None, None),
    ]
    assert rows("SELECT rank FROM people") == []


def test_a_change_replaces_all_rows_of_a_document_and_unlisting_removes_them(publish, publisher, reader, tables, rows):
    assert publish(company(1, "harbour", **WHOLE), company(2, "quay", themes=["quays"]))
    assert not tables.follow(), "nothing has changed since"
    publish(company(1, "harbour", themes=["ports"]), at="2026-02-01T00:00:00.000000Z")
    assert rows("SELECT company, theme FROM themes ORDER BY 1") == [("harbour", "ports"), ("quay", "quays")]
    assert rows("SELECT count(*) FROM positions") == [(0,)]
    assert rows("SELECT first_change FROM companies WHERE slug = 'harbour'") == [("2026-01-01T00:00:00.000000Z",)]
    publisher.unlist("company", "harbour")
    reader.refresh()
    assert tables.follow()
    for table in tables.form.of_kind["company"]:
        assert rows(f"SELECT count(*) FROM {table.name} WHERE {table.key[0]} = 'harbour'") == [(0,)], table.name
    assert tables.rebuilds == 1
    assert faults(reader, tables) == []


def test_the_tables_are_made_again_for_another_feed_form_or_gap(publish, publisher, reader, tables, rows):
    publish(company(1), company(2))
    publisher.connection.execute("BEGIN IMMEDIATE")
    published.clear(publisher.connection, edition=5)  # as by muniment republish
    published.load(publisher.connection, [company(3)], at="")
    publisher.connection.execute("COMMIT")
    reader.refresh()
    assert tables.follow()
    assert (rows("SELECT slug FROM companies"), tables.rebuilds) == ([("company-3",)], 2)
    tables.use(declared_schema())
    assert tables.follow()
    assert tables.rebuilds == 3
    publish(company(4))
    publisher.publish(company(5))
    publisher.publish(company(6))
    publisher.connection.execute("DELETE FROM published_change WHERE sequence = 7")
    reader.refresh()
    assert tables.follow()
    assert tables.rebuilds == 4, "the feed does not reach back to the tables"
    assert rows("SELECT count(*) FROM companies") == [(4,)]
    assert faults(reader, tables) == []


def test_tables_that_are_made_take_no_more_pages_than_their_rows_need(publish, tables, tmp_path):
    many = [company(number, themes=[f"theme {number} {each}" for each in range(9)]) for number in range(1, 400)]
    publish(*many, *(person(number) for number in range(1, 400)))
    for schema in (declared_schema(), registry_schema("USD")):
        with closing(sqlite3.connect(tables.path)) as own:
            assert own.execute("PRAGMA page_size").fetchone() == (copying.PAGE_BYTES,)
            own.execute("VACUUM INTO ?", [str(tmp_path / "dense")])
        assert tables.path.stat().st_size == (tmp_path / "dense").stat().st_size > 40 * copying.PAGE_BYTES
        (tmp_path / "dense").unlink()
        tables.use(schema)
        assert tables.follow()


def test_what_is_published_while_the_tables_are_made_is_in_them(publisher, reader, tables, rows, monkeypatch):
    monkeypatch.setattr(following, "AT_ONCE", 2)
    monkeypatch.setattr(following, "BREATH_S", 0)
    publisher.publish(*(company(number) for number in range(1, 8)))
    reader.refresh()
    breathe, left = tables._breathe, iter([(company(2, themes=["late"]), company(8)), (company(9),)])

    def breathe_and_publish():
        publisher.publish(*next(left, ()))
        reader.refresh()
        breathe()

    monkeypatch.setattr(tables, "_breathe", breathe_and_publish)
    assert tables.follow()
    assert rows("SELECT count(*) FROM companies") == [(9,)]
    assert rows("SELECT theme FROM themes WHERE company = 'company-2'") == [("late",)]
    assert followed(tables._own).edition == reader.edition
    assert faults(reader, tables) == []


def test_an_erased_person_is_in_no_table_and_nowhere_in_the_file(publish, publisher, reader, tables, rows):
    publish(person(1, "mark-zed"), company(1, positions=[{"title": "T", "person": {"name": "Mark Zed"}}]))
    publisher.unlist("person", "mark-zed")
    publisher.publish(company(1))
    # As an erasure leaves it: the feed keeps the slug in the last entry, from which copies learn whom to delete.
    publisher.connection.execute("UPDATE published_change SET key = 'erased:1' WHERE key = 'mark-zed' AND sequence = 1")
    publisher.unlist("person", "erased:1")
    reader.refresh()
    assert tables.follow()
    shown = rows("SELECT slug, change FROM changes WHERE kind = 'person' ORDER BY sequence")
    assert shown == [("erased:1", "published"), (None, "unlisted"), (None, "unlisted")]
    assert faults(reader, tables) == []
    for suffix in ("", "-wal"):
        content = tables.path.with_name(tables.path.name + suffix).read_bytes().lower()
        assert b"mark-zed" not in content
        assert b"mark zed" not in content


def test_one_process_of_a_node_writes_and_another_takes_over(publish, reader, tables):
    publish(company(1))
    other = Tables(tables.path, reader, registry_schema("USD"))
    assert not other._is_writer()
    assert not other.follow()
    tables.close()
    assert other._is_writer()
    other.close()


def test_a_damaged_file_or_one_that_is_gone_is_made_again(publish, publisher, reader, tables, rows):
    publish(company(1))
    tables._close_own()
    tables.path.write_bytes(b"no database" * 1_000)
    assert tables.follow()
    assert rows("SELECT slug FROM companies") == [("company-1",)]
    tables.path.unlink()
    assert tables.follow()
    assert rows("SELECT slug FROM companies") == [("company-1",)]
    content = bytearray(tables.path.read_bytes())
    tables._close_own()
    content[4096 * 3 : 4096 * 4] = bytes([255]) * 4096
    tables.path.write_bytes(content)
    publisher.publish(company(2))
    reader.refresh()
    with pytest.raises(sqlite3.DatabaseError):
        tables.follow()
    assert tables.follow()
    publisher.unlist("company", "company-2")
    reader.refresh()
    assert tables.follow()
    assert rows("SELECT slug FROM companies") == [("company-1",)]


def test_a_failure_leaves_the_tables_at_their_edition_and_is_tried_again(publish, publisher, reader, tables, rows):
    publish(company(1))
    publisher.publish(company(2))
    publisher.connection.execute("UPDATE published_document SET body = 'x' || body WHERE key = 'company-2'")
    reader.refresh()
    with pytest.raises(Exception, match="damaged"):
        tables.follow()
    assert rows("SELECT slug FROM companies") == [("company-1",)]
    publish(company(2))
    assert rows("SELECT count(*) FROM companies") == [(2,)]


def test_the_end_of_the_process_leaves_the_former_tables(publish, publisher, reader, tables, rows):
    publish(company(1))
    tables.use(declared_schema())
    tables._stop.set()
    with pytest.raises(Stopped):
        tables.follow()
    assert rows("SELECT slug FROM companies") == [("company-1",)]


def test_the_comparison_finds_each_kind_of_difference(publish, reader, tables):
    publish(company(1), company(2), person(1, "ada"))
    for sql, names in (
        ("UPDATE companies SET name = 'x' WHERE slug = 'company-1'", [("company company-1", "companies")]),
        ("DELETE FROM themes WHERE company = 'company-2'", [("company company-2", "themes")]),
        ("INSERT INTO people (slug) VALUES ('ghost')", [("people", "1 documents")]),
        ("DELETE FROM changes WHERE sequence = 2", [("changes", "not the change feed")]),
    ):
        with closing(sqlite3.connect(tables.path, isolation_level=None)) as own:
            own.execute(sql)
        for (subject, says), (name, part) in zip(faults(reader, tables), names, strict=True):
            assert subject == name
            assert part in says
        make_again(tables.path)
        assert tables.follow()
        assert faults(reader, tables) == []
    assert compare(reader.path, tables.path, tables.form, "", 2).after == "company company-2"


def test_no_reader_holds_back_the_log_of_the_tables_or_of_the_documents(publish, publisher, reader, tables):
    publish(*(company(number) for number in range(1, 50)))
    assert isinstance(reader, Reader)
    for connection in (publisher.connection, tables._own):
        busy, pages, moved = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert (busy, pages - moved) == (0, 0)


@pytest.mark.parametrize(
    ("statement", "values"),
    [(copying.SOME, ("company", "", 200)), (copying.FEED, (0, 200))],
    ids=["documents", "feed"],
)
def test_a_step_of_a_copy_reads_no_more_than_it_copies(reader, statement, values):
    with reader.snapshot() as (source, _):
        plan = " ".join([detail for *_, detail in source.execute(f"EXPLAIN QUERY PLAN {statement}", values)])
    assert plan.startswith("SEARCH")
    assert "TEMP B-TREE" not in plan
