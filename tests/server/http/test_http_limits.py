"""What cannot be read, or comes too slowly, is refused in the same words as everything else."""

import contextlib
import json
import re
import socket

import pytest

from make.hostile import ODD, SHAPES, SMUGGLING
from services.ports import wait_until
from services.product import Product
from services.raw import exchange, status


@pytest.fixture(scope="module")
def product(demo):
    constants = {
        "muniment.server.http.http_limits.HEADER_TIMEOUT_S": 1,
        "muniment.server.http.http_limits.PAUSE_S": 1,
        "muniment.server.process.sockets.MAX_CONNECTIONS": 60,
    }
    with Product(demo.data, constants=constants) as running:
        running.wait_ready()
        yield running


def envelope(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


@pytest.mark.parametrize("sent", SHAPES, ids=[f"shape {number}" for number in range(len(SHAPES))])
def test_a_hostile_shape_is_refused_with_the_envelope_and_the_connection_ends(product, sent):
    answers = exchange(product.port, sent, answers=3, hang_up=True)
    assert answers, "the answer was lost"
    refused = answers[-1]
    assert 400 <= status(refused) < 500
    if b" 404 " not in refused[:16] and b" 405 " not in refused[:16]:
        assert envelope(refused)["code"] == "bad_request"
    assert set(envelope(refused)) == {"code", "message", "hint"}
    assert re.search(rb"\r\nx-request-id: \S+\r\n", refused)


@pytest.mark.parametrize("sent", SMUGGLING, ids=[f"smuggling {number}" for number in range(len(SMUGGLING))])
def test_nothing_is_smuggled_behind_a_body(product, sent):
    answers = exchange(product.port, sent + b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", answers=4, hang_up=True)
    assert len(answers) <= 2
    assert all(b"200 OK" not in answer[:16] and b"/smuggled" not in answer for answer in answers)


@pytest.mark.parametrize("sent", ODD, ids=[f"odd {number}" for number in range(len(ODD))])
def test_an_odd_address_never_breaks_anything(product, sent):
    (answer,) = exchange(product.port, sent)
    assert status(answer) < 500
    assert b"Traceback" not in answer


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    ],
    ids=["long address", "long header", "many headers", "no host", "two hosts"],
)
def test_each_limit_has_its_own_status(product, sent, expected):
    (answer,) = exchange(product.port, sent)
    assert status(answer) == expected
    assert re.search(rb"(?i)\r\nconnection: close\r\n", answer)


def test_an_honest_request_before_a_broken_one_is_answered_first(product):
    answers = exchange(product.port, b"GET /companies HTTP/1.1\r\nHost: x\r\n\r\nNONSENSE\r\n\r\n", answers=2)
    assert status(answers[0]) == 200


def test_headers_that_do_not_come_in_time_are_refused(product):
    (answer,) = exchange(product.port, b"GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    assert status(answer) == 408


def test_a_body_that_stops_coming_is_refused_and_holds_no_thread(product):
    slow = b"POST /companies HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"
    waiting = [socket.create_connection(("127.0.0.1", product.port), timeout=60) for _ in range(8)]
    for connection in waiting:
        connection.sendall(slow)
    assert product.get("/companies").status == 200
    for connection in waiting:
        assert connection.recv(16).startswith(b"HTTP/1.1 408 ")
        connection.close()


def open_connections(product):
    found = re.findall(r"^muniment_connections(?:\{.*\})? (\d+)", product.metrics(), re.MULTILINE)
    assert len(found) == product.workers
    return max(map(int, found))


@pytest.mark.parametrize("rest", [b"GET / HT", b"POST /companies HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"])
def test_a_client_that_reads_nothing_is_closed_also_if_its_next_request_is_unfinished(product, rest):
    wait_until(lambda: open_connections(product) == 1, within_s=60, what="earlier connections being closed")
    with socket.socket() as unread:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unread.connect(("127.0.0.1", product.port))
        unread.sendall(b"GET /api/v1/companies?pageSize=100 HTTP/1.1\r\nHost: x\r\n\r\n" * 150 + rest)
        wait_until(lambda: open_connections(product) > 1, within_s=60, what="the connection")
        wait_until(lambda: open_connections(product) == 1, within_s=30, what="the end of the connection")


def test_a_connection_that_never_asks_is_closed(product):
    with socket.create_connection(("127.0.0.1", product.port), timeout=60) as silent:
        assert silent.recv(1) == b""


def test_beyond_the_cap_the_most_idle_connections_go_and_honest_ones_stay(product):
    with contextlib.ExitStack() as every:

        def connect():
            return every.enter_context(socket.create_connection(("127.0.0.1", product.port), timeout=60))

        def is_answered(connection):
            connection.sendall(b"GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")

        honest = connect()
        assert is_answered(honest)
        for _ in range(40 * product.workers):
            connect()
        for _ in range(60 * product.workers):
            connect()
            assert is_answered(honest)

        wait_until(lambda: open_connections(product) <= 60, within_s=60, what="the cap being kept")
