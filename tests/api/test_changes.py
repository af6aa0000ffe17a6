"""Following the feed: filters, documents, waiting for a change, and the stream of events."""

import asyncio
import json
import threading

import pytest

from make.published import company, framework, person
from muniment.api import changes, routes
from muniment.kernel.asgi import LASTING, LISTENS
from muniment.store import snapshot_state

FEED = "/api/v1/changes"
STREAM = b"/api/v1/changes/stream"


async def serve(api, scope, receive, send):
    """Answer a request as the server does, which waits for a response that lasts."""
    await api(scope, receive, send)
    if LASTING in scope["state"]:
        await scope["state"][LASTING].until_left(receive)


class Visitor:
    """One request to an application, in the event loop of the test."""

    def __init__(self, api, target: str, method: str = "GET", client: str = "198.51.100.1", **headers: str) -> None:
        path, _, query = target.partition("?")
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "state": {"client": client},
        }
        self.sent = []
        self._incoming = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        self._arrived = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self.task = asyncio.create_task(serve(api, self.scope, self._incoming.get, self._send))

    async def _send(self, message):
        await self.reads.wait()
        self.sent.append(message)
        self._arrived.set()

    def leave(self):
        self._incoming.put_nowait({"type": "http.disconnect"})

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else 0

    @property
    def text(self):
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    @property
    def events(self):
        """Return the data of the events so far, by id."""
        found = {}
        for block in self.text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "data" in lines:
                assert lines["event"] == "change"
                found[lines["id"]] = json.loads(lines["data"])
        return found

    async def until(self, number: int):
        """Wait for so many events."""
        async with asyncio.timeout(10):
            while len(self.events) < number:
                self._arrived.clear()
                await self._arrived.wait()
        return self.events

    async def until_ended(self):
        async with asyncio.timeout(10):
            while self.sent[-1].get("more_body", True):
                self._arrived.clear()
                await self._arrived.wait()

    async def until_told(self, text: str):
        async with asyncio.timeout(10):
            while text not in self.text:
                self._arrived.clear()
                await self._arrived.wait()


@pytest.fixture
def feed(rest):
    rest.publish(company(1), person(1), company(2), framework(1), company(1, description="Changed."))
    return rest


def publish(rest, *documents):
    rest.publish(*documents)
    rest.api.live.moved()


def ids(answer):
    return [(entry["sequence"], entry["id"]) for entry in answer.json["data"]]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("kind=person", [2]), ("kind=person,framework", [2, 4]), ("ids=company-1", [1, 5]),
        ("ids=company-1,person-1", [1, 2, 5]), ("kind=company&ids=person-1", []), ("kind=company&after=1", [3, 5]),
        ("ids=unknown", []),
    ],
)  # fmt: skip
def test_only_wanted_changes_are_listed_and_the_others_are_passed_over(feed, asked, found):
    answer = feed.ask(f"{FEED}?{asked}")
    assert [entry["sequence"] for entry in answer.json["data"]] == found
    assert (answer.json["nextAfter"], answer.json["head"]) == (5, 5)
    assert answer.json["chain"] == feed.ask(f"{FEED}?after=4").json["chain"]


def test_a_full_page_of_wanted_changes_continues_after_its_last(feed):
    first = feed.ask(f"{FEED}?kind=company&limit=2")
    assert ([each["sequence"] for each in first.json["data"]], first.json["nextAfter"]) == ([1, 3], 3)
    assert first.json["chain"] == first.json["data"][-1]["chain"]
    rest_of_it = feed.ask(f"{FEED}?kind=company&limit=2&after=3&chain={first.json['chain']}")
    assert ([each["sequence"] for each in rest_of_it.json["data"]], rest_of_it.json["nextAfter"]) == ([5], 5)


def test_one_request_looks_at_a_part_of_a_long_feed(feed, monkeypatch):
    monkeypatch.setattr(snapshot_state, "MAX_LOOKED_AT", 3)
    first = feed.ask(f"{FEED}?kind=framework")
    assert (first.json["data"], first.json["nextAfter"], first.json["head"]) == ([], 3, 5)
    assert [each["sequence"] for each in feed.ask(f"{FEED}?kind=framework&after=3").json["data"]] == [4]


@pytest.mark.parametrize("wrong", ["kind=companies", "ids=", "include=documents", "waitSeconds=56", "waitSeconds=-1"])
def test_wrong_parameters_are_refused_by_name(feed, wrong):
    answer = feed.ask(f"{FEED}?{wrong}")
    assert answer.status == 400
    assert answer.error["message"].startswith(wrong.partition("=")[0])


def test_changes_come_with_the_document_of_now(feed):
    feed.unlist("person", "person-1")
    entries = feed.ask(f"{FEED}?include=document").json["data"]
    detail = feed.ask("/api/v1/companies/company-1").json["data"]
    assert [each["document"] for each in entries if each["id"] == "company-1"] == [detail, detail]
    assert [each["document"] for each in entries if each["id"] == "person-1"] == [None, None]
    assert all("document" not in each for each in feed.ask(FEED).json["data"])


def test_large_documents_are_left_out_and_many_make_a_smaller_page(feed, monkeypatch):
    size_bytes = len(feed.ask("/api/v1/companies/company-2").body)
    monkeypatch.setattr(changes, "MAX_DOCUMENT_BYTES", size_bytes)
    entries = feed.ask(f"{FEED}?include=document&kind=company").json["data"]
    assert ["document" in each for each in entries] == [False, True, False]  # the changed description is longer
    monkeypatch.undo()
    monkeypatch.setattr(changes, "MAX_DOCUMENTS_BYTES", 1)
    page = feed.ask(f"{FEED}?include=document&after=2").json
    assert ([each["sequence"] for each in page["data"]], page["nextAfter"]) == ([3], 3)
    assert page["chain"] == page["data"][0]["chain"]


def test_a_request_waits_for_the_next_wanted_change(feed):
    async def follow():
        waiting = Visitor(feed.api, f"{FEED}?after=5&kind=person&waitSeconds=50")
        await asyncio.sleep(0)
        publish(feed, company(3))
        await asyncio.sleep(0.05)
        assert not waiting.sent
        assert waiting.scope["state"][LISTENS] is True  # its connection makes room for another
        publish(feed, person(2))
        await asyncio.wait_for(waiting.task, 10)
        return json.loads(waiting.text), waiting.scope["state"][LISTENS]

    page, listens = asyncio.run(follow())
    assert ([each["id"] for each in page["data"]], page["nextAfter"], listens) == (["person-2"], 7, False)


@pytest.mark.parametrize("asked", ["after=4&waitSeconds=50", "after=5&waitSeconds=0", "after=5"])
def test_a_request_does_not_wait_when_there_is_a_change_or_no_wish_to(feed, asked):
    async def ask():
        visitor = Visitor(feed.api, f"{FEED}?{asked}")
        await asyncio.wait_for(visitor.task, 10)
        return visitor.status

    assert asyncio.run(ask()) == 200


def test_waiting_ends_with_the_time_the_client_and_the_process(feed):
    async def ask():
        in_time = Visitor(feed.api, f"{FEED}?after=5&waitSeconds=1")
        await asyncio.wait_for(in_time.task, 10)
        assert json.loads(in_time.text)["data"] == []
        left, ended = (Visitor(feed.api, f"{FEED}?after=5&waitSeconds=50") for _ in range(2))
        await asyncio.sleep(0.05)
        left.leave()
        await asyncio.wait_for(left.task, 10)
        feed.api.live.end()
        await asyncio.wait_for(ended.task, 10)
        assert json.loads(ended.text)["data"] == []

    asyncio.run(ask())


def test_an_empty_page_that_waited_is_not_kept(feed):
    target = f"{FEED}?after=5&waitSeconds=1"
    assert feed.ask(target).json["data"] == []
    feed.publish(company(7))
    assert [each["id"] for each in feed.ask(target).json["data"]] == ["company-7"]


def test_a_stream_sends_what_follows_a_place_and_then_each_change(feed):
    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream?after=3")
        await visitor.until(2)
        publish(feed, company(8))
        events = await visitor.until(3)
        visitor.leave()
        await asyncio.wait_for(visitor.task, 10)
        return events, dict(visitor.sent[0]["headers"])

    events, headers = asyncio.run(follow())
    listed = feed.ask(f"{FEED}?after=3").json["data"]
    assert list(events.values()) == listed
    assert list(events) == [f"{each['sequence']}-{each['chain']}" for each in listed]
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"access-control-allow-origin"] == b"*"
    assert len(feed.api.live) == 0


def test_nothing_of_the_api_waits_while_a_stream_lasts(feed):
    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream")
        await visitor.until_told("id: 5")
        frame = visitor.task.get_coro().cr_await
        names = []
        while frame is not None:
            names.append(getattr(frame, "__qualname__", ""))
            frame = getattr(frame, "cr_await", None)
        visitor.leave()
        await visitor.task
        return names

    assert asyncio.run(follow())[:2] == ["_Listener.until_left", "Queue.get"]


def test_a_stream_without_a_place_begins_with_the_next_change_and_tells_its_place(feed):
    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream")
        await visitor.until_told("id: 5-")
        publish(feed, company(8))
        events = await visitor.until(1)
        visitor.leave()
        await visitor.task
        return events

    assert [each["id"] for each in asyncio.run(follow()).values()] == ["company-8"]


def test_a_browser_that_connects_again_misses_nothing(feed):
    last = feed.ask(f"{FEED}?after=3&limit=1").json["data"][0]

    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream?after=1", last_event_id=f"4-{last['chain']}")
        events = await visitor.until(1)
        visitor.leave()
        await visitor.task
        return events

    assert [each["sequence"] for each in asyncio.run(follow()).values()] == [5]


@pytest.mark.parametrize(
    ("query", "headers", "said"),
    [
        ("", {"last_event_id": "4-" + "0" * 64}, "chain is not that of change 4"),
        ("", {"last_event_id": "yesterday"}, "not an id of this stream"),
        ("?after=99", {}, "the feed's latest change is 5"),
        ("?after=4&chain=" + "0" * 64, {}, "chain is not that of change 4"),
        ("?kind=x", {}, "kind is"),
    ],
)
def test_a_stream_from_a_place_that_the_feed_does_not_have_is_refused(feed, query, headers, said):
    answer = feed.ask(f"{FEED}/stream{query}", **headers)
    assert answer.status == 400
    assert said in answer.error["message"]


def test_listeners_get_what_they_want_of_one_publication(feed):
    async def follow():
        people = Visitor(feed.api, f"{FEED}/stream?after=5&kind=person")
        one = Visitor(feed.api, f"{FEED}/stream?after=5&ids=company-9&include=document")
        everyone = [Visitor(feed.api, f"{FEED}/stream?after=5", client=f"198.51.100.{n}") for n in range(3)]
        await one.until_told("id: 5")
        publish(feed, company(8), person(8), company(9))
        found = [
            await each.until(number) for each, number in ((people, 1), (one, 1), *((each, 3) for each in everyone))
        ]
        for each in (people, one, *everyone):
            each.leave()
            await each.task
        return found

    people, one, *everyone = asyncio.run(follow())
    assert [each["id"] for each in people.values()] == ["person-8"]
    assert [each["document"]["company"]["id"] for each in one.values()] == ["company-9"]
    assert [[each["id"] for each in events.values()] for events in everyone] == [
        ["company-8", "person-8", "company-9"]
    ] * 3


def test_a_client_that_does_not_read_is_not_waited_for_and_gets_everything_later(feed, monkeypatch):
    monkeypatch.setattr(changes, "AT_ONCE", 2)

    async def follow():
        slow, quick = (Visitor(feed.api, f"{FEED}/stream?after=5") for _ in range(2))
        await slow.until_told("id: 5")
        slow.reads.clear()
        for number in range(10, 17):
            publish(feed, company(number))
            await quick.until(number - 9)
        assert len(slow.events) == 0
        slow.reads.set()
        events = await slow.until(7)
        for each in (slow, quick):
            each.leave()
            await each.task
        return events

    assert [each["id"] for each in asyncio.run(follow()).values()] == [f"company-{n}" for n in range(10, 17)]


def test_a_stream_says_its_place_while_nothing_happens(feed, monkeypatch):
    monkeypatch.setattr(changes, "HEARTBEAT_S", 0.05)

    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream?kind=person")
        await visitor.until_told("id: 5")
        publish(feed, company(8))
        await visitor.until_told("id: 6")
        visitor.leave()
        await visitor.task
        return visitor.events

    assert asyncio.run(follow()) == {}


def test_streams_end_when_the_process_does_and_new_ones_are_refused(feed):
    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream")
        await visitor.until_told("id: 5")
        feed.api.live.end()
        await visitor.until_ended()
        visitor.leave()  # as the server does once a response is complete
        await visitor.task
        late = Visitor(feed.api, f"{FEED}/stream")
        await late.task
        return late.status

    assert asyncio.run(follow()) == 503


def test_a_stream_ends_when_the_feed_has_another_past(feed):
    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream?after=5")
        await visitor.until_told("id: 5")
        feed.api.live._all()[0]._place = changes.Place(5, "0" * 64)  # a history that was lost
        publish(feed, company(8))
        await visitor.until_ended()
        visitor.leave()
        await visitor.task
        return visitor.events

    assert asyncio.run(follow()) == {}


def test_an_address_and_a_process_have_a_limit_of_streams(feed, monkeypatch):
    monkeypatch.setattr(changes, "MAX_LISTENERS_PER_ADDRESS", 2)
    monkeypatch.setattr(changes, "MAX_LISTENERS", 3)

    async def follow():
        own = [Visitor(feed.api, f"{FEED}/stream") for _ in range(2)]
        for each in own:
            await each.until_told("id: 5")
        third = Visitor(feed.api, f"{FEED}/stream")
        await third.task
        other = Visitor(feed.api, f"{FEED}/stream", client="198.51.100.2")
        await other.until_told("id: 5")
        fourth = Visitor(feed.api, f"{FEED}/stream", client="198.51.100.3")
        await fourth.task
        for each in (*own, other):
            each.leave()
            await each.task
        again = Visitor(feed.api, f"{FEED}/stream")
        await again.until_told("id: 5")
        again.leave()
        await again.task
        return third, fourth

    third, fourth = asyncio.run(follow())
    assert (third.status, dict(third.sent[0]["headers"])[b"retry-after"]) == (429, b"10")
    assert fourth.status == 503


def test_who_is_far_behind_is_read_for_in_a_thread_and_others_are_served_meanwhile(feed, monkeypatch):
    monkeypatch.setattr(changes, "AT_ONCE", 2)
    monkeypatch.setattr(snapshot_state, "MAX_LOOKED_AT", 1)
    read, threads = feed.api.live._read, set()

    def noted(wanted, place):
        threads.add((feed.reader.edition - place.after > changes.AT_ONCE, threading.current_thread().name[:6]))
        return read(wanted, place)

    monkeypatch.setattr(feed.api.live, "_read", noted)

    async def follow():
        behind = Visitor(feed.api, f"{FEED}/stream?after=0&kind=framework")
        level = Visitor(feed.api, f"{FEED}/stream?after=5")
        await level.until_told("id: 5")
        publish(feed, company(8))
        await level.until(1)
        events = await behind.until(1)
        for each in (behind, level):
            each.leave()
            await each.task
        return events

    assert [each["sequence"] for each in asyncio.run(follow()).values()] == [4]
    assert threads == {(True, "reader"), (False, "MainTh")}


def test_documents_of_changes_are_read_by_a_thread_and_their_numbers_by_the_event_loop(feed):
    values = {"after": 0, "chain": None, "include": None}
    assert routes.changes_quick(feed.api.context, values) is True
    assert routes.changes_quick(feed.api.context, {**values, "include": "document"}) is False


def test_an_unexpected_failure_ends_the_stream_and_is_logged(feed, monkeypatch, caplog):
    async def follow():
        visitor = Visitor(feed.api, f"{FEED}/stream?after=5")
        await visitor.until_told("id: 5")
        monkeypatch.setattr(feed.api.live, "_read", lambda *_: 1 / 0)
        publish(feed, company(8))
        await visitor.until_ended()
        visitor.leave()
        await visitor.task

    asyncio.run(follow())
    assert "a stream of changes failed" in caplog.text


def test_head_tells_the_form_of_a_stream_and_ends(feed):
    answer = feed.ask(STREAM, "HEAD")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert answer.body == b""


SLUG = "x" * 100
NAMED_BYTES = changes.BYTES_PER_NAME + len(SLUG)
QUERY = f"ids={SLUG}"


@pytest.mark.parametrize("listens", [f"{FEED}/stream?{QUERY}", f"{FEED}?after=5&waitSeconds=50&{QUERY}"])
@pytest.mark.parametrize(("room", "status"), [(2 * NAMED_BYTES, 0), (2 * NAMED_BYTES - 1, 429)])
def test_what_the_listeners_of_an_address_hold_is_bounded(feed, monkeypatch, listens, room, status):
    monkeypatch.setattr(changes, "MAX_HELD_BYTES_PER_ADDRESS", room)

    async def follow():
        first = Visitor(feed.api, f"{FEED}/stream?{QUERY}")
        await first.until_told("id: 5")
        second = Visitor(feed.api, listens)
        await asyncio.sleep(0.05)
        refused = second.status if second.status != 200 else 0
        text = second.text
        other = Visitor(feed.api, f"{FEED}/stream?{QUERY}", client="198.51.100.2")
        plain = Visitor(feed.api, f"{FEED}/stream")
        for each in (other, plain):
            await each.until_told("id: 5")
        for each in (first, second, other, plain):
            each.leave()
            await asyncio.wait_for(each.task, 10)
        return refused, text

    refused, text = asyncio.run(follow())
    assert refused == status
    assert ("Name fewer documents" in text) is bool(status)
    assert not feed.api.live._held_bytes


@pytest.mark.parametrize(("room", "status"), [(2 * NAMED_BYTES, 200), (2 * NAMED_BYTES - 1, 503)])
def test_what_all_listeners_hold_is_bounded_and_others_are_not_refused(feed, monkeypatch, room, status):
    monkeypatch.setattr(changes, "MAX_HELD_BYTES", room)

    async def follow():
        first = Visitor(feed.api, f"{FEED}/stream?{QUERY}")
        await first.until_told("id: 5")
        second = Visitor(feed.api, f"{FEED}/stream?{QUERY}", client="198.51.100.2")
        await asyncio.sleep(0.05)
        third = Visitor(feed.api, f"{FEED}/stream", client="198.51.100.3")
        await third.until_told("id: 5")
        for each in (first, second, third):
            each.leave()
            await asyncio.wait_for(each.task, 10)
        return second.status

    assert asyncio.run(follow()) == status


@pytest.mark.parametrize("more", [0, 1])
def test_a_large_head_counts_for_as_long_as_its_client_listens(feed, monkeypatch, more):
    monkeypatch.setattr(changes, "MAX_HELD_BYTES_PER_ADDRESS", 0)

    async def follow():
        free = changes.FREE_HEAD_BYTES - len("x-large")
        visitor = Visitor(feed.api, f"{FEED}/stream", x_large="y" * (free + more))
        await asyncio.sleep(0.05)
        visitor.leave()
        await asyncio.wait_for(visitor.task, 10)
        return visitor.status

    assert asyncio.run(follow()) == (429 if more else 200)
