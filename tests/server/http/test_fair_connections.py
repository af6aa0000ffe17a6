"""One address cannot take connections, memory or time from the others; a real server and real addresses."""

import asyncio
import contextlib
import re
import socket
import struct

import pytest
import uvicorn
from uvicorn.server import ServerState

from muniment.config import Config
from muniment.kernel.fairness import Limiter
from muniment.server.app.app import App
from muniment.server.http.http_limits import LimitedProtocol
from muniment.server.http.incoming_body import FRAMING_BYTES
from services.ports import wait_until
from services.product import Product
from services.raw import exchange, status

VISITOR, ATTACKER, PROXY = "127.0.0.2", "127.0.0.3", "127.0.0.4"
POST = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s"
UNFINISHED = POST % (b"/api/mcp", 60_000, b"", b"{")
STATS = b"GET /api/v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def product(demo):
    few = {"process.sockets.MAX_CONNECTIONS": 60, "app.app.MAX_CONNECTIONS_PER_ADDRESS": 20}
    constants = {f"muniment.server.{name}": value for name, value in few.items()}
    with Product(demo.data, constants=constants, trusted_proxies=PROXY) as running:
        running.wait_ready()
        yield running


@pytest.fixture
def connect(product):
    with contextlib.ExitStack() as every:

        def connect(source):
            connection = every.enter_context(
                socket.create_connection(("127.0.0.1", product.port), timeout=60, source_address=(source, 0))
            )
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection

        yield connect


def answer(connection, sent=STATS):
    """Send a request and return the start of the response; empty if the connection has ended."""
    try:
        connection.sendall(sent)
        return connection.recv(1 << 16)
    except ConnectionError:
        return b""


def is_answered(connection, sent=STATS):
    return answer(connection, sent).startswith(b"HTTP/1.1 200 ")


def gauge(product, name):
    found = re.findall(rf"^{name}(?:\{{.*\}})? (\d+)", product.metrics(), re.MULTILINE)
    assert len(found) == product.workers
    return max(map(int, found))


def test_unfinished_requests_of_one_address_refuse_no_other_one(product, connect):
    honest = [connect(VISITOR) for _ in range(6)]
    assert all(map(is_answered, honest))
    for _ in range(150 * product.workers):
        connect(ATTACKER).sendall(UNFINISHED)
        assert is_answered(honest[0])
    assert all(map(is_answered, [*honest, connect(VISITOR)]))
    wait_until(lambda: gauge(product, "muniment_connections") <= 40, within_s=60, what="the cap of the address")
    assert product.metrics().count('muniment_limited_total{limit="connections"') <= product.workers


def test_unfinished_requests_of_several_addresses_refuse_no_visitor(product, connect):
    honest = [connect(VISITOR) for _ in range(3)]
    assert all(map(is_answered, honest))
    for number in range(100 * product.workers):
        connect(f"127.0.0.{10 + number % 4}").sendall(UNFINISHED)
    visitors = [connect(f"127.0.1.{number}") for number in range(1, 30)]
    assert all(map(is_answered, visitors))
    assert all(map(is_answered, honest))


def test_unfinished_requests_of_an_address_each_refuse_no_visitor(product, connect):
    for number in range(200 * product.workers):
        connect(f"127.1.{number % 250}.1").sendall(UNFINISHED)
        if number % 10 == 0:
            assert is_answered(connect(VISITOR))


def test_an_ended_request_is_told_why(product, connect):
    oldest = connect(ATTACKER)
    oldest.sendall(UNFINISHED)
    for _ in range(60 * product.workers):
        connect(ATTACKER).sendall(UNFINISHED)
    told = oldest.recv(1 << 16)
    assert told.startswith(b"HTTP/1.1 429 ")
    assert b"\r\nretry-after: 1\r\n" in told
    assert b"Too many connections from this address." in told


def test_a_proxy_does_not_count_but_the_clients_that_it_names_do(product, connect):
    def named(client, sent=POST % (b"/api/mcp", 60_000, b"X-Forwarded-For: %s\r\n", b"{")):
        return sent % client

    for _ in range(25):
        assert is_answered(connect(PROXY)), "its idle connections do not count for the proxy"
    attack = [connect(PROXY) for _ in range(25 * product.workers)]
    for connection in attack:
        connection.sendall(named(b"198.51.100.7"))
    assert gauge(product, "muniment_largest_holder_connections") <= 20
    for number in range(8):
        read = b"GET /companies?q=%d HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 198.51.100.8\r\n\r\n" % number
        assert is_answered(connect(PROXY), read)


def test_nothing_is_kept_of_what_has_closed(product):
    with contextlib.ExitStack() as every:
        for number in range(30):
            connection = every.enter_context(
                socket.create_connection(("127.0.0.1", product.port), source_address=(f"127.0.2.{1 + number}", 0))
            )
            connection.sendall(POST % (b"/companies", 60_000, b"", b"x" * 1000))
        wait_until(lambda: gauge(product, "muniment_body_bytes") > 0, within_s=60, what="bytes that are held")
    wait_until(lambda: gauge(product, "muniment_holders") == 1, within_s=60, what="the holders being forgotten")
    assert gauge(product, "muniment_body_bytes") == 0
    assert gauge(product, "muniment_unfinished_requests") == 0


def test_a_dripped_body_ends_at_the_deadline(demo):
    constants = {"muniment.server.http.http_limits.DEADLINE_S": 1}
    with Product(demo.data, constants=constants) as product, contextlib.ExitStack() as every:
        product.wait_ready()
        dripping = []
        for path in (b"/companies", b"/api/mcp", b"/accounts/login/"):
            dripping.append(every.enter_context(socket.create_connection(("127.0.0.1", product.port), timeout=0.1)))
            dripping[-1].sendall(POST % (path, 60_000, b"", b"{"))
        told = dict.fromkeys(dripping, b"")
        while not all(told.values()):
            for connection in [each for each in dripping if not told[each]]:
                connection.sendall(b" ")
                with contextlib.suppress(TimeoutError):
                    told[connection] = connection.recv(1 << 16)
        for refused in told.values():
            assert refused.startswith(b"HTTP/1.1 408 ")
            assert b"within 1 s" in refused


@pytest.mark.parametrize("path", [b"/companies", b"/api/v1/stats", b"/api/mcp", b"/api/manage/mcp"])
def test_over_the_rate_a_body_is_not_read(demo, path):
    with Product(demo.data, "--workers", "1", rate_limit="1", rate_burst="2") as product:
        product.wait_ready()
        whole, part = (POST % (path, size, b"Accept: application/json\r\n", b"{}") for size in (2, 1_000_000))
        for _ in range(3):
            exchange(product.port, whole)
        (refused,) = exchange(product.port, part)
        assert status(refused) == 429
        assert re.search(rb"\r\nconnection: close\r\n", refused)
        assert re.search(rb"\r\nretry-after: \d+\r\n", refused)


def test_over_the_rate_a_call_that_does_not_arrive_at_once_is_refused(demo):
    with Product(demo.data, "--workers", "1", rate_limit="1", rate_burst="1") as product:
        product.wait_ready()
        sent = POST % (b"/api/mcp", 100, b"", b"{")
        exchange(product.port, POST % (b"/api/mcp", 2, b"", b"{}"))
        (refused,) = exchange(product.port, sent)
        assert status(refused) == 429
        assert re.search(rb"\r\nconnection: close\r\n", refused)


@pytest.mark.parametrize("value", [b"gzip, chunked", b"identity", b"chunked\r\nTransfer-Encoding: identity", b"x"])
def test_only_a_chunked_transfer_is_read(product, value):
    head = b"POST /companies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: %s\r\n\r\n" % value
    (refused,) = exchange(product.port, head + b"0\r\n\r\n")
    assert status(refused) == 400


def test_chunk_extensions_count(product):
    head = b"POST /companies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    (refused,) = exchange(product.port, head + b"x" * (2 << 20))
    assert status(refused) == 413
    trailers = b"POST /companies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 20_000
    (refused,) = exchange(product.port, trailers)
    assert status(refused) in {413, 431}


def test_clients_that_hang_up_leave_no_error_in_the_log(product):
    before = len(product.output())
    for path in (b"/companies", b"/companies/quillmere", b"/exports/companies.jsonl.gz", b"/api/v1/companies"):
        sent = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path
        for _ in range(12):
            with socket.create_connection(("127.0.0.1", product.port)) as leaving:
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                leaving.sendall(sent * 4)
                if _ % 2:
                    leaving.recv(10)
    assert product.get("/companies").status == 200
    written = product.output()[before:]
    assert "Traceback" not in written
    assert '"level":"error"' not in written.lower()


class Recorder(App):
    """Reads a request to its end, and records its headers."""

    async def __call__(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        self.headers = scope["headers"]
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Line(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self, client=None):
        super().__init__({"socket": None, "peername": (client, 1)} if client else None)
        self.written, self.closing = b"", False

    def write(self, data):
        self.written += data

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    def get_write_buffer_size(self):
        return 0

    def can_write_eof(self):
        return False

    def resume_reading(self):
        pass


def open_connection(front, client=None):
    config = uvicorn.Config(front, http=LimitedProtocol, lifespan="off")
    config.load()
    connection, line = LimitedProtocol(config, ServerState(), {}, asyncio.get_running_loop()), Line(client)
    connection.connection_made(line)
    return connection, line


def test_an_address_that_opens_too_many_connections_is_refused_before_anything_is_kept_for_it():
    async def run():
        front = Recorder(Config({"MUNIMENT_TRUSTED_PROXIES": PROXY}))
        front.fairness.new_connections = Limiter(60, 3)
        taken = [open_connection(front, ATTACKER) for _ in range(3)]
        refused, line = open_connection(front, ATTACKER)
        head, _, body = line.written.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1\r\n" in head.lower()
        assert b"keep-alive" in body
        assert line.closing
        assert refused not in refused.connections
        refused.data_received(UNFINISHED)
        refused.connection_lost(None)
        assert front.fairness.refused == {"new_connections": 1}
        others = [open_connection(front, each) for each in (VISITOR, *[PROXY] * 9)]
        assert [each.written for _, each in (*taken, *others) if each.closing or each.written] == []

    asyncio.run(run())


def test_a_trailer_never_becomes_a_header():
    async def run():
        front = Recorder(Config({}))
        connection, line = open_connection(front)
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.data_received(b"1\r\nx\r\n0\r\nCookie: session=other\r\nHost: y\r\n\r\n")
        await connection._answering.message_event.wait()
        await asyncio.gather(*connection.tasks)
        assert line.written.startswith(b"HTTP/1.1 204 ")
        assert front.headers == [(b"host", b"x"), (b"transfer-encoding", b"chunked")]

    asyncio.run(run())


def test_a_body_that_is_all_chunk_extension_is_refused_while_it_arrives():
    async def run():
        connection, line = open_connection(Recorder(Config({})))
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.data_received(b"1;" + b"x" * (FRAMING_BYTES - 2))
        assert line.written == b""
        connection.data_received(b"x")
        assert line.written.startswith(b"HTTP/1.1 413 ")
        connection.connection_lost(None)
        await asyncio.gather(*connection.tasks)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("line", "is_told"), [(b"Expect: 100-continue", True), (b"EXPECT: 100-Continue", True), (b"Accept: */*", False)]
)
def test_a_client_that_waits_before_it_sends_a_body_is_told_to_send_it(line, is_told):
    async def run():
        connection, wire = open_connection(Recorder(Config({})))
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n%s\r\n\r\n" % line)
        await asyncio.sleep(0)
        assert wire.written == (b"HTTP/1.1 100 Continue\r\n\r\n" if is_told else b"")
        connection.data_received(b"{}")
        await asyncio.gather(*connection.tasks)
        assert b"HTTP/1.1 204 " in wire.written

    asyncio.run(run())


def test_slow_bodies_are_charged_to_their_address(monkeypatch):
    async def run():
        front = App(Config({}))
        for number in range(60):
            connection, line = open_connection(front)
            connection.peer = connection._address = "192.0.2.7"
            connection.data_received(UNFINISHED)
            began = connection.loop.time()
            monkeypatch.setattr(connection, "heard_at", began)
            connection._body.begin(began - 29, is_upload=False)
            connection.connection_lost(None)
            assert line.written == b"", number
        assert not front.fairness.body_time.peek("192.0.2.7").allowed
        assert front.fairness.body_time.peek("192.0.2.8").allowed

    asyncio.run(run())
