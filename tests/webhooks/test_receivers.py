"""The receivers of the guide at /docs/guides/webhooks run as printed, and take real deliveries."""

import http.client
import json
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest

from make.accounts import account
from make.registry import draft, owner, published, reviewer
from muniment.credits.operations import grant
from muniment.jobs import queue
from muniment.kernel.actor import COMMAND
from muniment.outbound import fetching
from muniment.registry.company.listings import CompanyChange, update_company
from muniment.registry.review.workflow import submit_company, unlist_company
from muniment.web.reference.guides import samples, source
from muniment.webhooks import delivering, endpoints, events
from muniment.webhooks.endpoints import Wanted, create_endpoint
from muniment.webhooks.events import OWNER_KINDS, REGISTRY_KINDS
from muniment.webhooks.models import Delivery
from services.node import NODE, environment
from services.ports import free_port, wait_until

pytestmark = pytest.mark.django_db
RECEIVERS = [(each.language, each.code) for each in samples("webhooks") if each.language in {"python", "ts"}]
NAMES = ["python with standardwebhooks", "python", "typescript"]
EVENTS = re.findall(r"(?m)^\| `([a-z.]+)` \| .* \| `(\{.*\})` \|$", source("webhooks"))


class Listening:
    """A running receiver, and the requests that it was sent."""

    def __init__(self, port, process):
        self.port, self.process = port, process
        self.sent = []

    def channel(self, *_, **__):
        """Return a channel that leads to the receiver what is meant for a public server, and remembers it."""
        here = {"port": self.port, "resolve": lambda *_: ["127.0.0.1"], "is_allowed": lambda _: True}
        channel = fetching.Channel("http://hooks.example.com/in", **here)
        post = channel.post

        def remembering(body, headers):
            self.sent.append((body, dict(headers)))
            return post(body, headers)

        channel.post = remembering
        return channel

    def status(self, body, headers):
        with self.channel() as channel:
            return channel.post(body, headers).status

    def printed(self):
        """Stop it, and return the lines that it has printed."""
        self.process.terminate()
        return self.process.communicate(timeout=30)[0].splitlines()


@contextmanager
def listening(number, secret, folder):
    """Run a receiver of the guide as printed."""
    language, code = RECEIVERS[number]
    file = folder / f"receiver.{'mts' if language == 'ts' else 'py'}"
    file.write_text(code)
    ts, python = [NODE, "--experimental-strip-types", "--no-warnings", file], [sys.executable, "-W", "error", file]
    port = free_port()
    process = subprocess.Popen(
        ts if language == "ts" else python,
        env=environment(WEBHOOK_SECRET=secret, PORT=str(port)),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        receiver = Listening(port, process)
        wait_until(lambda: _listens(port), within_s=60, what="the receiver")
        yield receiver
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _listens(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def deliver():
    """Send what is due, as the job does."""
    queue.enqueue(events.JOB)
    run = queue.claim("tests", "webhooks")
    run.finish(delivering.deliver(run))


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_a_receiver_of_the_guide_takes_real_deliveries_once_and_refuses_others(number, tmp_path, monkeypatch):
    actor = account().actor("web")
    row = create_endpoint(actor, Wanted("https://hooks.example.com/in", OWNER_KINDS))
    secret = endpoints.shown_secret(actor, row.pk)
    with listening(number, secret, tmp_path) as receiver:
        monkeypatch.setattr(delivering, "Channel", receiver.channel)
        endpoints.send_test(actor, row.pk)
        deliver()
        assert Delivery.objects.get().state == "delivered"
        # Again with the same id, and after a rotation with two signatures: the receiver still has the former secret.
        endpoints.rotate_secret(actor, row.pk)
        endpoints.replay(actor, row.pk, Delivery.objects.get().pk)
        deliver()
        assert Delivery.objects.get().state == "delivered"
        body, headers = receiver.sent[-1]
        assert len(headers["Webhook-Signature"].split()) == 2
        assert receiver.status(body.replace(b"test", b"tset"), headers) == 400
        assert receiver.status(body, {**headers, "Webhook-Id": "evt_other"}) == 400
        late = str(int(headers["Webhook-Timestamp"]) - 301)
        old = delivering.signature(secret, headers["Webhook-Id"], int(late), body.decode())
        assert receiver.status(body, {**headers, "Webhook-Timestamp": late, "Webhook-Signature": old}) == 400
        assert receiver.status(body, headers) == 204
        printed = receiver.printed()
    assert printed == ["test {}"]


def test_the_guide_has_every_event_once():
    assert [kind for kind, _ in EVENTS] == [*OWNER_KINDS, events.TEST]
    assert set(REGISTRY_KINDS) <= set(OWNER_KINDS)
    assert len(RECEIVERS) == len(NAMES)


def test_the_messages_have_the_members_that_the_guide_shows():
    """Happenings of a listing, a review and credits; those of documents and reports are recorded by their features."""
    me = owner()
    create_endpoint(me, Wanted("https://hooks.example.com/in", OWNER_KINDS))
    listing = published(me)
    update_company(me, listing.slug, CompanyChange(description="A new one"))
    unlist_company(reviewer(), listing.slug, note="No longer in the scope of the registry.")
    submit_company(me, draft(me).slug)
    grant(COMMAND, endpoints.account_of(me).email, 5, note="", key="k")
    delivering.sort_events()
    shown = {kind: json.loads(data) for kind, data in EVENTS}
    messages = [json.loads(body) for body in Delivery.objects.values_list("body", flat=True)]
    assert {each["type"] for each in messages} == {
        *("listing.published", "listing.updated", "listing.unlisted"),
        *("review.asked", "review.decided", "credits.changed"),
    }
    example = json.loads(next(each.code for each in samples("webhooks") if each.language == "json"))
    for message in messages:
        assert message["data"].keys() == shown[message["type"]].keys()
        assert message.keys() == example.keys()
