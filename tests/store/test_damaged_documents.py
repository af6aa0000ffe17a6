"""A published document that no longer has its digest is never returned."""

import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from make.published import Publisher, company
from muniment.schema.objects import registry_schema
from muniment.store import reader as module
from muniment.store.database import faults
from muniment.store.database.faults import DamagedDocument, damages_read
from muniment.store.exports.writing import Writer, reading
from muniment.store.reader import Reader

ALPHA, BETA = ("company", "alpha"), ("company", "beta")
DAMAGES = {
    "a bit of the body": "UPDATE published_document SET body = CAST(replace(body, 'Company 1', 'Company 0') AS BLOB)",
    "a body of text": "UPDATE published_document SET body = CAST(body AS TEXT)",
    "a shorter body": "UPDATE published_document SET body = substr(body, 2)",
    "a bit of the digest": "UPDATE published_document SET etag = 'x' || substr(etag, 2)",
    "a space in the digest": "UPDATE published_document SET etag = ' ' || substr(etag, 2)",
}


@pytest.fixture
def path(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    documents = [company(1, "alpha"), company(2, "beta")]
    publisher.publish(*(replace(each, modified_at="2026-01-01T00:00:00Z") for each in documents))
    publisher.close()
    return tmp_path / "published.sqlite3"


@pytest.fixture(autouse=True)
def no_rest(monkeypatch):
    """Let tests damage the same documents one after the other."""
    monkeypatch.setattr(faults, "REST_S", 0.0)


@pytest.fixture
def reader(path):
    damages_read.take_documents()
    made = Reader(path)
    yield made
    made.close()
    damages_read.take_documents()


def run(path, statement):
    with closing(sqlite3.connect(path)) as own:
        own.execute(statement)
        own.commit()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_known", [False, True], ids=["first read", "later read"])
def test_a_damaged_document_is_refused_counted_once_and_waits_to_be_mended(path, reader, damage, is_known):
    if is_known:
        assert reader.document(*ALPHA) is not None
    run(path, f"{DAMAGES[damage]} WHERE key = 'alpha'")
    before = damages_read.counts["documents"]
    for _ in range(2):
        with pytest.raises(DamagedDocument) as refused:
            reader.document(*ALPHA)
    assert refused.value.headers == {"Retry-After": "2"}
    assert reader.document(*BETA) is not None
    assert damages_read.counts["documents"] == before + 1
    assert damages_read.take_documents() == [ALPHA]
    assert damages_read.take_documents() == []


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_a_document_that_stays_damaged_is_mended_and_logged_less_and_less_often(monkeypatch, caplog):
    clock = Clock()
    monkeypatch.setattr(faults, "REST_S", 1.0)
    monkeypatch.setattr(faults, "time", clock)
    reads = faults.DamagesRead()
    taken_at = []
    while clock.now < 400:
        for _ in range(3):
            assert isinstance(reads.document(*ALPHA), DamagedDocument), "it is never shown"
        if reads.take_documents():
            taken_at.append(clock.now)
        clock.now += 0.25
    assert taken_at == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363], "at last once a minute"
    assert reads.counts["documents"] == len(caplog.records) == len(taken_at)
    reads.document(*BETA)
    assert reads.take_documents() == [BETA], "another one does not wait"
    clock.now = 423 + faults.LONGEST_REST_S
    reads.document(*ALPHA)
    assert reads.take_documents() == [ALPHA]
    clock.now += faults.LONGEST_REST_S
    assert [reads.document(*ALPHA), reads.take_documents()][1] == [ALPHA]
    clock.now += 2 * faults.LONGEST_REST_S + 1
    reads.document("company", "gamma")
    assert reads.take_documents() == [("company", "gamma")]
    assert set(reads._rests) == {("company", "gamma")}, "those that were mended long ago are forgotten"


def test_the_digest_of_a_version_is_compared_once(reader, monkeypatch):
    compared = []
    monkeypatch.setattr(module, "MAX_CHECKSUMS", 1)
    real = module.digest
    monkeypatch.setattr(module, "digest", lambda body: compared.append(body) or real(body))
    for name in (ALPHA, ALPHA, BETA, BETA, ALPHA):
        assert reader.document(*name) is not None
    assert len(compared) == 3, "one checksum is remembered"


def test_an_export_with_a_damaged_document_is_not_made(path, reader, tmp_path):
    run(path, f"{DAMAGES['a bit of the body']} WHERE key = 'alpha'")
    writer = Writer(tmp_path, registry_schema("USD"), "", lambda: None)
    with reading(path) as (connection, edition, epoch), pytest.raises(DamagedDocument):
        writer.write(connection, "company", "jsonl", edition=edition, epoch=epoch, at="")
    assert damages_read.take_documents() == [ALPHA]


def test_a_text_that_cannot_be_decoded_is_damage(path):
    run(path, "UPDATE published_document SET sort_name = CAST(x'ff' AS TEXT) WHERE key = 'alpha'")
    with closing(sqlite3.connect(path)) as own, pytest.raises(sqlite3.OperationalError) as told:
        own.execute("SELECT sort_name FROM published_document").fetchall()
    assert faults.is_damage(told.value)
