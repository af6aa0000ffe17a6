"""The fast path: the same bytes as the ordinary path, whatever is asked and however it is sent."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import struct
import time
from urllib.parse import quote

import pytest
import uvicorn
from uvicorn.server import ServerState

from make.published import company
from muniment.config import Config
from muniment.server.app.app import App
from muniment.server.fastpath.protocol import FastPathProtocol, missing_internals
from services.mcp import legacy, modern
from services.prepared import new_instance
from services.product import WITHOUT_FAST_PATH, Product
from services.raw import LENGTH, exchange, status

COMPANIES = b"/api/v1/companies"


@pytest.fixture(scope="module")
def both(demo):
    """The same registry served with the fast path and without it."""
    data = demo.data
    settings = {"rate_limit": "6000", "rate_burst": "5000", "base_url": "http://registry.example"}
    with Product(data, **settings) as lane, Product(data, constants=WITHOUT_FAST_PATH, **settings) as plain:
        lane.wait_ready()
        plain.wait_ready()
        yield lane, plain


def get(target=COMPANIES, *lines, method=b"GET", version=b"1.1"):
    head = b"%s %s HTTP/%s\r\nHost: registry.example\r\nX-Request-Id: the-same\r\n" % (method, target, version)
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def masked(answer):
    """Hide what two servers may differ in: the second, when each was started, and how far each has counted."""
    answer = re.sub(rb"\r\ndate: [^\r]+", b"\r\ndate: now", answer)
    answer = re.sub(rb"\r\nlast-modified: [^\r]+", b"\r\nlast-modified: since then", answer)
    return re.sub(rb'ratelimit: "burst";r=\d+;t=\d+', b"ratelimit: counted", answer)


REQUESTS = {
    "list": [get()],
    "list again": [get(), get()],
    "page": [get(b"/api/v1/companies?page=2&pageSize=3")] * 2,
    "detail": [get(b"/api/v1/companies/quillmere")] * 2,
    "detail with a slash": [get(b"/api/v1/companies/quillmere/")] * 2,
    "escaped": [get(b"/api/v1/companies/quill%6dere")] * 2,
    "missing": [get(b"/api/v1/companies/missing")] * 2,
    "search": [get(b"/api/v1/companies?q=tide")] * 2,
    "stats": [get(b"/api/v1/stats")] * 2,
    "bad parameter": [get(b"/api/v1/companies?page=0")] * 2,
    "empty query": [get(b"/api/v1/companies?")] * 2,
    "zstd": [get(COMPANIES, b"Accept-Encoding: zstd")] * 2,
    "br": [get(COMPANIES, b"Accept-Encoding: br")] * 2,
    "gzip, weighted": [get(COMPANIES, b"Accept-Encoding: gzip;q=0.5, identity;q=0.1")] * 2,
    "repeated encoding": [get(COMPANIES, b"Accept-Encoding: br", b"Accept-Encoding: gzip")] * 2,
    "unchanged": [get(), get(COMPANIES, b"If-None-Match: *")],
    "changed": [get(), get(COMPANIES, b'If-None-Match: "other"')],
    "head": [get(), get(method=b"HEAD")],
    "options": [get(method=b"OPTIONS")],
    "post": [get(COMPANIES, b"Content-Length: 2", method=b"POST") + b"{}"],
    "get with a body": [get(), get(COMPANIES, b"Content-Length: 2") + b"{}"],
    "get with a chunked body": [get(), get(COMPANIES, b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n"],
    "expect": [get(), get(COMPANIES, b"Expect: 100-continue")],
    "range": [get(), get(COMPANIES, b"Range: bytes=0-3")],
    "close": [get(), get(COMPANIES, b"Connection: close")],
    "http 1.0": [get(), get(version=b"1.0")],
    "upgrade": [
        get(),
        get(COMPANIES, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMA"),
    ],
    "absolute form": [get(b"http://registry.example/api/v1/companies")] * 2,
    "forwarded, not believed": [get(COMPANIES, b"X-Forwarded-For: 198.51.100.7")] * 2,
    "no such address": [get(b"/api/v1/nothing")] * 2,
    "no host": [b"GET /api/v1/companies HTTP/1.1\r\n\r\n"],
    "fragment": [get(b"/api/v1/companies#x")] * 2,
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_lane_answers_as_the_ordinary_path_does(both, name):
    lane, plain = both
    for sent in REQUESTS[name]:
        first, second = (exchange(product.port, sent)[0] for product in (lane, plain))
        if name == "no host":
            first, second = (re.sub(rb"x-request-id: \S+", b"", answer) for answer in (first, second))
        assert masked(first) == masked(second)


def call(headers_and_body, *lines, target=b"/api/mcp", drop=()):
    """Write a request to the public tool server as it goes over the wire."""
    headers, body = headers_and_body
    kept = [f"{name}: {value}".encode() for name, value in headers if name.lower() not in {*drop, "host"}]
    length = () if "content-length" in drop else (b"Content-Length: %d" % len(body),)
    return get(target, *kept, *length, *lines, method=b"POST") + body


COMPANY = ("tools/call", {"name": "get_company", "arguments": {"slug": "quillmere"}})
CALLS = {
    "company, modern": [call(modern(*COMPANY))] * 2,
    "company, legacy": [call(legacy(*COMPANY))] * 2,
    "a list": [call(modern("tools/call", {"name": "list_companies", "arguments": {"q": "tide"}}))] * 2,
    "missing": [call(modern("tools/call", {"name": "get_company", "arguments": {"slug": "quilmere"}}))],
    "bad argument": [call(modern("tools/call", {"name": "get_company", "arguments": {"slug": 7}}))],
    "no such tool": [call(modern("tools/call", {"name": "get_nothing", "arguments": {}}))],
    "tools": [call(modern("tools/list")), call(legacy("tools/list"))],
    "ping": [call(legacy("ping"))],
    "discover": [call(modern("server/discover"))],
    "resources": [call(modern("resources/list"))],
    "header and body differ": [call(modern(*COMPANY), drop=("mcp-name",))],
    "a routing header twice": [call(modern(*COMPANY), b"Mcp-Name: get_company")],
    "foreign host": [call(modern(*COMPANY)).replace(b"Host: registry.example", b"Host: other.example")],
    "no type": [call(modern(*COMPANY), drop=("content-type",))],
    "no json": [call((modern(*COMPANY)[0], b"{"))],
    "batch": [call((modern(*COMPANY)[0], b"[]"))],
    "as large as may be": [call((modern(*COMPANY)[0], modern(*COMPANY)[1].ljust(64 << 10)))],
    "too large": [call((modern(*COMPANY)[0], modern(*COMPANY)[1].ljust((64 << 10) + 1)))],
    "no body": [call((modern(*COMPANY)[0], b""))],
    "forwarded, not believed": [call(modern(*COMPANY), b"X-Forwarded-For: 198.51.100.7")],
    "trailing slash": [call(modern(*COMPANY), target=b"/api/mcp/")],
    "query": [call(modern(*COMPANY), target=b"/api/mcp?x=1")],
    "close": [call(modern(*COMPANY), b"Connection: close")],
    "owners": [call(modern(*COMPANY), target=b"/api/manage/mcp")],
}


@pytest.mark.parametrize("name", CALLS)
def test_the_lane_answers_calls_of_tools_as_the_ordinary_path_does(both, name):
    lane, plain = both
    for sent in CALLS[name]:
        first, second = (exchange(product.port, sent)[0] for product in (lane, plain))
        assert masked(first) == masked(second)


def test_a_call_in_chunks_or_in_pieces_is_answered_like_one_in_a_piece(both):
    headers, body = modern(*COMPANY)
    chunked = call((headers, b""), b"Transfer-Encoding: chunked", drop=("content-length",))
    chunked += b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    whole = call((headers, body))
    for product in both:
        expected = masked(exchange(product.port, whole)[0])
        assert b'"isError":false' in expected
        assert masked(exchange(product.port, chunked)[0]) == expected
        with socket.create_connection(("127.0.0.1", product.port), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in (whole[:300], whole[300:-50], whole[-50:-1], whole[-1:]):
                connection.sendall(piece)
                time.sleep(0.02)
            got = b""
            while len(got) < len(expected) - 100:
                got += connection.recv(65536)
        assert masked(got) == expected


def test_calls_and_reads_in_one_go_are_answered_in_their_order(both):
    asked = [call(modern(*COMPANY)), get(), call(modern("resources/list")), call(legacy("ping")), get(b"/nothing")] * 4
    lane, plain = (exchange(product.port, b"".join(asked), answers=len(asked)) for product in both)
    assert [status(answer) for answer in lane] == [200, 200, 200, 200, 404] * 4
    assert [masked(answer) for answer in lane] == [masked(answer) for answer in plain]


def test_calls_of_tools_count_against_the_rate_on_both_paths(demo):
    for constants in (None, WITHOUT_FAST_PATH):
        with Product(demo.data, constants=constants, rate_limit="1", rate_burst="3") as product:
            product.wait_ready()
            sent = call(modern(*COMPANY)).replace(b"registry.example", b"127.0.0.1:%d" % product.port)
            answers = exchange(product.port, sent * 4, answers=4)
            left = [int(re.search(rb"ratelimit: [^\r]*;r=(\d+)", answer)[1]) for answer in answers]
            assert left == [2, 1, 0, 0]
            assert b'"isError":false' in answers[2]
            assert b'"isError":true' in answers[3]
            assert b"Wait" in answers[3]


def test_mixed_requests_in_one_go_are_answered_in_their_order(both):
    targets = [
        COMPANIES,
        b"/api/v1/companies?q=tide",
        b"/api/v1/companies/quillmere",
        b"/nothing",
        b"/api/v1/stats",
    ] * 4
    sent = b"".join(get(target) for target in targets)
    lane, plain = (exchange(product.port, sent, answers=len(targets)) for product in both)
    assert [status(answer) for answer in lane] == [200, 200, 200, 404, 200] * 4
    assert [masked(answer) for answer in lane] == [masked(answer) for answer in plain]


@contextlib.contextmanager
def stopped(product):
    """Let what is sent meanwhile reach the process in one turn of its loop."""
    os.kill(product.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(product.pid, signal.SIGCONT)


def answered(connection):
    """Read one answer."""
    got = b""
    while b"\r\n\r\n" not in got or len(got.partition(b"\r\n\r\n")[2]) < int(LENGTH.search(got)[1]):
        piece = connection.recv(1 << 16)
        assert piece, got
        got += piece
    return got


def test_a_batch_lookup_reaches_each_request(both):
    lane, plain = both
    slugs = [quote(company["id"]).encode() for company in plain.get("/api/v1/companies?pageSize=40").json()["data"]]
    people = [quote(person["slug"]).encode() for person in plain.get("/api/v1/people?pageSize=10").json()["data"]]
    asked = [
        *(get(b"/api/v1/companies/%s" % slug) for slug in slugs),
        *(get(b"/api/v1/people/%s" % slug) for slug in people),
        *(get(b"/api/v1/companies/%s" % slug, b"Accept-Encoding: gzip") for slug in slugs[:5]),
        *(get(b"/api/v1/companies/%s" % slug, b"If-None-Match: *") for slug in slugs[5:8]),
        *(get(b"/api/v1/companies/%s" % slugs[0]) for _ in range(3)),
        *(get(b"/api/v1/companies/missing-%d" % number) for number in range(3)),
    ]
    expected = [masked(exchange(plain.port, sent)[0]) for sent in asked]
    with contextlib.ExitStack() as open_ones:
        connections = [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", lane.port), timeout=60)) for _ in asked
        ]
        for _ in range(2):
            with stopped(lane):
                for connection, sent in zip(connections, asked, strict=True):
                    connection.sendall(sent)
            found = [
                masked(connection.recv(1 << 16) if b" 304 " in told[:20] else answered(connection))
                for connection, told in zip(connections, expected, strict=True)
            ]
            assert found == expected


def test_pipelined_requests_are_answered_in_order_across_a_lookup(both):
    details = [b"/api/v1/companies/%s" % name for name in (b"quillmere", b"missing", b"copperkite", b"no-one-either")]
    sent = b"".join(get(target) for target in [*details, COMPANIES, *details])
    lane, plain = (exchange(product.port, sent, answers=9) for product in both)
    assert [status(answer) for answer in lane] == [200, 404, 200, 404, 200, 200, 404, 200, 404]
    assert [masked(answer) for answer in lane] == [masked(answer) for answer in plain]


@pytest.mark.parametrize("first", [b"/api/v1/companies/quillmere", b"/api/v1/companies/missing"])
def test_a_look_up_is_answered_before_what_cannot_be_read(both, first):
    known, *unread = exchange(both[0].port, get(first) + b"what is this\r\n\r\n", answers=2)
    assert known.partition(b"\r\n\r\n")[2] == exchange(both[1].port, get(first))[0].partition(b"\r\n\r\n")[2]
    assert [status(answer) for answer in unread] == [400]


def test_a_client_that_half_closes_gets_what_it_waits_for(both):
    for name, expected in ((b"quillmere", 200), (b"missing", 404)):
        lane, plain = (exchange(product.port, get(COMPANIES + b"/" + name), hang_up=True) for product in both)
        assert [status(answer) for answer in lane] == [expected]
        assert lane[0].partition(b"\r\n\r\n")[2] == plain[0].partition(b"\r\n\r\n")[2]


def test_a_client_that_disconnects_while_it_waits_affects_no_other(both):
    lane = both[0]
    leaving, staying = (socket.create_connection(("127.0.0.1", lane.port), timeout=60) for _ in range(2))
    leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with staying:
        with stopped(lane):
            leaving.sendall(get(b"/api/v1/companies/quillmere"))
            staying.sendall(get(b"/api/v1/companies/copperkite"))
            leaving.close()
        assert b'"id":"copperkite"' in answered(staying)


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.closing = False

    def writelines(self, pieces):
        self.written += b"".join(pieces)

    def is_closing(self):
        return self.closing


async def asked_at(api):
    """Return a connection that has asked for a detail, before the turn is over, and its wire."""
    front = App(Config({"MUNIMENT_RATE_LIMIT": "off"}))
    front.open_api(api)
    config = uvicorn.Config(front, http=FastPathProtocol, lifespan="off")
    config.load()
    connection, wire = FastPathProtocol(config, ServerState(), {}, asyncio.get_running_loop()), Wire()
    connection.connection_made(wire)
    connection.data_received(get(b"/api/v1/companies/company-1"))
    assert connection.is_busy
    assert wire.written == b""
    return connection, wire


@pytest.mark.parametrize("end", ["retire", "eof_received"])
def test_a_connection_that_ends_answers_first_what_waits(rest, end):
    rest.publish(company(1))

    async def run():
        connection, wire = await asked_at(rest.api)
        getattr(connection, end)()
        assert wire.written.startswith(b"HTTP/1.1 200 OK")
        assert not connection.is_busy

    asyncio.run(run())


def test_the_keys_of_the_attributes_of_a_connection_are_shared(rest):
    """Of more than 30 attributes, Python makes a dictionary of its own for each connection."""
    rest.publish(company(1))

    async def run():
        connection, _ = await asked_at(rest.api)
        assert len(vars(connection)) <= 30

    asyncio.run(run())


def test_nothing_is_looked_up_or_written_for_a_client_that_has_gone(rest):
    rest.publish(company(1))

    async def run():
        _, wire = await asked_at(rest.api)
        wire.closing = True
        await asyncio.sleep(0)
        assert wire.written == b""
        assert rest.api.misses == 0

    asyncio.run(run())


def test_a_failed_batch_lookup_falls_back_to_the_ordinary_path():
    class Waiting:
        waits_for = "a detail"
        answers = None

        def answer_late(self, answers):
            self.answers = answers

    front = App(Config({}))
    front.fast_path.waiting = waiting = [Waiting(), Waiting()]
    front.fast_path.rest = object()  # whatever is asked of it fails
    front.fast_path.answer_waiting()
    assert [each.answers for each in waiting] == [{}, {}]
    assert front.fast_path.waiting == []


def test_an_answer_that_fails_ends_its_connection_and_no_other(rest, monkeypatch, caplog):
    rest.publish(company(1))
    monkeypatch.setattr(Wire, "abort", lambda wire: setattr(wire, "closing", True), raising=False)

    async def run():
        first, failing = await asked_at(rest.api)
        second, wire = await asked_at(rest.api)
        first.front.fast_path.waiting = [first, second]
        failing.writelines = None
        first.front.fast_path.answer_waiting()
        assert (failing.closing, failing.written) == (True, b"")
        assert wire.written.startswith(b"HTTP/1.1 200 OK")
        assert "a delayed response failed" in caplog.text

    asyncio.run(run())


def test_a_request_that_comes_byte_by_byte_is_answered(both):
    for product in both:
        with socket.create_connection(("127.0.0.1", product.port), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in get():
                connection.sendall(bytes([byte]))
            assert connection.recv(64).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_that_asks_much_and_reads_late_gets_all_of_it(both):
    sent = get(b"/api/v1/companies?pageSize=100") * 200
    for product in both:
        answers = exchange(product.port, sent, answers=200)
        assert len({masked(answer) for answer in answers}) == 1
        assert len(answers) == 200


def test_the_lane_counts_against_the_rate_as_the_ordinary_path_does(demo):
    for constants in (None, WITHOUT_FAST_PATH):  # by one process, for each counts alone
        with Product(demo.data, "--workers", "1", constants=constants, rate_limit="1", rate_burst="6") as product:
            product.wait_ready()  # what is stored at start-up drops cached answers
            etag = product.get("/api/v1/stats").headers["etag"]
            # What is not new is free, also for a client that has nothing left.
            free = get(b"/api/v1/stats", b"If-None-Match: " + etag.encode())
            asked = get(b"/api/v1/stats") * 5 + free + get(b"/api/v1/stats") * 3
            answers = exchange(product.port, asked, answers=9)
            assert [status(answer) for answer in answers] == [200] * 5 + [304] + [429] * 3
            left = [int(re.search(rb"r=(\d+)", answer)[1]) for answer in answers]
            assert left == [4, 3, 2, 1, 0, 0, 0, 0, 0]
            assert b'\r\nratelimit-policy: "default";q=1;w=60, "burst";q=6;w=360\r\n' in answers[0]


def test_a_client_beyond_its_rate_has_nothing_looked_up_that_is_kept(demo):
    with Product(demo.data, "--workers", "1", rate_limit="1", rate_burst="4") as product:
        # Each refusal of requests that were sent ahead ends a longer pause than the one before, so there are few.
        answers = exchange(product.port, get(COMPANIES + b"/quillmere") * 6, answers=6)
        assert [status(answer) for answer in answers] == [200] * 4 + [429] * 2
        assert 'muniment_cache_requests_total{result="miss"} 2.0\n' in product.metrics()


def test_this_version_of_uvicorn_has_what_the_lane_leans_on():
    assert missing_internals() == []


def test_a_uvicorn_without_its_internals_is_recognized():
    class Protocol:
        def __init__(self):
            self.parser = None

        def on_message_begin(self):
            self.url = b""

    class Cycle:
        def __init__(self):
            self.keep_alive = True

    missing = missing_internals(Protocol, Cycle)
    assert "on_headers_complete" in missing
    assert "flow" in missing
    assert "cycle.response_complete" in missing
    assert "cycle.keep_alive" not in missing


def test_behind_a_trusted_proxy_the_fast_path_counts_each_client_separately(tmp_path):
    """In front of most instances stands a proxy: its requests are ordinary ones, and its clients are not one."""
    settings = {"rate_limit": "60", "rate_burst": "20", "trusted_proxies": "127.0.0.1", "log_requests": "on"}
    with Product(new_instance(tmp_path / "data"), "--workers", "1", **settings) as it:  # each process counts alone
        it.wait_ready(within_s=120)
        first, second = (get(b"/api/v1/stats", b"X-Forwarded-For: 192.0.2.%d" % number) for number in (1, 2))

        def left(request):
            (answer,) = exchange(it.port, request)
            return int(re.search(rb'ratelimit: "burst";r=(\d+)', answer)[1])

        assert [left(first) for _ in range(3)] == [19, 18, 17]
        assert left(second) == 19
        assert left(get(b"/api/v1/stats", b"X-Forwarded-For: 192.0.2.1, not an address")) == 19, "counted as the proxy"
        written = b'Forwarded: for="[2001:db8::7]";proto=https'
        assert left(get(b"/api/v1/stats", written)) == 18, "a header that is not configured is not believed"
        assert left(get(b"/api/v1/stats", written, b"X-Forwarded-For: 192.0.2.2")) == 18
        lines = [line for line in it.output().splitlines() if "/api/v1/stats" in line]
        assert sum('"client": "192.0.2.1"' in line for line in lines) == 3
        assert sum('"milliseconds": 0.0' in line for line in lines) >= 3, "the fast path was not taken"
