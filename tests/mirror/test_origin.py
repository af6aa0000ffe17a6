"""Requests to a registry that is silent, slow, restarted or hostile."""

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Event, Thread

import pytest

from muniment.kernel.problems import BadRequest, Unavailable
from muniment.mirror import origin
from muniment.mirror.origin import File, Origin, Stopped, origin_address
from services.origin import Given

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://registry.example", "https://registry.example"),
        (" https://Registry.example/ ", "https://registry.example"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_an_address_of_a_registry_is_one_without_a_path(given, address):
    assert origin_address(given) == address


@pytest.mark.parametrize(
    "given",
    [
        "registry.example",
        "ftp://registry.example",
        "https://a:b@registry.example",
        "https://registry.example/x",
        "https://registry.example?x",
        "https://registry.example:port",
    ],
)
def test_another_address_is_refused(given):
    with pytest.raises(BadRequest, match="not the address of a registry"):
        origin_address(given)


def ask(site, pauses, **options):
    line = Origin(site.address, wait=pauses, **options)
    try:
        return line.get("/api/v1/exports")
    finally:
        line.close()


def test_one_connection_is_kept(site, pauses):
    line = Origin(site.address, wait=pauses)
    ports = []
    site.answers["/api/v1/exports"] = lambda request, given: ports.append(request.client_address[1]) or given
    for _ in range(3):
        assert line.get("/api/v1/exports").edition == 3
    line.close()
    assert len(set(ports)) == 1


def test_a_redirect_is_not_followed_and_said(site, pauses):
    site.answers["/api/v1/exports"] = lambda *_: Given(302, b"", {"Location": "http://169.254.169.254/latest"})
    with pytest.raises(BadRequest, match=r"redirects to http://169\.254\.169\.254/latest"):
        ask(site, pauses)


def test_an_answer_that_is_none_of_a_registry_is_refused(site, pauses):
    site.answers["/api/v1/exports"] = lambda *_: Given(404, b"")
    with pytest.raises(BadRequest, match="answers 404"):
        ask(site, pauses)


def test_an_answer_has_a_limit(site, pauses, monkeypatch):
    monkeypatch.setattr(origin, "MAX_ANSWER_BYTES", 1_000)
    site.answers["/api/v1/exports"] = lambda *_: Given(200, b" " * 1_001)
    with pytest.raises(BadRequest, match="larger than"):
        ask(site, pauses)


def test_a_file_has_a_limit(site, pauses, tmp_path):
    line = Origin(site.address, wait=pauses)
    with pytest.raises(BadRequest, match="more than a copy may have"):
        line.download(File("/exports/a", origin.MAX_FILE_BYTES + 1, ""), tmp_path / "a")


def test_a_file_that_is_not_there_is_no_registrys(site, pauses, tmp_path):
    line = Origin(site.address, wait=pauses)
    with pytest.raises(BadRequest, match="answers 404"):
        line.download(File("/exports/a", 10, ""), tmp_path / "a")


@pytest.mark.parametrize(
    ("asked", "waited"),
    [("7", 7.0), ("999999999", origin.LONGEST_ASKED_PAUSE_S), ("soon", 1.0), ("", 1.0)],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_that_is_asked_for_is_made_up_to_a_limit(site, pauses, status, asked, waited):
    answers = [Given(status, b"", {"Retry-After": asked})]
    site.answers["/api/v1/exports"] = lambda _, given: answers.pop() if answers else given
    told = []
    assert ask(site, pauses, tells=told.append).status == 200
    assert pauses == [waited]
    assert told == [f"{site.address} answers {status}; trying again", f"{site.address} answers again"]


def test_a_pause_may_be_asked_for_as_a_date(site, pauses):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    answers = [Given(503, b"", {"Retry-After": later})]
    site.answers["/api/v1/exports"] = lambda _, given: answers.pop() if answers else given
    ask(site, pauses)
    assert 90 < pauses[0] <= 100


def test_an_origin_that_does_not_answer_is_given_up_after_some_attempts(pauses):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        line = Origin(f"http://127.0.0.1:{closed.getsockname()[1]}", wait=pauses)
        with pytest.raises(Unavailable, match="does not answer"):
            line.get("/api/v1/exports")
    assert len(pauses) == origin.TRIES - 1


def test_a_command_that_follows_asks_on_until_it_is_ended(site, pauses):
    pauses.most = 30
    site.answers["/api/v1/exports"] = lambda *_: Given(500, b"")
    with pytest.raises(Stopped):
        ask(site, pauses, keeps_trying=True)
    assert max(pauses) == origin.LONGEST_PAUSE_S
    with pytest.raises(Stopped):
        Origin(site.address, wait=lambda _: True).pause(1)


def test_a_silent_origin_is_given_up(site, pauses, held, monkeypatch):
    monkeypatch.setattr(origin, "SILENT_S", 0.1)
    monkeypatch.setattr(origin, "TRIES", 2)
    site.answers["/api/v1/exports"] = lambda *_: held.wait(20) and None
    with pytest.raises(Unavailable, match="does not answer in time"):
        ask(site, pauses)


def test_a_signal_ends_a_request_that_is_waited_for(site, pauses, held):
    told, asked = [], Event()
    line = Origin(site.address, keeps_trying=True, wait=pauses, tells=told.append)

    def silent(*_):
        asked.set()
        held.wait(20)

    def interrupt():
        asked.wait(20)
        line.interrupt()

    site.answers["/api/v1/exports"] = silent
    signal = Thread(target=interrupt)
    signal.start()
    with pytest.raises(Stopped):
        line.get("/api/v1/exports")
    signal.join()
    assert not held.is_set(), "the origin is silent still"
    assert (told, pauses) == ([], []), "it is not asked again"
    line.close()
    line.interrupt()  # between two requests there is nothing to end


def test_a_signal_while_a_command_connects_is_not_lost(site, pauses, monkeypatch):
    line, connect = Origin(site.address, wait=pauses), origin._connect

    def interrupted(*place):
        line.interrupt()
        return connect(*place)

    monkeypatch.setattr(origin, "_connect", interrupted)
    with pytest.raises(Stopped):
        line.get("/api/v1/exports")
    assert pauses == []
    line.close()


def test_an_origin_that_answers_byte_by_byte_is_given_up(site, pauses, held, monkeypatch):
    monkeypatch.setattr(origin, "ANSWER_S", 0.3)
    monkeypatch.setattr(origin, "TRIES", 2)

    def drip(request, _):
        request.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not held.wait(0.01):
            try:
                request.wfile.write(b"x")
            except OSError:
                break

    site.answers["/api/v1/exports"] = drip
    with pytest.raises(Unavailable, match="does not answer in time"):
        ask(site, pauses)


def test_a_certificate_that_is_not_trusted_is_no_reason_to_ask_again(tmp_path, pauses):
    import ssl
    import threading

    from services.site import certificate_for

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_for("registry.example", tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            line, _ = listener.accept()
            try:
                context.wrap_socket(line, server_side=True)
            except OSError:
                line.close()

        threading.Thread(target=serve, daemon=True).start()
        line = Origin(f"https://127.0.0.1:{listener.getsockname()[1]}", wait=pauses)
        with pytest.raises(BadRequest, match="no certificate"):
            line.get("/api/v1/exports")
    assert pauses == []
