"""Requests to one address share a connection, if its server keeps it and has answered completely."""

import socket
import threading

import pytest

from muniment.outbound.fetching import Channel

HERE = {"resolve": lambda *_: ["127.0.0.1"], "is_allowed": lambda _: True, "deadline_s": 5.0}
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


class Server:
    """Answers each request with the next of its answers; None closes the connection first."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.connections, self.requests = 0, []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while self._answers:
            line, _ = self._listener.accept()
            self.connections += 1
            with line:
                while self._answers:
                    request = line.recv(10_000)
                    answer = self._answers.pop(0)
                    if not request or answer is None:
                        break
                    self.requests.append(request)
                    line.sendall(answer)
                else:
                    line.recv(1)

    def close(self):
        self._listener.close()


@pytest.fixture
def answering():
    made = []

    def start(*answers):
        made.append(Server(*answers))
        return made[-1]

    yield start
    for server in made:
        server.close()


def statuses(server, count=2):
    with Channel("http://hooks.example.com/in", port=server.port, **HERE) as channel:
        return [channel.post(b"{}", {"X-Number": str(number)}).status for number in range(count)]


def lasts(head, body=b""):
    return b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body


@pytest.mark.parametrize(
    "answer",
    [
        EMPTY,
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
        lasts(b"Content-Length: 2\r\n", b"ok"),
        lasts(b"Content-Length: 0\r\n"),
        lasts(b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
    ],
)
def test_a_connection_is_kept_after_a_complete_answer(answering, answer):
    server = answering(answer, answer)
    assert len(set(statuses(server))) == 1
    assert server.connections == 1
    assert all(b"\r\nConnection: keep-alive\r\n" in request for request in server.requests)


@pytest.mark.parametrize(
    "answer",
    [
        lasts(b"Content-Length: 2\r\nConnection: close\r\n", b"ok"),
        lasts(b"Content-Length: 1\r\n", b"ok"),
        lasts(b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"ok"),
        lasts(b"Transfer-Encoding: chunked\r\n", b"2\r\nok\r\n0\r\n\r\n"),
        lasts(b"Content-Length: 600\r\n", b"x" * 550),
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        EMPTY + b"left",
    ],
)
def test_a_connection_is_left_if_its_answer_may_not_have_ended(answering, answer):
    server = answering(answer, None, answer, None)
    assert statuses(server) == [int(answer.split()[1])] * 2
    assert len(server.requests) == 2
    assert server.connections >= 2


def test_a_connection_that_the_server_has_closed_is_opened_again(answering):
    server = answering(EMPTY, None, EMPTY)
    assert statuses(server) == [204, 204]
    assert server.connections == 2


def test_a_server_that_answers_nothing_at_all_fails_after_one_more_connection(answering):
    server = answering(EMPTY, None, None)
    with pytest.raises(Exception, match="not HTTP"):
        statuses(server)
    assert server.connections == 2


def test_a_request_that_is_not_answered_in_time_is_not_sent_again(answering):
    server = answering(EMPTY, b"", EMPTY)
    with Channel("http://hooks.example.com/in", port=server.port, **{**HERE, "deadline_s": 0.5}) as channel:
        assert channel.post(b"{}", {}).status == 204
        with pytest.raises(TimeoutError):
            channel.post(b"{}", {})
    assert len(server.requests) == 2
