"""Known heads: whatever is sent, and however, the answers are the same with the fast path and without it."""

import asyncio
import random
import re
from itertools import count, pairwise, takewhile

import pytest
import uvicorn
from uvicorn.server import ServerState

from make.conversations import HEADS, ODD_LINES, TARGETS, asking, calling, conversation
from make.published import company
from make.rest import SCHEMA
from muniment.api.application import Api
from muniment.config import Config
from muniment.server.app.app import App
from muniment.server.app.public_tools import mount_public
from muniment.server.fastpath.heads import MAX_BLOCK_BYTES, MAX_KNOWN, KnownHeads, parsed
from muniment.server.fastpath.protocol import FastPathProtocol
from muniment.server.http.http_limits import LimitedProtocol
from muniment.store.reader import Reader
from services.raw import status

PLAIN = b"Host: registry.example\r\nAccept: */*\r\n\r\n"
TURNS = 100
"""Of the event loop, in which a request that is not whole has its answer, if it has one; a whole one is waited for."""


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.closing = self.ended = False

    def write(self, data):
        assert not self.ended
        self.written += data

    def writelines(self, pieces):
        self.write(b"".join(pieces))

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    abort = close

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.ended = True

    def get_write_buffer_size(self):
        return 0

    def get_extra_info(self, name, default=None):
        return ("192.0.2.1", 443) if name == "peername" else default

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Watched(FastPathProtocol):
    """The fast path, which checks that a connection really is between two requests when it takes that as known."""

    repeats = 0

    def _repeat(self, request):
        assert self.has_asked
        assert not self.is_unfinished
        assert not self._in_head
        assert not self._in_body
        assert not self._is_over
        assert not self.is_busy
        assert not self.flow.write_paused
        assert not self.is_retiring
        assert not self._is_proxied
        is_repeated = super()._repeat(request)
        type(self).repeats += is_repeated
        return is_repeated


class Forgetful(FastPathProtocol):
    """The fast path without known heads."""

    def _answer_known(self, _data):
        return False


class Server:
    """One way to serve an API, without a socket."""

    def __init__(self, protocol, api, **settings):
        usual = {"MUNIMENT_RATE_LIMIT": "off", "MUNIMENT_BASE_URL": "http://registry.example"}
        self.front = App(Config(usual | settings))
        self.front.open_api(api)
        self.front.update_edition(1)
        self._protocol = protocol
        self._config = uvicorn.Config(
            self.front, http=protocol, lifespan="off", access_log=False, date_header=False, server_header=False
        )
        self._config.load()
        self._state = ServerState()

    def connect(self):
        connection = self._protocol(self._config, self._state, {}, asyncio.get_running_loop())
        connection.connection_made(Wire())
        return connection

    async def answers(self, chunks):
        """Send *chunks*; return what is written for each of them, and whether the connection is closed then."""
        connection = self.connect()
        wire, found = connection.transport, []
        for chunk in chunks:
            if wire.closing:
                break
            wire.written = b""
            connection.data_received(chunk)
            for turn in count():
                await asyncio.sleep(0)
                waits = connection.cycle is None or connection.cycle.more_body  # for the rest of the request
                # What follows on a connection that closes is not answered.
                if not connection.is_busy or wire.closing or (waits and turn > TURNS):
                    break
            if found and found[-1][1]:
                assert wire.written == b"", "nothing is answered after a refusal"
            else:
                found.append((_masked(wire.written), wire.closing or wire.ended))
        connection.connection_lost(None)
        await asyncio.sleep(0)
        return found


def _masked(written):
    return re.sub(rb"\r\n(date|x-request-id): (?!of-the-client)[^\r]+", rb"\r\n\1: masked", written)


@pytest.fixture
def ways(rest, request):
    """Return the fast path, the same without known heads, and the ordinary path, each with a cache of its own."""
    rest.publish(*(company(number) for number in range(1, 8)))

    def make(**settings):
        servers = []
        for protocol in (Watched, Forgetful, LimitedProtocol):
            reader = Reader(rest.reader.path)
            api = Api(reader, Config({}, data=rest.reader.path.parent), SCHEMA)
            request.addfinalizer(reader.close)
            servers.append(Server(protocol, api, **settings))
        return servers

    return make


async def _compare(ways, conversations):
    servers = ways()
    for each in servers:
        mount_public(each.front, each.front.api.reader, each.front.api.schema)
    for chunks in conversations:
        first, second, third = [await each.answers(chunks) for each in servers]
        assert first == second, chunks
        assert first == third, chunks
    return servers[0]


def _compare_generated(ways, count, seed):
    chance, before = random.Random(seed), Watched.repeats
    fast = asyncio.run(_compare(ways, (conversation(chance) for _ in range(count))))
    assert len(fast.front.fast_path.heads.by_block) >= len(HEADS)
    assert fast.front.metrics.fast_path["api", 200] > count
    assert Watched.repeats - before > count // 3


def _compare_calls(ways, count, seed):
    chance = random.Random(seed)
    fast = asyncio.run(_compare(ways, (calling(chance) for _ in range(count))))
    assert fast.front.metrics.fast_path["api", 200] > count
    assert fast.front.metrics._requests["mcp", "POST", "200"] > count


def test_generated_calls_of_tools_are_answered_as_on_the_ordinary_path(ways):
    _compare_calls(ways, 40, 24)


@pytest.mark.proof
def test_thousands_of_generated_calls_of_tools_are_answered_as_on_the_ordinary_path(ways):
    _compare_calls(ways, 4_000, 2027)  # of seven requests in the mean


def test_hundreds_of_generated_conversations_are_answered_as_on_the_ordinary_path(ways):
    _compare_generated(ways, 300, 23)


@pytest.mark.proof
def test_a_hundred_thousand_generated_requests_are_answered_as_on_the_ordinary_path(ways):
    _compare_generated(ways, 17_000, 2026)  # of seven requests in the mean


def test_a_known_request_is_answered_in_two_pieces_cut_anywhere(ways):
    asked = asking(TARGETS[0], HEADS[1])
    cut = ([asked] * 3 + [asked[:place], asked[place:], asked] for place in range(1, len(asked)))
    asyncio.run(_compare(ways, cut))


def test_known_requests_are_answered_in_one_piece(ways):
    asked = [asking(target, HEADS[1]) for target in TARGETS]
    asyncio.run(_compare(ways, [[*asked, b"".join(asked), b"\r\n".join(asked), *asked]] * 2))


def test_a_request_with_a_known_head_needs_no_parser(ways):
    async def run():
        server, *_ = ways()
        connection = server.connect()
        for target in TARGETS * 2:
            connection.data_received(asking(target, HEADS[0]))
            await asyncio.sleep(0)
        connection.parser = None  # whatever is asked of it fails
        connection.transport.written = b""
        for target in TARGETS:
            connection.data_received(asking(target, HEADS[0]))
        assert connection.transport.written.count(b"HTTP/1.1 200 OK\r\n") == len(TARGETS)

    asyncio.run(run())


def test_a_connection_that_is_retired_closes_after_a_known_request(ways):
    async def run():
        for server in ways():
            connection = server.connect()
            for _ in range(4):
                connection.data_received(asking(TARGETS[0], HEADS[0]))
                await asyncio.sleep(0.01)
            connection.retire()
            connection.transport.written = b""
            connection.data_received(asking(TARGETS[0], HEADS[0]))
            await asyncio.sleep(0.01)
            assert b"\r\nconnection: close\r\n" in connection.transport.written
            assert connection.transport.closing

    asyncio.run(run())


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in ODD_LINES
        if line.partition(b":")[0]
        not in {b"Accept-Encoding", b"X-Forwarded-For", b"If-None-Match", b"Proxy-Connection"}
    ],
)
def test_a_head_that_is_secret_or_unusual_is_not_remembered(line):
    assert parsed(line + b"\r\n" + PLAIN) is None


@pytest.mark.parametrize(
    "block",
    [
        b"\r\n",
        b"Accept: */*\r\n\r\n",
        PLAIN[:-2],
        PLAIN + b"GET / HTTP/1.1\r\n" + PLAIN,
        PLAIN + b"hello\r\n\r\n",
        b"X: " + b"y" * MAX_BLOCK_BYTES + b"\r\n" + PLAIN,
        b"X: y\r\n" * 70 + PLAIN,
        b"".join(b"X%d: y\r\n" % number for number in range(70)) + PLAIN,
    ],
)
def test_a_head_without_host_with_more_than_a_request_or_too_large_is_not_remembered(block):
    assert parsed(block) is None


def test_the_number_of_remembered_heads_is_bounded():
    known = KnownHeads()
    blocks = [b"X: %d\r\n" % number + PLAIN for number in range(MAX_KNOWN + 3)]
    for block in blocks:
        known.learn(block)
    assert list(known.by_block) == blocks[3:]


def test_a_head_is_remembered_when_it_comes_a_second_time_in_a_row(ways):
    async def run():
        server, *_ = ways()
        connection = server.connect()
        asked = [asking(TARGETS[0], (*HEADS[0], b"X: %d" % number)) for number in range(5)]
        known = server.front.fast_path.heads.by_block
        connection.data_received(asking(TARGETS[0], HEADS[0]))
        await asyncio.sleep(0.01)
        for first, second in pairwise(asked):
            connection.data_received(first)
            connection.data_received(second)
            await asyncio.sleep(0)
        assert len(known) == 3

    asyncio.run(run())


# ---------------------------------------------------------------------- whole requests that are repeated


@pytest.fixture
def fast(ways):
    """Return a function that makes a server with the fast path, by its settings."""
    return lambda **settings: ways(**settings)[0]


async def _settled(connection):
    for _ in takewhile(lambda _: connection.is_busy, count()):
        await asyncio.sleep(0)


async def _repeating(server, asked):
    """Return a connection, after *asked* was sent so often that its bytes are remembered, and how to ask again."""
    connection = server.connect()

    async def ask(request=asked):
        connection.transport.written = b""
        connection.data_received(request)
        await _settled(connection)
        return connection.transport.written

    for _ in range(5):
        await ask()
    return connection, ask


@pytest.mark.parametrize("lines", [HEADS[0], HEADS[1], (*HEADS[0], b'If-None-Match: "other"')])
def test_a_request_whose_bytes_were_answered_before_is_looked_up_by_them(fast, lines):
    async def run():
        server, asked = fast(), asking(TARGETS[2], lines)
        connection, ask = await _repeating(server, asked)
        assert list(server.front.api.cache.by_request) == [asked]
        first, hits = await ask(), server.front.api.hits
        connection._answer_known = None  # whatever is asked of it fails
        assert _masked(await ask()) == _masked(first)
        assert server.front.api.hits == hits + 1

    asyncio.run(run())


def test_a_repeated_condition_is_answered_by_304_until_the_document_changes(fast, rest):
    async def run():
        server = fast()
        _, ask = await _repeating(server, asking(TARGETS[2], HEADS[0]))
        tag = re.search(rb"etag: ([^\r]+)", await ask())[1]
        conditional = asking(TARGETS[2], (*HEADS[0], b"If-None-Match: " + tag))
        _, ask = await _repeating(server, conditional)
        assert conditional in server.front.api.cache.by_request
        assert (await ask()).startswith(b"HTTP/1.1 304 ")
        rest.publish(company(1, day=1, name="Another name"))
        server.front.api.reader.refresh()
        assert b"Another name" in await ask()

    asyncio.run(run())


def test_a_repeated_request_shows_what_was_published_since(fast, rest):
    async def run():
        server = fast()
        _, ask = await _repeating(server, asking(TARGETS[2], HEADS[0]))
        for name in ("Another name", "A third name"):
            rest.publish(company(1, day=1, name=name))
            server.front.api.reader.refresh()
            for _ in range(4):
                assert name.encode() in await ask()
        rest.unlist("company", "company-1")
        server.front.api.reader.refresh()
        assert (await ask()).startswith(b"HTTP/1.1 404 ")

    asyncio.run(run())


def test_a_repeated_request_is_charged_and_refused_as_others_are(fast):
    async def run():
        server = fast(MUNIMENT_RATE_LIMIT="60", MUNIMENT_RATE_BURST="10")
        _, ask = await _repeating(server, asking(TARGETS[2], HEADS[0]))
        found = [await ask() for _ in range(6)]
        assert [int(re.search(rb'"burst";r=(\d+)', each)[1]) for each in found] == [4, 3, 2, 1, 0, 0]
        assert [status(each) for each in found] == [200] * 5 + [429]

    asyncio.run(run())


@pytest.mark.parametrize("setting", [{"MUNIMENT_LOG_REQUESTS": "on"}, {"MUNIMENT_TRUSTED_PROXIES": "192.0.2.1"}])
def test_through_a_proxy_and_with_a_request_log_no_request_is_taken_by_its_bytes(fast, setting):
    async def run():
        server = fast(**setting)
        connection, ask = await _repeating(server, asking(TARGETS[2], HEADS[0]))
        assert not connection._is_between
        assert not server.front.api.cache.by_request
        assert (await ask()).startswith(b"HTTP/1.1 200 ")

    asyncio.run(run())


@pytest.mark.parametrize("event", ["pause_writing", "retire"])
def test_a_connection_that_cannot_be_answered_at_once_takes_no_request_by_its_bytes(fast, event):
    async def run():
        connection, _ask = await _repeating(fast(), asking(TARGETS[2], HEADS[0]))
        assert connection._is_between
        getattr(connection, event)()
        assert not connection._is_between
        connection._repeat, connection.transport.written = None, b""  # whatever is asked of the first fails
        connection.data_received(asking(TARGETS[2], HEADS[0]))
        connection.resume_writing()
        await _settled(connection)
        assert connection.transport.written.count(b"HTTP/1.1 200 OK") == 1

    asyncio.run(run())
