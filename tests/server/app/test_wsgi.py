"""Pages in threads: whose turn it is, and whose CPU time."""

import asyncio
import threading

import pytest

from muniment.kernel import fairness
from muniment.kernel.fairness import ACCOUNT, Fairness
from muniment.kernel.problems import TooLarge
from muniment.server.app.threads import Bridge
from muniment.server.app.wsgi import WSGIApplication
from muniment.store.database import patience
from muniment.store.tables.outcome import STATE, Outcome


@pytest.fixture
def limits():
    before = fairness.current()
    yield fairness.use(Fairness(page_cpu_ms=2_000))
    fairness.use(before)


def scope(client, cookie=b""):
    return {
        "type": "http",
        "method": "GET",
        "http_version": "1.1",
        "scheme": "http",
        "path": "/manage",
        "raw_path": b"/manage",
        "query_string": b"",
        "headers": [(b"cookie", cookie)] if cookie else [],
        "client": (client, 1),
        "server": ("127.0.0.1", 80),
        "state": {"client": client, "request_id": "r-1"},
    }


async def ask(application, *given, send=None, state=None):
    asked = scope(*given)
    asked["state"] |= state or {}
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def keep(message):
        sent.append(message)

    await application(asked, receive, send or keep)
    return b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize(
    ("kind", "size", "says"),
    [
        ("application/x-www-form-urlencoded", (5 << 19) + 1, "Forms without files are limited to 2.5 MB"),
        ("application/json", 11 << 20, "limited to 2.5 MB"),
        ("multipart/form-data; boundary=b", (12 << 20) + 1, "Forms with files are limited to 12 MB"),
    ],
)
def test_a_form_that_announces_too_much_is_refused_before_it_is_read(kind, size, says):
    async def receive():
        raise AssertionError("the body was read")

    form = {**scope("192.0.2.1"), "method": "POST"}
    form["headers"] = [(b"content-type", kind.encode()), (b"content-length", str(size).encode())]
    bridge = Bridge()
    with pytest.raises(TooLarge, match=says) as refusal:
        asyncio.run(WSGIApplication(Site(), bridge)(form, receive, receive))
    assert refusal.value.headers == {"Connection": "close"}
    bridge.close()


class Site:
    """A WSGI application whose sessions name their accounts; pages of the account 7 wait until they may go on."""

    def __init__(self):
        self.go_on, self.began = threading.Event(), []

    def __call__(self, environ, start_response):
        account = environ.get("HTTP_COOKIE", "").partition("sessionid=")[2].partition(".")[0]
        if account:
            environ[ACCOUNT] = account
        self.began.append(account)
        if account == "7":
            self.go_on.wait(30)
        start_response("200 OK", [])
        return [b"page"]


@pytest.mark.usefixtures("limits")
def test_an_account_known_by_its_session_uses_two_threads_from_any_address():
    async def run():
        site, bridge = Site(), Bridge()
        pages = WSGIApplication(site, bridge)
        site.go_on.set()
        await ask(pages, "192.0.2.1", b"a=b; sessionid=7.secret; c=d")
        site.go_on.clear()
        site.began.clear()
        slow = [asyncio.create_task(ask(pages, f"192.0.2.{number}", b"sessionid=7.secret")) for number in range(1, 9)]
        for number in range(20, 24):
            assert await asyncio.wait_for(ask(pages, f"192.0.2.{number}", b"sessionid=8.secret"), 60) == b"page"
            assert await asyncio.wait_for(ask(pages, f"192.0.2.{number}"), 60) == b"page"
        assert site.began.count("7") == 2
        site.go_on.set()
        assert await asyncio.gather(*slow) == [b"page"] * 8
        bridge.close()

    asyncio.run(run())


@pytest.mark.usefixtures("limits")
def test_pages_that_show_the_answer_to_a_statement_use_one_thread_from_any_address():
    async def run():
        site, bridge = Site(), Bridge()
        pages = WSGIApplication(site, bridge)

        asked = {STATE: Outcome("SELECT 1", {})}
        slow = [
            asyncio.create_task(ask(pages, f"192.0.2.{number}", b"sessionid=7.secret", state=asked))
            for number in range(1, 9)
        ]
        for number in range(20, 24):
            assert await asyncio.wait_for(ask(pages, f"192.0.2.{number}"), 60) == b"page"
        assert site.began.count("7") == 1
        site.go_on.set()
        assert await asyncio.gather(*slow) == [b"page"] * 8
        bridge.close()

    asyncio.run(run())


@pytest.mark.usefixtures("limits")
def test_a_page_waits_for_the_database_as_long_as_any_request():
    waits = []

    def page(environ, start_response):
        waits.append(patience.current())
        start_response("200 OK", [])
        return [b"page"]

    async def run():
        bridge = Bridge()
        assert await ask(WSGIApplication(page, bridge), "192.0.2.1") == b"page"
        bridge.close()

    asyncio.run(run())
    assert [each.left_s for each in waits] == [patience.REQUEST_S]


@pytest.mark.usefixtures("limits")
def test_unknown_sessions_of_one_address_use_two_threads():
    async def run():
        site, bridge = Site(), Bridge()
        pages = WSGIApplication(site, bridge)
        slow = [asyncio.create_task(ask(pages, "192.0.2.1", b"sessionid=7.secret%d" % number)) for number in range(8)]
        assert await asyncio.wait_for(ask(pages, "192.0.2.2"), 60) == b"page"
        assert site.began.count("7") == 2
        site.go_on.set()
        assert await asyncio.gather(*slow) == [b"page"] * 8
        bridge.close()

    asyncio.run(run())


@pytest.mark.usefixtures("limits")
def test_a_client_that_reads_slowly_holds_no_thread():
    async def run():
        site, bridge = Site(), Bridge()
        pages = WSGIApplication(site, bridge)
        may_read = asyncio.Event()

        async def slowly(_):
            await may_read.wait()

        slow = [asyncio.create_task(ask(pages, "192.0.2.1", send=slowly)) for _ in range(8)]
        assert await asyncio.wait_for(ask(pages, "192.0.2.1"), 60) == b"page"
        may_read.set()
        await asyncio.gather(*slow)
        bridge.close()

    asyncio.run(run())


def test_cpu_time_is_charged_to_the_account_and_to_no_other(limits, monkeypatch):
    async def run():
        clock = iter(range(1_000))
        monkeypatch.setattr("time.thread_time", lambda: next(clock) * 0.25)
        site, bridge = Site(), Bridge()
        pages = WSGIApplication(site, bridge)
        for _ in range(4):
            await ask(pages, "192.0.2.1", b"sessionid=8.secret")
        await ask(pages, "192.0.2.1")
        assert limits.page_cpu.peek("8").remaining in {9_000, 9_001, 9_002, 9_003}
        assert limits.page_cpu.peek("9").remaining == 10_000
        assert len(limits.page_cpu) == 1
        bridge.close()

    asyncio.run(run())


def test_a_page_that_fails_is_charged_and_returns_its_thread(limits, monkeypatch):
    async def run():
        clock = iter(range(1_000))
        monkeypatch.setattr("time.thread_time", lambda: float(next(clock)))

        def broken(environ, _):
            environ[ACCOUNT] = "8"
            raise ZeroDivisionError

        bridge = Bridge()
        pages = WSGIApplication(broken, bridge)
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await ask(pages, "192.0.2.1")
        assert limits.page_cpu.peek("8").remaining < 5_500
        bridge.close()

    asyncio.run(run())
