"""What caches, browsers and the fast path see: tags, encodings, 304, headers."""

import gzip
from dataclasses import replace
from datetime import date

import brotli
import pytest

from make.asgi import Client
from make.published import company
from muniment.api import routes
from muniment.api.application import Api
from muniment.api.routes import deprecated
from muniment.config import Config
from muniment.kernel.http.representations import negotiated
from muniment.kernel.zstandard import zstd
from muniment.schema.objects import registry_schema
from muniment.server.fastpath.rest import RestAnswers

SCHEMA = registry_schema("USD")

LIST = "/api/v1/companies"
DETAIL = "/api/v1/companies/company-7"


def at_once(api, target, accept_encoding, if_none_match):
    """Answer as the fast path does: with what is kept, else with the detail that it looks up."""
    asked, answers = (target, accept_encoding, if_none_match), RestAnswers(api)
    detail = answers.detail(target)
    return answers.get(*asked) or (detail and answers.get(*asked, answers.look_up((detail,)).get(target)))


DECODERS = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": zstd.decompress}


@pytest.mark.parametrize("path", [LIST, DETAIL, "/openapi.json", "/llms.txt"])
@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_every_encoding_holds_the_same_bytes_under_a_tag_of_its_own(filled, path, encoding):
    plain, encoded = filled.ask(path), filled.ask(path, accept_encoding=encoding)
    assert "content-encoding" not in plain.headers
    assert encoded.headers["content-encoding"] == encoding
    assert DECODERS[encoding](encoded.body) == plain.body
    assert len(encoded.body) < len(plain.body)
    assert encoded.headers["etag"] == plain.headers["etag"][:-1] + f'-{encoding}"'
    assert not plain.headers["etag"].startswith("W/")
    for answer in (plain, encoded):
        assert answer.headers["content-length"] == str(len(answer.body))
        assert answer.headers["vary"] == ("Accept-Encoding, Accept" if path == LIST else "Accept-Encoding")
        assert answer.headers["cache-control"] == "public, max-age=30, stale-while-revalidate=300"


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("", ""), ("gzip, deflate", "gzip"), ("gzip, deflate, br, zstd", "zstd"), ("gzip;q=1.0, zstd;q=0.5", "gzip"),
        ("*", "zstd"), ("*;q=0", ""), ("zstd;q=0, *", "br"), ("identity", ""), ("identity, gzip;q=0.5", ""),
        ("GZIP", "gzip"), ("gzip;q=0", ""), ("br;q=x", ""), ("x-gzip", "gzip"), (";;,,=", ""), ("gzip ; q=0.2", "gzip"),
    ],
)  # fmt: skip
def test_the_encoding_liked_best_is_sent(accepted, chosen):
    assert negotiated(accepted.encode()).decode() == chosen


@pytest.mark.parametrize("path", [LIST, DETAIL, "/api/v1/stats", "/api/v1/changes", "/openapi.json"])
def test_a_known_version_is_not_sent_again(filled, path):
    whole = filled.ask(path)
    tag = whole.headers["etag"]
    zstd = tag[:-1] + '-zstd"'
    for known in (tag, zstd, f"W/{tag}", f'"other", {tag}', f'"a,b" ,W/{zstd}', "*", f'{tag[:-1]}-br"'):
        answer = filled.ask(path, if_none_match=known)
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["etag"] == tag
        assert answer.headers["cache-control"] == whole.headers["cache-control"]
        assert "content-length" not in answer.headers
        assert filled.ask(path, "HEAD", if_none_match=known).status == 304
    for unknown in ('"other"', tag.strip('"'), '""', tag[:-2] + '"', f'{tag[:-1]}-lzma"', "nonsense"):
        assert filled.ask(path, if_none_match=unknown).status == 200


@pytest.mark.parametrize(
    "path", [LIST, DETAIL, "/api/v1/companies/missing", "/api/v1/companies?page=0", "/openapi.json"]
)
def test_any_origin_may_read_every_answer_and_its_headers(filled, path):
    answer = filled.ask(path, origin="https://elsewhere.example")
    assert answer.headers["access-control-allow-origin"] == "*"
    exposed = answer.headers["access-control-expose-headers"]
    for name in ("ETag", "Link", "RateLimit", "RateLimit-Policy", "Retry-After"):
        assert name in exposed.split(", ")


def test_refusals_are_not_kept_by_caches(filled):
    assert filled.ask("/api/v1/companies/missing").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "target", [LIST, DETAIL, "/api/v1/people/person-2", "/api/v1/companies?page=2", "/api/v1/stats"]
)
@pytest.mark.parametrize("encoding", ["", "zstd", "gzip", "br;q=0.5"])
def test_the_ready_answer_is_the_ordinary_one_byte_for_byte(filled, target, encoding):
    headers = {"accept_encoding": encoding} if encoding else {}
    ordinary = filled.ask(target, **headers)
    ready = at_once(filled.api, target.encode(), encoding.encode(), b"")
    lines = {name.decode(): value.decode() for name, value in ready.headers}
    assert (ready.status, lines, ready.body) == (ordinary.status, ordinary.headers, ordinary.body)
    assert ready.head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert ready.head.endswith(b"\r\n")
    assert not ready.head.endswith(b"\r\n\r\n")
    unchanged = at_once(filled.api, target.encode(), encoding.encode(), ordinary.headers["etag"].encode())
    assert unchanged.status == 304


def test_a_detail_is_ready_without_having_been_asked_for(rest):
    rest.publish(company(1))
    ready = at_once(rest.api, b"/api/v1/companies/company-1", b"", b"")
    assert ready.body == rest.ask("/api/v1/companies/company-1").body


@pytest.mark.parametrize(
    "target", [b"/api/v1/companies/missing", b"/api/v1/companies?q=x", b"/", b"/api/v1/companies/%41", b"", b"\xff"]
)
def test_a_request_that_is_not_cached_takes_the_ordinary_path(rest, target):
    rest.publish(company(1))
    assert at_once(rest.api, target, b"", b"") is None


def test_a_large_answer_is_not_compressed_on_the_way_that_must_not_wait(rest):
    rest.publish(company(1, body="river " * 50_000))
    assert at_once(rest.api, b"/api/v1/companies/company-1", b"gzip", b"") is None
    assert rest.ask("/api/v1/companies/company-1", accept_encoding="gzip").headers["content-encoding"] == "gzip"
    assert at_once(rest.api, b"/api/v1/companies/company-1", b"gzip", b"").status == 200


def test_an_owner_sees_a_change_at_once_and_no_cache_undoes_it(rest):
    for version in range(5):
        rest.publish(company(1, name=f"Name {version}"))
        for target in ("/api/v1/companies", "/api/v1/companies/company-1", "/api/v1/companies?q=name"):
            assert f"Name {version}".encode() in rest.ask(target).body
            assert f"Name {version}".encode() in at_once(rest.api, target.encode(), b"", b"").body


def test_words_that_mean_nothing_do_not_fill_the_cache(rest):
    rest.publish(company(1))
    rest.ask("/api/v1/companies?junk=0")
    size = rest.reader.answers.currsize
    for number in range(50):
        rest.ask(f"/api/v1/companies?junk={number}")
    assert rest.reader.answers.currsize == size


def test_a_sunset_less_than_90_days_after_its_notice_is_refused():
    with pytest.raises(ValueError, match="90 days"):
        deprecated(since=date(2026, 1, 1), sunset=date(2026, 3, 31), explained_at="https://registry.example/news")


def deprecating(rest, monkeypatch, operation_id, answer=None, **changed):
    """Return a client of an API that has one route alone, a deprecated one."""
    route = next(route for route in routes.ROUTES if route.operation_id == operation_id)
    mark = deprecated(since=date(2026, 1, 1), sunset=date(2026, 4, 1), explained_at="https://registry.example/news")

    @mark
    def marked(*arguments):
        return (answer or route.answer)(*arguments)

    monkeypatch.setattr("muniment.api.application.routes_of", lambda _: (replace(route, answer=marked, **changed),))
    return Client(Api(rest.reader, Config({}, data=rest.reader.path.parent), SCHEMA))


def says_so(answer):
    assert answer.headers["deprecation"] == "@1767225600"
    assert answer.headers["sunset"] == "Wed, 01 Apr 2026 00:00:00 GMT"
    assert 'rel="deprecation"' in answer.headers["link"]


def test_a_deprecated_route_says_so_in_every_answer(rest, monkeypatch):
    client = deprecating(rest, monkeypatch, "getStats", parameters=routes.CRITERIA["framework"])
    answers = [client.ask("/api/v1/stats", **headers) for headers in ({}, {"if_none_match": "*"}, {"method": "POST"})]
    answers.append(client.ask("/api/v1/stats?kind=none"))
    assert [answer.status for answer in answers] == [200, 304, 405, 400]
    for answer in answers:
        says_so(answer)


def test_a_deprecated_route_says_so_of_a_name_that_is_none_and_where_it_breaks(rest, monkeypatch):
    def breaks(*_):
        raise RuntimeError("a fault of ours")

    client = deprecating(rest, monkeypatch, "getCompany")
    missing = [client.ask(f"/api/v1/companies/{slug}") for slug in ("missing", "x" * 201, "%E6%B0%B4" * 201)]
    broken = deprecating(rest, monkeypatch, "getStats", answer=breaks).ask("/api/v1/stats")
    assert [answer.status for answer in (*missing, broken)] == [404, 404, 404, 500]
    for answer in (*missing, broken):
        says_so(answer)
    elsewhere = client.ask("/api/v1/nothing/of/ours")
    assert (elsewhere.status, "deprecation" in elsewhere.headers) == (404, False)
