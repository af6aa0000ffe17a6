"""Subscriptions of the public tool server: which documents were published, as long as a client listens."""

import asyncio
import json

import pytest

from make.published import company, framework, person
from make.rest import Rest
from muniment.api import changes
from muniment.kernel.asgi import LISTENS
from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.protocol.transport import MAX_SUBSCRIBED, ToolServer
from muniment.mcp.tools.public import public_declarations
from muniment.schema.objects import registry_schema
from services.mcp import ask, initialize, legacy, modern

pytestmark = pytest.mark.requirement("mcp.public")

ID = "io.modelcontextprotocol/subscriptionId"
COMPANY, PERSON = "registry://companies/company-1", "registry://people/person-1"


@pytest.fixture
def rest(tmp_path):
    rest = Rest(tmp_path)
    rest.publish(company(1), person(1), company(2), framework(1))
    yield rest
    rest.close()


@pytest.fixture
def server(rest):
    offer = public_declarations(
        rest.reader,
        base_url="https://registry.example",
        registry_name="Suite Registry",
        schema=registry_schema("USD"),
        follow=rest.api.live.follow,
    )
    return ToolServer(offer, gate=OriginPolicy(""))


def publish(rest, *documents):
    rest.publish(*documents)
    rest.api.live.moved()


class Listener:
    """One subscription, in the event loop of the test."""

    def __init__(self, server, *uris, client="198.51.100.1", request_id="listen-1", **headers):
        wanted = {"notifications": {"resourceSubscriptions": list(uris), "toolsListChanged": True}}
        asked, body = modern("subscriptions/listen", wanted, request_id=request_id)
        asked = {**dict(asked), **headers}
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/mcp",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in asked.items()],
            "state": {"client": client, "request_id": "r-1"},
        }
        self.sent = []
        self._incoming = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self._arrived = asyncio.Event()
        self.task = asyncio.create_task(server(self.scope, self._incoming.get, self._send))

    async def _send(self, message):
        self.sent.append(message)
        self._arrived.set()

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def text(self):
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    @property
    def messages(self):
        """Return the messages so far: of an event stream each, of a refusal its body."""
        lines = self.text.split("\r\n")
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]

    @property
    def updated(self):
        return [
            each["params"]["uri"] for each in self.messages if each.get("method") == "notifications/resources/updated"
        ]

    async def until(self, count):
        """Wait for so many messages."""
        async with asyncio.timeout(10):
            while len(self.messages) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.messages

    async def until_told(self, text):
        async with asyncio.timeout(10):
            while text not in self.text:
                self._arrived.clear()
                await self._arrived.wait()

    async def leave(self):
        self._incoming.put_nowait({"type": "http.disconnect"})
        async with asyncio.timeout(10):
            await self.task


def test_a_client_is_told_of_each_publication_of_what_it_subscribed_to(rest, server):
    async def listen():
        listener = Listener(server, COMPANY, PERSON)
        (acknowledged,) = await listener.until(1)
        publish(rest, company(2, description="Of no interest."), framework(1, description="Nor this."))
        publish(rest, company(1, description="Changed."), company(1, description="Twice at once."))
        await listener.until(2)
        rest.unlist("person", "person-1")
        rest.api.live.moved()
        await listener.until(3)
        assert listener.scope["state"][LISTENS] is True
        await listener.leave()
        return acknowledged, listener

    acknowledged, listener = asyncio.run(listen())
    assert acknowledged == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {"resourceSubscriptions": [COMPANY, PERSON]}, "_meta": {ID: "listen-1"}},
    }
    assert listener.updated == [COMPANY, PERSON]
    assert all(each["params"]["_meta"] == {ID: "listen-1"} for each in listener.messages[:3])
    assert listener.status == 200
    assert (b"content-type", b"text/event-stream") in listener.sent[0]["headers"]


@pytest.mark.parametrize("request_id", [7, "listen-2", '"quoted"'])
def test_a_stream_ends_with_a_result_when_the_process_does(rest, server, request_id):
    async def listen():
        listener = Listener(server, COMPANY, request_id=request_id)
        await listener.until(1)
        rest.api.live.end()
        async with asyncio.timeout(10):
            await listener.task
        late = Listener(server, COMPANY)
        await late.task
        return listener.messages[-1], late

    end, late = asyncio.run(listen())
    assert end["id"] == request_id
    assert end["result"]["resultType"] == "complete"
    assert end["result"]["_meta"][ID] == request_id
    assert end["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "muniment"
    assert late.status == 503


def test_what_is_no_document_here_is_not_acknowledged(server):
    async def listen():
        listener = Listener(server, "registry://stats", "https://elsewhere.example/a", "registry://companies/未来", "")
        (acknowledged,) = await listener.until(1)
        nothing = Listener(server, request_id="listen-2")
        (of_nothing,) = await nothing.until(1)
        await listener.leave()
        await nothing.leave()
        return acknowledged["params"]["notifications"], of_nothing["params"]["notifications"]

    # A document that is not published yet may be one day.
    assert asyncio.run(listen()) == ({"resourceSubscriptions": ["registry://companies/未来"]}, {})


def test_an_encoded_address_names_the_same_document_and_is_told_as_it_was_given(rest, server):
    async def listen():
        listener = Listener(server, "registry://companies/%E5%A4%9C")
        await listener.until(1)
        publish(rest, company(9, "夜"))
        await listener.until(2)
        await listener.leave()
        return listener.updated

    assert asyncio.run(listen()) == ["registry://companies/%E5%A4%9C"]


@pytest.mark.parametrize(("count", "is_taken"), [(MAX_SUBSCRIBED, True), (MAX_SUBSCRIBED + 1, False)])
def test_a_subscription_has_at_most_a_hundred_documents(server, count, is_taken):
    async def listen():
        listener = Listener(server, *(f"registry://companies/company-{n}" for n in range(count)))
        if is_taken:
            await listener.until(1)
        await listener.leave()
        return listener

    listener = asyncio.run(listen())
    if is_taken:
        assert len(listener.messages[0]["params"]["notifications"]["resourceSubscriptions"]) == MAX_SUBSCRIBED
    else:
        error = json.loads(listener.text)["error"]
        assert error["message"] == "A subscription takes at most 100 resources. For more, follow GET /api/v1/changes."


def test_pings_keep_the_connection_while_nothing_happens(server, monkeypatch):
    monkeypatch.setattr(changes, "HEARTBEAT_S", 0.01)

    async def listen():
        listener = Listener(server, COMPANY)
        await listener.until(1)
        await listener.until_told(": ping")
        await listener.leave()
        return listener.updated

    assert asyncio.run(listen()) == []


def test_streams_of_the_feed_and_subscriptions_share_the_limits_of_an_address_and_a_process(server, rest, monkeypatch):
    monkeypatch.setattr(changes, "MAX_LISTENERS_PER_ADDRESS", 2)
    monkeypatch.setattr(changes, "MAX_LISTENERS", 3)

    async def listen():
        own = [Listener(server, COMPANY) for _ in range(2)]
        for each in own:
            await each.until(1)
        third = Listener(server, COMPANY)
        await third.task
        other = Listener(server, COMPANY, client="198.51.100.2")
        await other.until(1)
        fourth = Listener(server, COMPANY, client="198.51.100.3")
        await fourth.task
        assert len(rest.api.live) == 3
        for each in (*own, other):
            await each.leave()
        assert len(rest.api.live) == 0
        again = Listener(server, COMPANY)
        await again.until(1)
        await again.leave()
        return third.status, fourth.status

    assert asyncio.run(listen()) == (429, 503)


@pytest.mark.parametrize(("room", "status"), [(0, 200), (-1, 429)])
def test_the_documents_that_the_subscriptions_of_an_address_name_are_bounded(server, rest, monkeypatch, room, status):
    uris = [f"registry://companies/{'x' * 150}{number:02}" for number in range(MAX_SUBSCRIBED)]
    held_bytes = sum(changes.BYTES_PER_NAME + len(uri) for uri in uris)
    monkeypatch.setattr(changes, "MAX_HELD_BYTES_PER_ADDRESS", held_bytes + room)

    async def listen():
        listener = Listener(server, *uris)
        await asyncio.sleep(0.05)
        await listener.leave()
        return listener.status

    assert asyncio.run(listen()) == status
    assert not rest.api.live._held_bytes


@pytest.mark.parametrize(("length", "is_honored"), [(MAX_SLUG_CHARACTERS, True), (MAX_SLUG_CHARACTERS + 1, False)])
def test_what_can_be_the_slug_of_no_document_is_not_kept(server, length, is_honored):
    async def listen():
        listener = Listener(server, f"registry://companies/{'x' * length}")
        (acknowledged,) = await listener.until(1)
        await listener.leave()
        return acknowledged["params"]["notifications"]

    assert bool(asyncio.run(listen())) is is_honored


def test_a_stream_ends_when_the_feed_has_another_past(server, rest, monkeypatch):
    async def listen():
        listener = Listener(server, COMPANY)
        await listener.until(1)
        monkeypatch.setattr(rest.reader, "has_past", lambda *_: False)
        publish(rest, company(1, description="Of another history."))
        async with asyncio.timeout(10):
            await listener.task
        return listener

    listener = asyncio.run(listen())
    assert listener.updated == []
    assert "result" in listener.messages[-1]


def test_many_changes_at_once_are_read_in_a_thread_and_each_is_told(server, rest, monkeypatch):
    monkeypatch.setattr(changes, "AT_ONCE", 2)
    monkeypatch.setattr(changes, "MAX_PIECES", 1)

    async def listen():
        listeners = [Listener(server, f"registry://companies/company-{n}") for n in (3, 7)]
        for each in listeners:
            await each.until(1)
        publish(rest, *(company(n) for n in range(3, 9)))
        for each in listeners:
            await each.until(2)
            await each.leave()
        return [each.updated for each in listeners]

    assert asyncio.run(listen()) == [["registry://companies/company-3"], ["registry://companies/company-7"]]


def test_a_client_that_takes_no_event_streams_is_refused(server):
    async def listen():
        listener = Listener(server, COMPANY, accept="application/json")
        await listener.task
        return listener

    listener = asyncio.run(listen())
    assert listener.status == 406
    assert json.loads(listener.text)["error"]["hint"] == "Send Accept: application/json, text/event-stream."


@pytest.mark.parametrize("notifications", [None, [], {"resourceSubscriptions": "registry://companies/a"}])
def test_parameters_of_another_shape_are_refused(server, notifications):
    asked, body = modern("subscriptions/listen", {"notifications": notifications})
    answer = asyncio.run(asked_of(server, asked, body))
    assert answer["error"]["code"] == -32602


def test_only_the_modern_generation_is_offered_subscriptions(server):
    discovered = asyncio.run(asked_of(server, *modern("server/discover")))
    assert discovered["result"]["capabilities"]["resources"] == {"subscribe": True, "listChanged": False}
    shaken = asyncio.run(asked_of(server, *initialize()))
    assert shaken["result"]["capabilities"]["resources"] == {"subscribe": False, "listChanged": False}
    unknown = asyncio.run(asked_of(server, *legacy("subscriptions/listen", {"notifications": {}})))
    assert unknown["error"]["code"] == -32601


async def asked_of(server, headers, body):
    return (await ask(server, headers, body)).json()
