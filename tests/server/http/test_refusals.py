"""A refusal costs less than a response, says the same on both paths, and pauses the connection of its client."""

import asyncio
import itertools
import json
import re
import socket
import time
from collections import Counter

import pytest
import uvicorn
from uvicorn.server import ServerState

from make.published import company
from muniment.config import Config
from muniment.kernel.fairness import PAUSE
from muniment.server.app.app import App
from muniment.server.fastpath.protocol import FastPathProtocol
from muniment.server.http.http_limits import MAX_PAUSE_S, TIMER_S, LimitedProtocol
from services.mcp import legacy, modern
from services.product import WITHOUT_FAST_PATH, Product
from services.raw import exchange, status

REGISTRY = {"base_url": "http://registry.example", "trusted_proxies": "127.0.0.1"}
_addresses = (f"198.51.{number >> 8}.{number & 255}" for number in itertools.count(1))


def asking(target, *lines, method=b"GET", body=b""):
    head = b"%s %s HTTP/1.1\r\nHost: registry.example\r\nX-Request-Id: the-same\r\n" % (method, target)
    length = (b"Content-Length: %d" % len(body),) if body else ()
    return head + b"".join(line + b"\r\n" for line in (*lines, *length)) + b"\r\n" + body


def calling(headers_and_body, target=b"/api/mcp", *lines):
    headers, body = headers_and_body
    kept = [f"{name}: {value}".encode() for name, value in headers if name not in {"host", "content-length"}]
    return asking(target, *kept, *lines, method=b"POST", body=body)


HTML = b"Accept: text/html,application/xhtml+xml"
COMPANY = ("tools/call", {"name": "get_company", "arguments": {"slug": "quillmere"}})
SLOW = ("tools/call", {"name": "list_companies", "arguments": {"q": "tide", "industry": "energy"}})
OWNERS = ("tools/call", {"name": "get_my_company", "arguments": {"slug": "quillmere"}})
UNKNOWN = b"Authorization: Bearer mun_unknown"
REFUSED = {
    "a cached list": asking(b"/api/v1/companies"),
    "a search": asking(b"/api/v1/companies?q=harbour+light"),
    "a detail": asking(b"/api/v1/companies/quillmere"),
    "nothing": asking(b"/api/v1/companies/no-such-company"),
    "any tag": asking(b"/api/v1/companies", b"If-None-Match: *"),
    "another tag": asking(b"/api/v1/companies", b'If-None-Match: "another"'),
    "headers only": asking(b"/api/v1/companies", method=b"HEAD"),
    "options": asking(b"/api/v1/companies", method=b"OPTIONS"),
    "a twin": asking(b"/companies/quillmere.json", HTML),
    "the contract": asking(b"/openapi.json"),
    "an export": asking(b"/exports/nothing.csv"),
    "escaped": asking(b"/api/v1/companies/quill%6Dere"),
    "absolute form": asking(b"http://registry.example/api/v1/stats"),
    "a page for a browser": asking(b"/companies", HTML),
    "a page for a program": asking(b"/companies"),
    "a page of a search": asking(b"/companies?q=harbour", HTML),
    "no page": asking(b"/no-such-page", HTML),
    "a form": asking(b"/accounts/login/", HTML, method=b"POST", body=b"login=x&password=y"),
    "chunks": asking(b"/accounts/login/", b"Transfer-Encoding: chunked", method=b"POST") + b"1\r\nx\r\n0\r\n\r\n",
    "a registration": asking(b"/oauth/register", b"Content-Type: application/json", method=b"POST", body=b"{}"),
    "an upload": asking(b"/uploads/no-such-link", method=b"PUT", body=b"%PDF"),
    "to be closed": asking(b"/api/v1/stats", b"Connection: close"),
    "expecting": asking(b"/oauth/register", b"Expect: 100-continue", method=b"POST", body=b"{}"),
    "a hidden check": asking(b"/metrics/"),
    "tools": calling(modern("tools/list")),
    "other tools": calling(legacy("tools/list")),
    "no such tool": calling(legacy("tools/call", {"name": "get_nothing", "arguments": {}})),
    "by GET": asking(b"/api/mcp"),
    "no such method": calling(legacy("no/such")),
}
CALLS = {
    "a call": calling(modern(*COMPANY)),
    "an older call": calling(legacy(*COMPANY)),
    "a slow call": calling(legacy(*SLOW)),
    "a call with a bad argument": calling(legacy("tools/call", {"name": "get_company", "arguments": {"slug": 7}})),
}
STILL_ANSWERED = {
    "a health check": (asking(b"/healthz"), 200),
    "a server card": (asking(b"/.well-known/mcp.json"), 200),
    "options of a tool server": (asking(b"/api/mcp", method=b"OPTIONS"), 204),
}


@pytest.fixture(scope="module")
def both(demo):
    """The same registry behind a proxy, served with the fast path and without it; each address may ask once."""
    one = ("--workers", "1")
    settings = {"rate_limit": "1", "rate_burst": "1", **REGISTRY}
    with (
        Product(demo.data, *one, **settings) as lane,
        Product(demo.data, *one, constants=WITHOUT_FAST_PATH, **settings) as plain,
    ):
        for product in (lane, plain):
            product.wait_ready()
        yield lane, plain


def by(address, sent):
    """Return *sent* as a proxy passes it on for *address*."""
    return sent.replace(b"\r\n", f"\r\nX-Forwarded-For: {address}\r\n".encode(), 1)


def told(product, first, sent):
    """Send *first* and then *sent* for a new address; return the answer to *sent*, without counts."""
    address = next(_addresses)
    exchange(product.port, by(address, first))
    (answer,) = exchange(product.port, by(address, sent), hang_up=sent.startswith(b"HEAD "))
    answer = re.sub(rb"\r\ndate: [^\r]+", b"\r\ndate: now", answer)
    return re.sub(rb"(;t=|Wait |retry-after: )(?:59|60)\b", rb"\g<1>60", answer)


@pytest.mark.parametrize("name", [*REFUSED, *CALLS])
def test_both_paths_refuse_with_the_same_bytes(both, name):
    sent = {**REFUSED, **CALLS}[name]
    lane, plain = (told(product, asking(b"/api/v1/stats"), sent) for product in both)
    assert lane == plain
    assert b'\r\nratelimit: "burst";r=0;t=60\r\n' in lane
    assert b'\r\nratelimit-policy: "default";q=1;w=60, "burst";q=1;w=60\r\n' in lane
    assert b"\r\nx-request-id: the-same\r\n" in lane
    if name in CALLS:
        assert b'"isError":true' in lane
        return
    assert status(lane) == 429
    assert b"\r\nretry-after: 60\r\n" in lane
    assert b"\r\ncache-control: no-store\r\n" in lane or b"mcp" in sent.partition(b"\r\n")[0]
    assert b"\r\naccess-control-allow-origin: *\r\n" in lane
    body = lane.partition(b"\r\n\r\n")[2]
    if body and not body.startswith(b"<!doctype html>"):
        assert json.loads(body)["error"]["code"] == "bad_request"


def test_browsers_are_refused_with_a_page_and_programs_with_json(both):
    for product in both:
        asked = asking(b"/api/v1/stats")
        assert b"\r\n\r\n<!doctype html>" in told(product, asked, REFUSED["a page for a browser"])
        assert b'\r\n\r\n{"error"' in told(product, asked, REFUSED["a page for a program"])


def test_static_files_are_refused_by_their_own_limit_with_the_same_bytes(both):
    found = []
    for product in both:
        address = next(_addresses)
        sent = by(address, asking(b"/static/no-such-file.css", b"Accept: text/css"))
        answers = [exchange(product.port, sent)[0] for _ in range(6)]
        assert [status(each) for each in answers] == [404] * 4 + [429] * 2
        assert b"ratelimit:" not in answers[5]
        found.append(re.sub(rb"\r\ndate: [^\r]+", b"\r\ndate: now", answers[5]))
    assert found[0] == found[1]


@pytest.mark.parametrize("lines", [(UNKNOWN,), (), (b"Authorization: Basic eDp5",)], ids=["unknown", "none", "basic"])
def test_an_owners_call_without_a_known_token_is_refused_with_the_same_bytes(both, lines):
    sent = calling(legacy(*OWNERS), b"/api/manage/mcp", *lines)
    lane, plain = (told(product, sent, sent) for product in both)
    assert lane == plain
    assert status(lane) == 429
    assert b"without a valid token" in lane


def test_a_known_version_is_confirmed_for_free_also_over_the_limit(both):
    for product in both:
        (first,) = exchange(product.port, by(next(_addresses), asking(b"/api/v1/stats")))
        known = asking(b"/api/v1/stats", re.search(rb"\r\n(etag: [^\r]+)", first)[1].replace(b"etag", b"If-None-Match"))
        assert status(told(product, asking(b"/api/v1/stats"), known)) == 304


@pytest.mark.parametrize("name", STILL_ANSWERED)
def test_what_counts_elsewhere_is_answered_over_the_limit(both, name):
    sent, expected = STILL_ANSWERED[name]
    for product in both:
        assert status(told(product, asking(b"/api/v1/stats"), sent)) == expected


def refusals(product):
    found = re.findall(r"^(muniment_(?:limited|events)_total\{[^}]*\}) (\d+)", product.metrics(), re.MULTILINE)
    return Counter({name: int(number) for name, number in found})


def test_refusals_are_counted_alike_on_both_paths(both):
    counts = []
    for product in both:
        before = refusals(product)
        told(product, asking(b"/api/v1/stats"), asking(b"/companies?q=quay"))
        counts.append(refusals(product) - before)
    assert counts[0] == counts[1]
    assert counts[0]['muniment_limited_total{limit="requests"}'] == 1
    assert counts[0]['muniment_events_total{event="rate limited"}'] == 1


# ---------------------------------------------------------------------- one connection, without a socket


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and whether it is read from."""

    def __init__(self, peer):
        super().__init__()
        self.peer = peer
        self.written = b""
        self.closing = False
        self.is_read = True

    def write(self, data):
        self.written += data

    def writelines(self, pieces):
        self.write(b"".join(pieces))

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    def get_write_buffer_size(self):
        return 0

    def can_write_eof(self):
        return False

    def get_extra_info(self, name, default=None):
        return (self.peer, 443) if name == "peername" else default

    def pause_reading(self):
        self.is_read = False

    def resume_reading(self):
        self.is_read = True

    @property
    def statuses(self):
        return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d+) ", self.written)]


class Clock:
    """The time of a limiter."""

    now = 1000.0

    def __call__(self):
        return self.now


class Client:
    """A connection of a client to a server whose clock stands still, which allows *burst* requests."""

    def __init__(self, api, protocol=FastPathProtocol, *, peer="192.0.2.7", rate="60", burst="1", **settings):
        given = {"RATE_LIMIT": rate, "RATE_BURST": burst, "BASE_URL": "http://registry.example", **settings}
        self.front = App(Config({f"MUNIMENT_{name}": value for name, value in given.items()}))
        self.front.open_api(api)
        self.clock = self.front.limiter._clock = Clock()
        config = uvicorn.Config(self.front, http=protocol, lifespan="off", access_log=False)
        config.load()
        self.connection = protocol(config, ServerState(), {}, asyncio.get_running_loop())
        self.wire = Wire(peer)
        self.connection.connection_made(self.wire)

    def send(self, *requests):
        self.connection.data_received(b"".join(requests))

    async def settle(self):
        for _ in range(200):
            await asyncio.sleep(0)

    async def until(self, is_done):
        async with asyncio.timeout(60):
            for _ in itertools.takewhile(lambda _: not is_done(), itertools.count()):
                await asyncio.sleep(0)

    @property
    def pause_s(self):
        return self.connection._pause.when() - self.connection.loop.time()


DETAIL = asking(b"/api/v1/companies/company-1")
ANOTHER = asking(b"/api/v1/companies/company-2", b"Accept: */*")
BOTH_PATHS = pytest.mark.parametrize("protocol", [FastPathProtocol, LimitedProtocol])


@pytest.fixture
def api(rest):
    rest.publish(company(1), company(2))
    return rest.api


def test_a_refused_request_never_reaches_the_ordinary_path(api):
    async def run():
        client = Client(api, burst="1", TRUSTED_PROXIES="192.0.2.7")
        client.send(DETAIL)
        await client.settle()
        client.connection._proceed_by_task = None  # whatever is asked of it fails
        api.reader.documents = None
        sent = [DETAIL, ANOTHER, asking(b"/api/v1/companies?q=other"), asking(b"/companies", HTML), DETAIL, DETAIL]
        sent.append(asking(b"/oauth/register", method=b"POST", body=b"{}"))
        for request in sent:
            client.send(request)
        assert client.wire.statuses == [200] + [429] * len(sent)

    asyncio.run(run())


CHUNKS = asking(b"/oauth/register", b"Transfer-Encoding: chunked", method=b"POST")
TRAILERS = b"1\r\nx\r\n0\r\nX-Forwarded-For: 198.51.100.9\r\nCookie: session=other\r\n"


@BOTH_PATHS
def test_a_trailer_that_comes_with_the_head_of_a_refused_request_never_becomes_a_header(api, protocol):
    async def run():
        client = Client(api, protocol, burst="1", rate="1", TRUSTED_PROXIES="192.0.2.7")
        client.send(by("198.51.100.1", DETAIL))
        await client.settle()
        # What is over the limit, and incomplete when it comes, takes the ordinary path.
        client.send(by("198.51.100.1", CHUNKS), TRAILERS)
        assert client.connection.headers[-1] == (b"transfer-encoding", b"chunked")
        client.send(b"\r\n")
        await client.settle()
        assert client.wire.statuses == [200, 429]

    asyncio.run(run())


@BOTH_PATHS
def test_a_client_whose_bodies_were_too_slow_sends_no_more_of_them_and_reads_on(api, protocol):
    async def run():
        client = Client(api, protocol, burst="9")
        client.front.fairness.body_time.charge("192.0.2.7", 10_000)
        client.send(DETAIL)
        await client.settle()
        client.send(asking(b"/oauth/register", method=b"POST", body=b"{}"))
        await client.settle()
        assert client.wire.statuses == [200, 429]

    asyncio.run(run())


@BOTH_PATHS
def test_a_refused_connection_is_not_read_until_its_next_token(api, protocol):
    async def run():
        client = Client(api, protocol, rate="120")  # a token is half a second
        client.send(DETAIL)
        await client.settle()
        assert client.wire.is_read
        client.send(DETAIL)
        await client.settle()
        assert client.wire.statuses == [200, 429]
        assert not client.wire.is_read
        assert 0.3 < client.pause_s <= 0.5 + TIMER_S
        client.clock.now += 0.5
        client.connection._end_pause()
        assert client.wire.is_read
        client.send(DETAIL)
        await client.settle()
        assert client.wire.statuses == [200, 429, 200]

    asyncio.run(run())


@BOTH_PATHS
def test_the_pauses_of_a_client_that_sends_ahead_double_up_to_eight_seconds_and_those_of_one_that_waits_do_not(
    api, protocol
):
    async def run():
        client = Client(api, protocol, rate="1")
        client.send(DETAIL * 8)
        pauses = []
        for _ in range(5):
            await client.settle()
            pauses.append(round(client.pause_s))
            client.connection._end_pause()
        assert pauses == [1, 2, 4, 8, 8]
        patient = Client(api, protocol, rate="1")
        for _ in range(3):
            patient.send(DETAIL)
            await patient.settle()
            if patient.connection._pause is not None:
                assert round(patient.pause_s) == MAX_PAUSE_S
                patient.connection._end_pause()

    asyncio.run(run())


def test_pauses_are_short_again_after_one_in_which_the_client_waited(api):
    async def run():
        client = Client(api, rate="1")
        pauses = []
        for sent in (DETAIL * 4, b"", b"", DETAIL):
            client.send(sent)
            await client.settle()
            pauses.append(round(client.pause_s))
            client.connection._end_pause()
        assert pauses == [1, 2, 4, 1]

    asyncio.run(run())


def test_requests_that_were_sent_ahead_long_ago_do_not_lengthen_a_pause(api):
    """Each ten seconds without a pause take back one doubling."""

    async def run():
        client = Client(api, rate="1")
        loop_time = client.connection.loop.time
        client.send(DETAIL * 6)
        for _ in range(4):
            await client.settle()
            client.connection._end_pause()
        assert round(client.pause_s) == 8
        pauses = []
        for later_s in (9, 10, 25, 3600):
            client.connection._end_pause()
            client.connection._impatience = 3
            client.connection._paused_until = loop_time() - later_s
            client.connection.pause(5)
            pauses.append(round(client.pause_s))
        assert pauses == [8, 4, 2, 1]

    asyncio.run(run())


@BOTH_PATHS
def test_a_pause_is_never_longer_than_the_shortest_wait_that_a_client_is_told(api, protocol):
    async def run():
        client = Client(api, protocol, rate="1")
        for _ in range(2):
            client.send(DETAIL)
            await client.settle()
        assert b"\r\nretry-after: 60\r\n" in client.wire.written
        assert MAX_PAUSE_S - 0.5 < client.pause_s <= MAX_PAUSE_S + TIMER_S
        assert MAX_PAUSE_S == 1

    asyncio.run(run())


def test_what_a_refused_client_sent_ahead_waits_and_is_answered_in_order(api):
    async def run():
        client = Client(api)
        client.send(DETAIL, ANOTHER, DETAIL, ANOTHER[:20])
        await client.settle()
        assert client.wire.statuses == [200, 429]
        assert client.connection._unread == DETAIL + ANOTHER[:20]
        client.clock.now += 1
        client.connection._end_pause()
        await client.settle()
        assert client.wire.statuses == [200, 429, 200]
        assert client.wire.is_read
        client.send(ANOTHER[20:])
        await client.settle()
        assert client.wire.statuses == [200, 429, 200, 429]

    asyncio.run(run())


@BOTH_PATHS
def test_what_is_sent_ahead_of_a_response_waits_for_it(api, protocol):
    async def run():
        client = Client(api, protocol, burst="2")
        client.send(asking(b"/api/v1/companies?q=first"), DETAIL, DETAIL, DETAIL)
        assert client.connection._unread == DETAIL * 3
        assert not client.wire.is_read
        await client.until(lambda: not client.connection.is_busy)
        await client.settle()
        assert client.wire.statuses == [200, 200, 429]
        assert client.connection._unread == DETAIL

    asyncio.run(run())


@BOTH_PATHS
def test_a_client_that_half_closes_gets_what_it_sent_ahead(api, protocol):
    async def run():
        client = Client(api, protocol, burst="3")
        client.send(asking(b"/api/v1/companies?q=first"), asking(b"/api/v1/companies?q=second"), DETAIL)
        assert client.connection.eof_received()
        await client.until(lambda: len(client.wire.statuses) == 3)
        await client.settle()
        assert client.wire.statuses == [200, 200, 200]
        assert client.wire.closing

    asyncio.run(run())


def test_what_arrives_during_a_pause_waits_too(api):
    async def run():
        client = Client(api)
        client.send(DETAIL, DETAIL)
        await client.settle()
        client.connection.flow.resume_reading()
        client.send(ANOTHER)
        assert client.wire.statuses == [200, 429]
        assert not client.wire.is_read
        client.clock.now += 1
        client.connection._end_pause()
        await client.settle()
        assert client.wire.statuses == [200, 429, 200]

    asyncio.run(run())


@BOTH_PATHS
def test_what_a_client_sends_ahead_counts_until_it_is_read_and_the_byte_over_the_limit_ends_it(api, protocol):
    async def run():
        client = Client(api, protocol)
        holders = client.front.holders
        client.send(DETAIL, DETAIL)
        await client.settle()
        holders._address_bytes = 3 * len(ANOTHER)
        client.send(ANOTHER, ANOTHER)
        client.send(ANOTHER)
        assert holders.body_bytes == client.connection.held_bytes == 3 * len(ANOTHER)
        client.clock.now += 1
        client.connection._end_pause()
        await client.settle()
        assert client.wire.statuses == [200, 429, 200, 429]
        assert holders.body_bytes == len(ANOTHER), "the rest waits again"
        client.send(ANOTHER, ANOTHER)
        assert client.wire.statuses == [200, 429, 200, 429]
        client.send(b"G")
        assert client.wire.statuses == [200, 429, 200, 429, 429]
        assert b"Too many bytes at once from this address." in client.wire.written
        assert client.connection.closing_at
        client.connection.connection_lost(None)
        assert holders.body_bytes == 0

    asyncio.run(run())


@BOTH_PATHS
def test_a_paused_connection_is_ended_for_the_bytes_of_another_address(api, protocol):
    async def run():
        client = Client(api, protocol)
        holders = client.front.holders
        client.send(DETAIL, DETAIL)
        await client.settle()
        client.send(ANOTHER)
        holders._total_bytes = len(ANOTHER)
        other = Client(api, protocol, peer="192.0.2.8")
        other.connection.front = client.front
        assert holders.enter(other.connection, "192.0.2.8")
        assert holders.hold(other.connection, 1)
        assert (client.wire.closing, other.wire.closing) == (True, False)
        assert holders.body_bytes == 1

    asyncio.run(run())


@BOTH_PATHS
def test_what_comes_while_a_request_is_answered_counts_and_is_released_with_its_answer(api, protocol):
    async def run():
        client = Client(api, protocol, burst="9")
        client.send(asking(b"/api/v1/companies?q=first"), asking(b"/api/v1/companies?q=second"))
        assert client.front.holders.body_bytes == len(asking(b"/api/v1/companies?q=second"))
        await client.until(lambda: len(client.wire.statuses) == 2)
        await client.settle()
        assert client.wire.statuses == [200, 200]
        assert client.front.holders.body_bytes == 0

    asyncio.run(run())


@BOTH_PATHS
def test_the_connection_of_a_proxy_is_never_paused(api, protocol):
    async def run():
        client = Client(api, protocol, TRUSTED_PROXIES="192.0.2.7")
        for address in ("198.51.100.1", "198.51.100.1", "198.51.100.2"):
            client.send(by(address, DETAIL))
            await client.settle()
        assert client.wire.statuses == [200, 429, 200]
        assert client.wire.is_read

    asyncio.run(run())


def test_a_process_that_ends_answers_what_waits_and_closes(api):
    async def run():
        client = Client(api)
        client.send(DETAIL, DETAIL, ANOTHER)
        await client.settle()
        client.connection.retire()
        await client.settle()
        assert client.wire.statuses == [200, 429, 429]
        assert client.wire.written.count(b"\r\nconnection: close\r\n") == 1
        assert client.wire.closing

    asyncio.run(run())


def test_a_client_that_leaves_during_its_pause_leaves_no_timer(api):
    async def run():
        client = Client(api)
        client.send(DETAIL, DETAIL)
        await client.settle()
        timer = client.connection._pause
        client.connection.connection_lost(None)
        assert timer.cancelled()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["requests", "assets", "probes", "unauthenticated"])
def test_the_refusal_of_an_address_pauses_and_that_of_an_account_does_not(name):
    limits = App(Config({})).fairness
    limiter = getattr(limits, name)
    while (verdict := limiter.take("192.0.2.7")).allowed:
        pass
    state = {}
    limits.refuse(name, verdict, state)
    assert 0 < state[PAUSE] <= 1
    while (verdict := limits.credentials.take("7")).allowed:
        pass
    limits.refuse("credentials", verdict)
    assert limits.refused == {name: 1, "credentials": 1}


def test_a_client_that_keeps_its_connection_and_waits_is_answered(demo):
    with Product(demo.data, "--workers", "1", rate_limit="60", rate_burst="1") as product:
        product.wait_ready()
        sent = asking(b"/api/v1/stats")
        with socket.create_connection(("127.0.0.1", product.port), timeout=60) as connection:
            connection.sendall(sent * 3)
            began, received = time.monotonic(), b""
            while received.count(b"HTTP/1.1 ") < 3:
                received += connection.recv(1 << 16)
        assert [int(each) for each in re.findall(rb"HTTP/1\.1 (\d+) ", received)] == [200, 429, 200]
        assert time.monotonic() - began > 0.5
