"""The one-time link: what it takes, what it refuses, and that nothing of a refused file stays."""

import asyncio
import hashlib
import os
import threading
from datetime import timedelta

import pytest
from django.db import connection

from make import files
from make.documents import SMALL, Link, begin, blob_keys
from muniment.documents import http as link_module
from muniment.documents import records, uploads
from muniment.documents.models import Document, DocumentState
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, MethodNotAllowed, NotFound, TooLarge, TooMany, Unavailable

pytestmark = pytest.mark.django_db(transaction=True)
BIG = os.urandom(1 << 20) * 7


@pytest.fixture(autouse=True)
def _nothing_stays():
    yield
    for key in blob_keys():
        records.storage().delete(key)
    assert list(records.storage().unfinished()) == []


@pytest.fixture
def link():
    return Link()


def pieces(content, size=1 << 16):
    return [content[start : start + size] for start in range(0, len(content), size)]


def state(upload):
    return Document.objects.get(pk=upload.upload_id).state


def test_a_large_file_is_streamed_counted_and_digested(owner, company, link):
    content = files.pdf(size_bytes=6 << 20)
    upload = begin(owner, company, content, "a.pdf")
    answer = link.put(upload, pieces(content), content_type="application/pdf")
    assert answer["sha256"] == hashlib.sha256(content).hexdigest()
    assert (answer["uploadId"], answer["sizeBytes"], answer["state"]) == (upload.upload_id, len(content), "uploaded")
    document = uploads.complete_upload(owner, upload.upload_id)
    assert b"".join(records.storage().stream(document.blob_key)) == content


def test_a_link_works_once(owner, company, link):
    upload = begin(owner, company)
    link.put(upload, SMALL)
    for _ in range(2):
        with pytest.raises(NotFound, match="invalid, used or expired"):
            link.put(upload, SMALL)
    assert len(blob_keys()) == 1


def test_an_expired_link_an_invented_one_and_odd_paths_are_not_found(owner, company, link):
    upload = begin(owner, company)
    Document.objects.update(expires_at=now() - timedelta(seconds=1))
    for target in (upload, "invented", "", "a/b", "..", "é"):
        with pytest.raises(NotFound):
            link.put(target, SMALL)
    assert blob_keys() == []


def test_too_much_is_refused_at_once_whether_it_is_declared_or_not(owner, company, link):
    upload = begin(owner, company, BIG, "a.txt")
    read = []

    def endless():
        while True:
            read.append(1 << 16)
            yield b"x" * (1 << 16)

    with pytest.raises(TooLarge) as refused:
        link.put(upload, [], content_length=str(len(BIG) + 1))
    assert refused.value.headers == {"Connection": "close"}
    with pytest.raises(TooLarge):
        link.put(upload, endless())
    assert sum(read) <= len(BIG) + (1 << 16)
    assert blob_keys() == []
    assert state(upload) == DocumentState.PENDING


@pytest.mark.parametrize("headers", [{}, {"content_length": str(len(BIG))}])
def test_too_little_is_refused_and_can_be_sent_again(owner, company, link, headers):
    upload = begin(owner, company, BIG, "a.txt")
    with pytest.raises(BadRequest, match="were announced"):
        link.put(upload, pieces(BIG[:-1]), **headers)
    assert blob_keys() == []
    assert link.put(upload, pieces(BIG))["sizeBytes"] == len(BIG)


def test_another_file_than_the_announced_one_is_refused_and_the_right_one_can_be_sent(owner, company, link):
    upload = begin(owner, company, BIG, "a.txt", sha256=hashlib.sha256(BIG).hexdigest())
    with pytest.raises(BadRequest, match="was announced") as told:
        link.put(upload, pieces(BIG[::-1]))
    assert "to the same link" in told.value.hint
    assert blob_keys() == []
    assert link.put(upload, pieces(BIG))["sizeBytes"] == len(BIG)


def test_a_transfer_that_breaks_off_leaves_nothing_and_can_be_sent_again_at_once(owner, company, link):
    upload = begin(owner, company, BIG, "a.txt")
    for _ in range(3):
        assert link.put(upload, pieces(BIG[: 6 << 20]), hang_up=True) is None
        assert blob_keys() == []
        assert list(records.storage().unfinished()) == []
    assert link.put(upload, pieces(BIG))["state"] == "uploaded"


def test_of_two_transfers_at_once_exactly_one_is_kept(owner, company, link):
    upload = begin(owner, company, BIG, "a.txt")

    async def both():
        return await asyncio.gather(
            link.put_async(upload, pieces(BIG)), link.put_async(upload, pieces(BIG)), return_exceptions=True
        )

    outcomes = asyncio.run(both())
    assert sorted(type(each).__name__ for each in outcomes) in (["Conflict", "dict"], ["NotFound", "dict"])
    assert len(blob_keys()) == 1
    assert state(upload) == DocumentState.UPLOADED


def test_a_long_transfer_says_that_it_is_alive_and_stops_once_it_is_overtaken(owner, company, link, monkeypatch):
    monkeypatch.setattr(records, "ALIVE_EVERY_S", 0)
    upload = begin(owner, company, BIG, "a.txt")

    def slow():
        for number, piece in enumerate(pieces(BIG, 1 << 20)):
            if number == 4:
                thread = threading.Thread(target=_overtake)
                thread.start()
                thread.join(60)
            yield piece

    with pytest.raises(Conflict, match="newer upload"):
        link.put(upload, slow())
    assert blob_keys() == []


def test_a_transfer_over_a_slow_line_stays_alive(owner, company, link, monkeypatch):
    monkeypatch.setattr(records, "ALIVE_EVERY_S", 0)
    upload, alive = begin(owner, company), []

    def look():
        alive.append(Document.objects.get().receiving_until > now())
        Document.objects.update(receiving_until=now())
        connection.close()

    def slow():
        for piece in pieces(SMALL, 10):
            yield piece
            thread = threading.Thread(target=look)
            thread.start()
            thread.join(60)

    link.put(upload, slow())
    assert alive
    assert all(alive)


def _overtake():
    Document.objects.update(attempt=99)
    connection.close()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PATCH"])
def test_the_link_is_for_put_alone(link, method):
    with pytest.raises(MethodNotAllowed) as refused:
        asyncio.run(link.put_async("x", b"", method=method))
    assert refused.value.headers == {"Allow": "PUT"}


def test_an_odd_length_is_refused(owner, company, link):
    with pytest.raises(BadRequest, match="not a number"):
        link.put(begin(owner, company), [SMALL], content_length="-1")


def test_a_process_takes_only_so_many_files_at_once(owner, company, link, monkeypatch):
    monkeypatch.setattr(link_module, "MAX_AT_ONCE", 0)
    with pytest.raises(Unavailable) as refused:
        link.put(begin(owner, company), SMALL)
    assert refused.value.headers["Retry-After"] == "5"


def test_one_address_takes_only_a_part_of_the_uploads_at_once(link):
    async def run():
        gate, served = asyncio.Event(), []

        async def take(scope, file, *, is_form):
            await gate.wait()
            return {"sizeBytes": 0}

        async def sent(message):
            served.append(message.get("status"))

        link._application._take = take

        def put(address):
            scope = {"method": "PUT", "headers": [], "state": {"client": address}}
            return asyncio.ensure_future(link._application(scope, None, sent))

        first = [put("192.0.2.1") for _ in range(9)]
        other = put("192.0.2.2")
        await asyncio.sleep(0)
        with pytest.raises(TooMany):
            await first.pop()
        gate.set()
        await asyncio.gather(*first, other)
        assert served.count(201) == 9
        assert link._application._of_address == {}

    asyncio.run(run())


@pytest.mark.filterwarnings("default")
def test_an_unreachable_store_is_reported_and_the_link_stays_valid(owner, company, link, monkeypatch):
    upload = begin(owner, company)

    class Away:
        async def write_stream(self, key, chunks):
            raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(link_module, "storage", Away)
        with pytest.raises(Unavailable, match="could not be stored"):
            link.put(upload, SMALL)
    assert link.put(upload, SMALL)["state"] == "uploaded"


def test_an_unexpected_error_is_not_hidden_and_the_link_stays_good(owner, company, link, monkeypatch):
    upload = begin(owner, company)

    class Broken:
        async def write_stream(self, key, chunks):
            raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(link_module, "storage", Broken)
        with pytest.raises(ZeroDivisionError):
            link.put(upload, SMALL)
    assert link.put(upload, SMALL)["state"] == "uploaded"
