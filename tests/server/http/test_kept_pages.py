"""Kept pages: the same bytes as from the ordinary path, for everyone, and only until what they show changes."""

import http.client
import json
import re
import time
from types import SimpleNamespace

import pytest

from make.registry import lines
from muniment.kernel.fairness import Fairness
from muniment.kernel.http.public_pages import PageStamp
from muniment.server.charging import Charging
from muniment.server.fastpath import pages
from muniment.server.fastpath.fast_path import FastPath
from muniment.server.fastpath.pages import LARGEST_BYTES, LIMIT_BYTES, MAX_PREFERENCES, PageAnswers
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import WITHOUT_FAST_PATH, Product, run
from services.raw import exchange, status

BODY = b"<!doctype html>" * 40
STAMP = PageStamp(b"0123", is_compressible=True, version=7, depends=(("company", "quillmere"), ("person", "*")))
HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"etag", b'"0123"'),
    (b"cache-control", b"public, max-age=0, must-revalidate"),
    (b"vary", b"Accept-Encoding"),
    (b"content-length", b"%d" % len(BODY)),
]


@pytest.fixture(scope="module")
def both(demo):
    """The same registry served with the fast path and without it."""
    more = {"rate_limit": "off", "base_url": "http://registry.example", "log_requests": "on"}
    # One process each: those of several keep pages of their own, made at times of their own.
    one = ("--workers", "1")
    with (
        Product(demo.data, *one, **more) as lane,
        Product(demo.data, *one, constants=WITHOUT_FAST_PATH, **more) as plain,
    ):
        for each in (lane, plain):
            each.wait_ready(within_s=120)
            wait_until(lambda each=each: is_dated(each), within_s=60, what="the final date of the edition")
        yield lane, plain


def is_dated(product):
    """Return whether the date of the edition is past: until then, Last-Modified is an odd second, and changes."""
    answer = exchange(product.port, get(b"/companies"))[0]
    return int(re.search(rb"\r\nlast-modified: [^\r]+:(\d\d) GMT", answer)[1]) % 2 == 0


def get(target, *lines, method=b"GET"):
    head = b"%s %s HTTP/1.1\r\nHost: registry.example\r\nX-Request-Id: the-same\r\n" % (method, target)
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def masked(answer):
    answer = re.sub(rb"\r\ndate: [^\r]+", b"\r\ndate: now", answer)
    return re.sub(rb'ratelimit: "burst";r=\d+;t=\d+', b"ratelimit: counted", answer)


ORDINARY = (b"Range: bytes=0-3",)
"""A header that pages ignore and that sends a request to the ordinary path."""
TARGETS = (
    b"/",
    b"/companies",
    b"/companies?page=2",
    b"/companies?utm_source=x",
    b"/companies/quillmere",
    b"/companies/quillmere/team",
    b"/companies/quillmere/",
    b"/companies/Quillmere",
    b"/companies/quill%6dere",
    b"/companies/missing",
    b"/people",
    b"/frameworks",
    b"/search?q=tide",
    b"/feed.atom",
    b"/sitemap.xml",
    b"/robots.txt",
    b"/favicon.ico",
    b"/.well-known/mcp.json",
    b"/.well-known/mcp.json?x=1",
    b"/.well-known/mcp/server.json/",
    b"/api/mcp/icon.svg",
    b"/docs",
    b"/accounts/login/",
    b"/manage",
)
VARIANTS = {
    "plain": (),
    "br": (b"Accept-Encoding: gzip, deflate, br",),
    "zstd": (b"Accept-Encoding: zstd", b"Accept: text/html", b"Accept-Language: de"),
    "repeated": (b"Accept-Encoding: br", b"Accept-Encoding: gzip"),
    "any version": (b"If-None-Match: *",),
    "another version": (b'If-None-Match: "other"',),
    "a language": (b"Accept-Language: de-AT,de;q=0.9",),
    "a language that is not offered": (b"Accept-Language: tlh, x;q=y",),
    "a chosen language": (b"Accept-Language: en", b"Cookie: a=1; language=de"),
    "a chosen language that is not offered": (b"Accept-Language: de", b"Cookie: language=../x"),
    "cookies": (b"Cookie: sessionid=unknown; signed_in=1; theme=dark",),
    "foreign host": (b"X-Forwarded-Host: evil.example", b"X-Forwarded-Proto: https"),
    "range": (b"Range: bytes=0-3",),
    "empty since": (b"If-None-Match:", b"If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT"),
    "close": (b"Connection: close",),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_page_is_the_same_bytes_with_the_fast_path_and_without_it(both, name):
    for target in TARGETS:
        for _ in range(3):
            # A page of the other product may say another time: the same one is asked again, on its ordinary path.
            lines = VARIANTS[name]
            asked = get(target, *lines), get(target, *lines, *ORDINARY)
            first, second = (masked(exchange(both[0].port, each)[0]) for each in asked)
            if status(first) == 200 and target != b"/accounts/login/":
                assert first == second, target
            assert status(first) == status(second)
            assert b"set-cookie" not in first or target in {b"/accounts/login/", b"/manage"}


def test_a_page_that_the_client_has_is_answered_with_304_on_both_paths(both):
    for target in (b"/companies", b"/companies/quillmere", b"/robots.txt", b"/favicon.ico", b"/.well-known/mcp.json"):
        tag = re.search(rb"etag: ([^\r]+)", exchange(both[0].port, get(target))[0])[1]
        for _ in range(3):
            lines = (b"If-None-Match: " + tag,)
            asked = get(target, *lines), get(target, *lines, *ORDINARY)
            first, second = (masked(exchange(both[0].port, each)[0]) for each in asked)
            assert first == second
            assert status(first) == 304


SPOKEN = {
    "en": (
        {},
        {"Accept-Language": "en"},
        {"Accept-Language": "de", "Cookie": "language=en"},
        {"Accept-Language": "fr"},
    ),
    "de": ({"Accept-Language": "de"}, {"Cookie": "language=de"}, {"Accept-Language": "en", "Cookie": "x; language=de"}),
}


@pytest.mark.parametrize("place", [0, 1])
def test_no_visitor_gets_the_page_of_another_language(both, place):
    for language, requests in [*SPOKEN.items(), *reversed(SPOKEN.items())]:
        for headers in requests:
            # A block of headers that a connection sends again is one whose parse is remembered.
            connection = http.client.HTTPConnection("127.0.0.1", both[place].port, timeout=60)
            for target in ("/companies", "/companies/quillmere", "/docs") * 3:
                connection.request("GET", target, headers={"Host": "registry.example", **headers})
                answer = connection.getresponse()
                assert f'<html lang="{language}"' in answer.read().decode(), (target, headers)
                assert answer.getheader("Content-Language") == language
                assert answer.getheader("Vary") == "Accept-Encoding, Accept-Language, Cookie"
            connection.close()


def test_pages_are_answered_from_the_parser_and_logged(both):
    sent = get(b"/companies/quillmere/team", b"Accept-Encoding: zstd")
    for _ in range(4):
        exchange(both[0].port, sent)
    path = "/companies/quillmere/team"
    wait_until(lambda: len(logged(both[0], path)) >= 4, within_s=60, what="the fourth line of the log")
    lines = logged(both[0], path)
    assert [line["status"] for line in lines[-4:]] == [200] * 4
    # What the parser answers takes hundredths of a millisecond, every other page more than two tenths.
    assert min(line["milliseconds"] for line in lines[-4:]) <= 0.1


def logged(product, path):
    """Return the parsed lines of the log about a path."""
    return [json.loads(line) for line in product.output().splitlines() if f'"{path}"' in line]


def test_pages_count_against_the_rate_as_on_the_ordinary_path(demo):
    for constants in (None, WITHOUT_FAST_PATH):
        settings = {"rate_limit": "1", "rate_burst": "8", "base_url": "http://registry.example"}
        with Product(demo.data, "--workers", "1", constants=constants, **settings) as product:
            product.wait_ready(within_s=120)
            answers = [exchange(product.port, get(b"/robots.txt"))[0] for _ in range(6)]
            tag = re.search(rb"etag: ([^\r]+)", answers[0])[1]
            answers += [exchange(product.port, get(b"/robots.txt", b"If-None-Match: " + tag))[0] for _ in range(2)]
            answers += [exchange(product.port, get(b"/robots.txt"))[0] for _ in range(3)]
            answers += [exchange(product.port, get(b"/robots.txt", b"If-None-Match: " + tag))[0]]
            assert [status(answer) for answer in answers] == [200] * 6 + [304] * 2 + [200] * 2 + [429] * 2
            left = [int(re.search(rb"ratelimit: [^\r]*;r=(\d+)", answer)[1]) for answer in answers]
            assert left == [7, 6, 5, 4, 3, 2, 2, 2, 1, 0, 0, 0]


class Kept:
    """Kept pages of a published file that a test changes."""

    def __init__(self):
        self.caches = []
        self.pages = PageAnswers(SimpleNamespace(keep_current=self.caches.append))
        self.publish(7, None)

    def publish(self, version, touched):
        for cache in self.caches:
            cache.drop_changed(version, touched)

    def keep(self, target=b"/x", *, stamp=STAMP, status=200, headers=HEADERS, body=BODY, surface="pages"):
        self.pages.keep(target, stamp, surface, status=status, headers=headers, body=body)
        return self.pages.get(target, b"", b"")


def test_a_page_is_not_kept_if_what_it_shows_is_published_meanwhile(monkeypatch):
    kept, head = Kept(), pages._head

    def published_meanwhile(*response):
        kept.publish(8, {("company", "quillmere")})
        return head(*response)

    monkeypatch.setattr(pages, "_head", published_meanwhile)
    assert kept.keep() is None


def test_a_page_is_kept_as_it_was_sent():
    _, response = Kept().keep()
    assert response.status == 200
    assert response.body is BODY
    assert list(response.headers) == HEADERS


@pytest.mark.parametrize(
    "headers",
    [
        [*HEADERS, (b"set-cookie", b"sessionid=secret")],
        [*HEADERS, (b"connection", b"close")],
        [*HEADERS, (b"vary", b"Cookie")],
        [(name, value.replace(b"public", b"private")) for name, value in HEADERS],
        [(name, value.replace(b"Accept-Encoding", b"Accept-Encoding, Cookie")) for name, value in HEADERS],
        [(name, value.replace(b"0123", b"4567")) for name, value in HEADERS],
        [(name, b"1" if name == b"content-length" else value) for name, value in HEADERS],
    ],
)
def test_a_response_that_is_not_for_everyone_is_not_kept(headers):
    assert Kept().keep(headers=headers) is None


GERMAN = STAMP._replace(tag=b"4567", language="de", languages=("en", "de"))
ENGLISH = STAMP._replace(language="en", languages=("en", "de"))


def spoken(stamp, vary=b"Accept-Encoding, Accept-Language, Cookie"):
    """Return the headers of a page in a language."""
    changed = {b"etag": b'"%s"' % stamp.tag, b"vary": vary}
    return [(name, changed.get(name, value)) for name, value in HEADERS]


def test_a_page_is_kept_in_each_language_and_given_to_its_own_visitors():
    kept = Kept()
    for stamp in (ENGLISH, GERMAN):
        kept.keep(stamp=stamp, headers=spoken(stamp))
    found = {}
    for accepted, cookie in [(b"", b""), (b"de", b""), (b"fr", b""), (b"en", b"language=de"), (b"de", b"language=en")]:
        for _ in range(2):  # the second time, what the header means is remembered
            page, _ = kept.pages.get(b"/x", b"", b"", accepted, cookie)
            found[accepted, cookie] = page.stamp.language
    assert list(found.values()) == ["en", "de", "en", "de", "en"]
    cookies = [
        b"a=1; language=de",
        b"xlanguage=de; language=en",
        b"xlanguage=de",
        b"language=fr; language=de",
        b"language=DE",
    ]
    chosen = [kept.pages.get(b"/x", b"", b"", b"", cookie)[0].stamp.language for cookie in cookies]
    assert chosen == ["de", "en", "en", "en", "de"]
    assert kept.pages.get(b"/x", b"", b'"0123"', b"de")[1].status == 200


def test_a_language_that_is_not_kept_yet_takes_the_ordinary_path():
    kept = Kept()
    kept.keep(stamp=GERMAN, headers=spoken(GERMAN))
    assert kept.pages.get(b"/x", b"", b"", b"en") is None
    assert kept.pages.get(b"/x", b"", b"", b"de") is not None


@pytest.mark.parametrize("vary", [b"Accept-Encoding", b"Accept-Encoding, Cookie", b"Cookie"])
def test_a_page_in_a_language_is_not_kept_unless_it_says_what_it_varies_by(vary):
    assert Kept().keep(stamp=GERMAN, headers=spoken(GERMAN, vary)) is None


def test_pages_in_languages_end_together_and_take_no_memory_then():
    kept = Kept()
    for stamp in (ENGLISH, GERMAN):
        kept.keep(stamp=stamp, headers=spoken(stamp))
    assert kept.pages.size_bytes > 2 * len(BODY)
    kept.publish(8, {("company", "quillmere")})
    assert kept.pages.get(b"/x", b"", b"", b"de") is None
    assert kept.pages.size_bytes == 0


def test_when_other_languages_are_offered_the_kept_pages_and_preferences_end():
    kept = Kept()
    for stamp in (ENGLISH, GERMAN):
        kept.keep(stamp=stamp, headers=spoken(stamp))
    assert kept.pages.get(b"/x", b"", b"", b"fr,de")[0].stamp.language == "de"
    kept.publish(8, {("person", "*")})
    french = STAMP._replace(version=8, tag=b"89ab", language="fr", languages=("fr", "de"))
    kept.keep(stamp=french, headers=spoken(french))
    assert kept.pages.get(b"/x", b"", b"", b"fr,de")[0].stamp.language == "fr"
    assert kept.pages.get(b"/x", b"", b"", b"de") is None


def test_what_preferences_mean_is_remembered_within_a_bound():
    kept = Kept()
    kept.keep(stamp=ENGLISH, headers=spoken(ENGLISH))
    for number in range(MAX_PREFERENCES + 50):
        kept.pages.get(b"/x", b"", b"", b"x-%d" % number)
    kept.pages.get(b"/x", b"", b"", b"d" * 1000)
    assert 0 < len(kept.pages._preferred) <= MAX_PREFERENCES
    assert all(len(each) < 300 for each in kept.pages._preferred)


def test_a_response_with_one_encoding_need_not_vary():
    fixed = [line for line in HEADERS if line[0] != b"vary"]
    assert Kept().keep(headers=fixed) is None
    assert Kept().keep(stamp=STAMP._replace(is_compressible=False), headers=fixed) is not None


def test_server_cards_are_kept_at_their_own_address_and_free():
    kept, pages = Kept(), FastPath(Charging(Fairness(rate=1, burst=1)))
    pages.pages = kept.pages
    body = b"{}"
    headers = [(b"etag", b'"0123"'), (b"cache-control", b"public, max-age=3600"), (b"content-length", b"2")]
    stamp = PageStamp(b"0123", is_compressible=False)
    kept.keep(b"/.well-known/mcp.json", stamp=stamp, headers=headers, body=body, surface="mcp")
    found = [pages.page(b"/.well-known/mcp.json", b"br", b"", "198.51.100.7") for _ in range(3)]
    assert [(response.body, verdict) for response, verdict, _ in found] == [(body, None)] * 3


def test_an_escaped_a_long_or_a_large_page_is_not_kept():
    large = b"x" * (LARGEST_BYTES + 1)
    assert Kept().keep(b"/%78") is None
    assert Kept().keep(b"/" + b"x" * 1024) is None
    assert Kept().keep(body=large, headers=[*HEADERS[:-1], (b"content-length", b"%d" % len(large))]) is None


@pytest.mark.parametrize(
    ("touched", "is_kept"),
    [
        ({("company", "quillmere"), ("company", "*"), ("*", "*")}, False),
        ({("person", "ada"), ("person", "*"), ("*", "*")}, False),
        ({("company", "other"), ("company", "*"), ("*", "*")}, True),
        (set(), True),
        (None, False),
    ],
)
def test_a_page_ends_when_something_that_it_shows_is_published_and_is_kept_otherwise(touched, is_kept):
    kept = Kept()
    assert kept.keep() is not None
    kept.publish(8, touched)
    assert (kept.pages.get(b"/x", b"", b"") is not None) == is_kept
    assert (kept.pages.size_bytes > 0) == is_kept


def test_a_kept_page_gains_the_encodings_and_languages_that_are_sent_in_later_versions():
    kept = Kept()
    kept.keep(stamp=ENGLISH, headers=spoken(ENGLISH))
    kept.publish(8, {("company", "other")})
    kept.keep(stamp=ENGLISH._replace(version=8), headers=spoken(ENGLISH), status=304, body=b"")
    kept.keep(stamp=GERMAN._replace(version=8), headers=spoken(GERMAN))
    assert kept.pages.get(b"/x", b"", b'"0123"', b"en")[1].status == 304
    assert kept.pages.get(b"/x", b"", b"", b"de")[1].status == 200
    kept.publish(9, {("company", "quillmere")})
    assert kept.pages.size_bytes == 0


def test_a_page_that_was_found_before_a_publication_is_not_kept_after_it():
    kept = Kept()
    kept.publish(8, {("company", "other")})
    assert kept.keep() is None
    kept.keep(stamp=ENGLISH._replace(version=8), headers=spoken(ENGLISH))
    kept.keep(stamp=GERMAN, headers=spoken(GERMAN))
    assert kept.pages.get(b"/x", b"", b"", b"de") is None
    assert kept.pages.get(b"/x", b"", b"", b"en") is not None


@pytest.mark.parametrize(
    "change",
    [{"tag": b"4567"}, {"depends": (("company", "other"),)}, {"until": time.time() + 900}],
)
def test_another_page_at_the_same_address_takes_the_place_of_the_kept_one(change):
    kept = Kept()
    for stamp in (ENGLISH, GERMAN, ENGLISH._replace(**change)):
        kept.keep(stamp=stamp, headers=spoken(stamp))
    assert kept.pages.get(b"/x", b"", b"", b"en")[0].stamp == ENGLISH._replace(version=None, **change)
    assert kept.pages.get(b"/x", b"", b"", b"de") is None


def test_a_page_ends_with_its_day_and_a_static_file_when_everything_does():
    kept = Kept()
    assert kept.keep(stamp=STAMP._replace(until=time.time() - 1)) is None
    assert kept.pages.size_bytes == 0
    assert kept.keep(stamp=PageStamp(b"0123", is_compressible=True)) is not None
    kept.publish(8, {("company", "quillmere"), ("company", "*"), ("*", "*")})
    assert kept.pages.get(b"/x", b"", b"") is not None
    kept.publish(1 << 64, None)
    assert kept.pages.get(b"/x", b"", b"") is None


def test_the_memory_of_kept_pages_is_bounded():
    kept = Kept()
    body = b"x" * LARGEST_BYTES
    headers = [*HEADERS[:-1], (b"content-length", b"%d" % len(body))]
    found = [kept.keep(b"/%d" % number, body=body, headers=headers) for number in range(12)]
    assert all(found)
    assert kept.pages.size_bytes <= LIMIT_BYTES
    assert kept.pages.get(b"/0", b"", b"") is None
    assert kept.pages.get(b"/11", b"", b"") is not None


def test_an_encoding_that_was_not_sent_yet_takes_the_ordinary_path():
    kept = Kept()
    kept.keep()
    assert kept.pages.get(b"/x", b"br", b"") is None
    assert kept.pages.get(b"/x", b"", b'"0123"') is None
    kept.keep(status=304, body=b"")
    assert kept.pages.get(b"/x", b"", b'"0123"')[1].status == 304


def test_static_files_count_against_their_own_limit():
    limits = Fairness(rate=1, burst=1)
    path = FastPath(Charging(limits))
    path.pages = Kept().pages
    path.pages.keep(b"/x", STAMP, "static", status=200, headers=HEADERS, body=BODY)
    verdicts = [path.page(b"/x", b"", b"", "192.0.2.1")[1] for _ in range(5)]
    assert verdicts[:4] == [None] * 4
    assert not verdicts[4].allowed
    assert limits.requests.take("192.0.2.1").allowed


def test_what_another_process_publishes_ends_the_pages_that_it_concerns_and_no_others(tmp_path):
    data = demo_registry(tmp_path / "data")
    settings = {"base_url": "http://registry.example"}
    rooms = (b"/companies", b"/people", b"/frameworks", b"/search")
    pages = [
        b"/companies/grainline",
        b"/companies/tarnwick-tidal",
        *(target for target in TARGETS if target.startswith(rooms)),
    ]

    def shown(product):
        """Return the status, the ETag and the date of each page."""
        answers = {target: exchange(product.port, get(target))[0] for target in pages}
        dates = {
            target: re.findall(rb"\r\n(?:etag|last-modified): [^\r]+", answer) for target, answer in answers.items()
        }
        return {target: (status(answer), *dates[target]) for target, answer in answers.items()}

    with Product(data, "--workers", "1", **settings) as served:
        served.wait_ready(within_s=120)
        wait_until(lambda: is_dated(served), within_s=60, what="the final date of the edition")
        before = [shown(served) for _ in range(3)][-1]
        renamed = lines(tmp_path / "companies.jsonl", {"company": {"id": "tarnwick-tidal", "name": "Tarnwick Tides"}})
        run("import", str(renamed), data=data)
        # A detail of the API reads the file itself: until the next tick it may be newer than the kept pages.
        page = get(b"/companies/tarnwick-tidal")
        wait_until(lambda: b"Tarnwick Tides" in exchange(served.port, page)[0], within_s=60, what="the new name")
        wait_until(lambda: is_dated(served), within_s=60, what="the final date of the new edition")
        after = shown(served)
        with Product(data, "--workers", "1", **settings) as fresh:
            fresh.wait_ready(within_s=120)
            expected = shown(fresh)
    assert {target: answer[:2] for target, answer in after.items()} == {
        target: answer[:2] for target, answer in expected.items()
    }
    kept = {target for target in pages if after[target] == before[target]}
    assert b"/companies/grainline" in kept
    assert b"/companies/tarnwick-tidal" not in kept
    assert b"/companies" not in kept
