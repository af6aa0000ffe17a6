"""If-Modified-Since: 304 only where the date belongs to the present version alone."""

import pytest
from msgspec.structs import replace

from make.published import company, person
from muniment.kernel.http import representations
from muniment.server.fastpath.protocol import FastPathProtocol
from muniment.store.published import put_stamp
from muniment.store.reader import Reader

DETAIL = "/api/v1/companies/company-1"
PICTURE = f"/pictures/{'0' * 32}-144.webp"
COMPOSED = ["/api/v1/companies", "/api/v1/people?q=person", "/api/v1/stats", "/api/v1/frameworks", "/api/v1/changes"]
STAMP, DATE = "2026-01-05T10:00:04Z", "Mon, 05 Jan 2026 10:00:04 GMT"
EDITION, EDITION_DATE = "2026-01-05T10:00:08Z", "Mon, 05 Jan 2026 10:00:08 GMT"


def publish(rest, *documents, stamp=EDITION):
    put_stamp(rest.publisher.connection, rest.publisher.publish(*documents), stamp)
    rest.reader.refresh()


@pytest.fixture
def stamped(rest):
    publish(rest, replace(company(1), modified_at=STAMP), person(1))
    return rest


@pytest.mark.parametrize(("path", "date"), [(DETAIL, DATE), *((path, EDITION_DATE) for path in COMPOSED)])
def test_the_date_of_an_earlier_answer_is_proof_of_the_same_bytes(stamped, path, date):
    whole = stamped.ask(path)
    assert whole.headers["last-modified"] == date
    for method in ("GET", "HEAD"):
        answer = stamped.ask(path, method, if_modified_since=f" {date} ")
        assert (answer.status, answer.body) == (304, b"")
        assert (answer.headers["etag"], answer.headers["last-modified"]) == (whole.headers["etag"], date)


@pytest.mark.parametrize(
    "date",
    [
        "Mon, 05 Jan 2026 10:00:02 GMT", "Mon, 05 Jan 2026 10:00:05 GMT", "Fri, 31 Dec 2099 23:59:58 GMT",
        "Monday, 05-Jan-26 10:00:04 GMT", "yesterday", "", "2026-01-05T10:00:04Z",
    ],
)  # fmt: skip
def test_another_date_proves_nothing(stamped, date):
    assert stamped.ask(DETAIL, if_modified_since=date).status == 200


def test_the_etag_comes_before_the_date(stamped):
    etag = stamped.ask(DETAIL).headers["etag"]
    assert stamped.ask(DETAIL, if_modified_since=DATE, if_none_match='"other"').status == 200
    assert stamped.ask(DETAIL, if_modified_since="yesterday", if_none_match=etag).status == 304


def test_a_state_without_a_stamp_shows_an_odd_second_that_is_no_proof(rest):
    rest.publisher.publish(company(1, updatedAt="2026-01-05T10:00:00.500000Z"), at="2026-02-01T00:00:00.000000Z")
    rest.reader.refresh()
    for path, date in ((DETAIL, "Sat, 31 Jan 2026 23:59:59 GMT"), (COMPOSED[0], "Sat, 31 Jan 2026 23:59:59 GMT")):
        assert rest.ask(path).headers["last-modified"] == date
        for asked in (date, "Mon, 05 Jan 2026 10:00:00 GMT", "Sun, 01 Feb 2026 00:00:00 GMT"):
            assert rest.ask(path, if_modified_since=asked).status == 200


def test_an_edition_of_a_version_without_stamps_takes_the_stamp_of_lists_away(stamped):
    stamped.publish(person(2))
    assert stamped.ask(COMPOSED[0], if_modified_since=EDITION_DATE).status == 200
    assert stamped.ask(DETAIL, if_modified_since=DATE).status == 304


def test_a_stamp_that_is_ahead_is_shown_once_its_second_has_come(rest, monkeypatch):
    monkeypatch.setattr(representations, "_seen", "")
    monkeypatch.setattr(representations, "present", lambda: "2026-01-05T10:00:06Z")
    publish(rest, replace(company(1), modified_at=EDITION))
    for path in (DETAIL, COMPOSED[0]):
        assert rest.ask(path).headers["last-modified"] == "Mon, 05 Jan 2026 10:00:05 GMT"
        assert rest.ask(path, if_modified_since="Mon, 05 Jan 2026 10:00:05 GMT").status == 200
    monkeypatch.setattr(representations, "present", lambda: EDITION)
    assert rest.reader.refresh() is False
    for path in (DETAIL, COMPOSED[0]):
        assert rest.ask(path).headers["last-modified"] == EDITION_DATE
        assert rest.ask(path, if_modified_since=EDITION_DATE).status == 304


def test_what_a_server_composes_is_no_older_than_the_server(stamped):
    since = "2026-01-05T10:00:20Z"
    reader = Reader(stamped.reader.path, since=since, base_url="https://registry.example")
    try:
        assert reader.stats().modified_at == since
        assert reader.cap_table("company-1", 1, 25).modified_at == since
        assert reader.document("company", "company-1").modified_at == STAMP
        publish(stamped, replace(company(2, icon=PICTURE), modified_at=STAMP))
        reader.refresh()
        assert reader.document("company", "company-2").modified_at == since, "the address of its picture has a host"
    finally:
        reader.close()


class Front:
    traces = None


@pytest.mark.parametrize(("others", "takes_the_ordinary_path"), [([], True), ([(b"if-none-match", b'"x"')], False)])
def test_the_date_alone_takes_the_ordinary_path(others, takes_the_ordinary_path):
    connection = FastPathProtocol.__new__(FastPathProtocol)
    connection.front, connection.headers = Front(), [(b"if-modified-since", DATE.encode()), *others]
    assert connection._declines(*connection.headers[0]) is takes_the_ordinary_path
