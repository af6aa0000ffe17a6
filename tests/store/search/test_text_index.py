"""The full-text index stays in few segments, because a search looks up each word in every one."""

import pytest

from make.published import AT, Publisher, company, ids
from make.queries import companies_by
from muniment.store import published
from muniment.store.search import text_index


def segments(connection):
    (n,) = connection.execute("SELECT count(DISTINCT segid) FROM published_text_company_idx").fetchone()
    return n


@pytest.fixture
def many(publisher):
    for number in range(1, 40):
        publisher.publish(company(number, name=f"Harbour {number}", description=f"Mends {number:b} nets"))
    return publisher


def test_updates_leave_few_segments(many):
    assert segments(many.connection) <= 2 * text_index.OF_A_LEVEL


def test_a_merge_leaves_one_segment_that_finds_the_same(many, reader, monkeypatch):
    reader.refresh()
    queries = ("harbour", "mends", "harbor 12", "11", "harbour 7")
    before = [ids(reader.companies(companies_by(q=q, page_size=100))) for q in queries]
    monkeypatch.setattr(text_index, "FEW", 1)
    monkeypatch.setattr(text_index, "STEP_PAGES", 1)
    assert list(published.merged(many.connection))
    assert segments(many.connection) == 1
    reader.refresh()
    assert [ids(reader.companies(companies_by(q=q, page_size=100))) for q in queries] == before
    assert list(published.merged(many.connection)) == []


def test_documents_of_one_publication_are_one_segment_in_any_order(publisher):
    publisher.publish(*(company(number) for number in (5, 2, 9, 1, 7, 3)))
    assert segments(publisher.connection) == 1


def test_a_document_that_moves_twice_in_one_publication_is_found_where_it_is(publisher, reader):
    publisher.publish(company(1, name="Copper Kettle"), company(2, name="Copper Pan"))
    publisher.publish(
        company(1, name="Iron Kettle", day=700_009),
        company(2, name="Iron Pan", day=700_001),
        company(1, name="Iron Pot", day=700_002),
    )
    for index in text_index.indexes(["company"]):
        publisher.connection.execute(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
    reader.refresh()
    found = {query: len(ids(reader.companies(companies_by(q=query)))) for query in ("iron", "pot", "copper", "kettle")}
    assert found == {"iron": 2, "pot": 1, "copper": 0, "kettle": 0}
    words = publisher.connection.execute("SELECT word, n FROM published_word_company WHERE word IN ('iron', 'copper')")
    assert words.fetchall() == [("iron", 2)]


def facts(connection):
    """Return what the index of facts is stored as."""
    return connection.execute("SELECT id, block FROM published_fact_company_data ORDER BY id").fetchall()


@pytest.mark.parametrize(
    ("members", "queries", "words"),
    [
        ({"description": "Builds boats"}, {"boats": 1, "nets": 0, "copper": 1}, {"copper"}),
        ({"name": "Iron Kettle"}, {"iron": 1, "copper": 0, "nets": 1}, {"iron"}),
        ({"themes": ["ships"]}, {"ships": 1, "copper": 1, "nets": 1}, {"copper", "ships"}),
    ],
)
def test_a_document_is_found_by_its_present_texts(publisher, reader, members, queries, words):
    connection = publisher.connection
    before = {"name": "Copper Kettle", "description": "Mends nets"}
    publisher.publish(company(1, **before), company(2, name="Other"))
    former = facts(connection)
    publisher.publish(company(1, **before | members))
    assert (facts(connection) == former) == ("description" in members)
    for index in text_index.indexes(["company"]):
        connection.execute(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
    reader.refresh()
    assert {query: len(ids(reader.companies(companies_by(q=query)))) for query in queries} == queries
    stored = "SELECT word, n FROM published_word_company WHERE word IN ('copper', 'iron', 'ships')"
    assert dict(connection.execute(stored).fetchall()) == dict.fromkeys(words, 1)


def test_few_segments_are_left_as_they_are(publisher):
    publisher.publish(company(1))
    publisher.publish(company(2))
    assert list(published.merged(publisher.connection)) == []
    assert segments(publisher.connection) == 2


def test_a_file_that_is_filled_at_once_is_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(text_index, "FEW", 0)
    filled = Publisher(tmp_path / "filled.sqlite3")
    published.load(filled.connection, map(company, range(1, 30)), at=AT)
    assert segments(filled.connection) == 1
    filled.close()


def test_tables_of_an_earlier_version_are_told_once(publisher):
    kept = "SELECT v FROM published_text_company_config WHERE k = 'crisismerge'"
    publisher.connection.execute("DELETE FROM published_text_company_config WHERE k = 'crisismerge'")
    published.create(publisher.connection)
    published.create(publisher.connection)
    assert publisher.connection.execute(kept).fetchone() == (text_index.OF_A_LEVEL,)
