"""
Each service that Muniment asks says nothing, stops in the middle of an answer, sends a byte at a time, or is dropped.

Every call ends by a deadline for all of it, with the error that its callers know. What callers make of it is tested
with them: messages and files wait, a report is judged by rules, and a request is answered.
"""

import contextlib
import socket
import time

import obstore
import pytest
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.oauth2.client import OAuth2Error

from muniment import config
from muniment.accounts import identity_providers
from muniment.credits import stripe_checkout
from muniment.credits.billing import ProviderUnavailable
from muniment.documents import storage
from muniment.documents.content import scanning
from muniment.jobs.handlers import Postponed
from muniment.mail import delivery
from muniment.outbound import addresses
from muniment.outbound.deadlines import StillSilent
from muniment.outbound.fetching import fetch
from muniment.store.postgresql.connection import EndingConnection
from services.ports import wait_until
from services.silent import Halting, Silent, dropped

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]  # the mail that waits is in the database
ENOUGH_S = 30.0
"""The deadlines below are about a second, and the machine may be busy; without one, a call would take minutes."""
BEGINNINGS = {
    "HTTP": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
    "SMTP": b"220-harbour ",
    "clamd": b"PON",
}


@contextlib.contextmanager
def service(state, protocol):
    """Provide the address of a service that is in a state."""
    if state == "dropped":
        with dropped() as address:
            yield address
    elif state == "silent":
        with Silent() as silent:
            yield silent.address
    else:
        every = {"every_s": 0.05, "rest": b"x"} if state == "a byte at a time" else {}
        with Halting(BEGINNINGS[protocol], **every) as halting:
            yield halting.address


def using(monkeypatch, **settings):
    current = config.current()
    kept = {setting.name: getattr(current, setting.name) for setting in config.SETTINGS}
    monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, **settings}))


def ask_store(address, monkeypatch, tmp_path):
    monkeypatch.setattr(storage, "ANSWER_S", 0.5)
    monkeypatch.setattr(storage, "CONNECT_S", 0.5)
    monkeypatch.setattr(storage, "REQUEST_S", 2)
    monkeypatch.setattr(storage, "RETRY_S", 0.2)
    store = storage.Storage(tmp_path / "blobs", f"s3://k:s@bucket/kept?region=us-east-1&endpoint=http://{address}")
    b"".join(store.stream("a"))


def ask_scanner(address, monkeypatch, _):
    monkeypatch.setattr(scanning, "ANSWER_S", 1.0)
    using(monkeypatch, clamd=address)
    scanning.scan([b"text"])


def ask_mail(address, monkeypatch, _):
    monkeypatch.setattr(delivery, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(delivery, "DELIVERY_S", 2.0)
    delivery._send(f"smtp://{address}", {"to": ["ada@moss.example"]}, b"Subject: tide\n\nIt is high.\n")


def ask_provider(address, monkeypatch, _):
    monkeypatch.setattr(identity_providers, "ANSWER_S", 1.0)
    with get_adapter().get_requests_session() as session:
        session.get(f"http://{address}/.well-known/openid-configuration").json()


def ask_stripe(address, monkeypatch, _):
    monkeypatch.setattr(stripe_checkout, "ANSWER_S", 1.0)
    checkout = stripe_checkout.StripeCheckout(
        "k", "w", api_base=f"http://{address}", checkout_url="https://pay.example"
    )
    checkout.look("cs_1")


def ask_website(address, monkeypatch, _):
    host, _, port = address.rpartition(":")
    fetch(f"http://{host}/", accept="*/*", port=int(port), is_allowed=lambda _: True, deadline_s=1.0)


STATES = ["silent", "stops in the middle", "a byte at a time", "dropped"]
SERVICES = {
    "S3": ("HTTP", ask_store, obstore.exceptions.BaseError),
    "virus scanner": ("clamd", ask_scanner, scanning.ScannerAway),
    "mail": ("SMTP", ask_mail, Postponed),
    "identity provider": ("HTTP", ask_provider, OAuth2Error),
    "Stripe": ("HTTP", ask_stripe, ProviderUnavailable),
    "a website": ("HTTP", ask_website, OSError),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", SERVICES)
def test_a_call_ends_by_its_deadline(name, state, monkeypatch, tmp_path):
    protocol, ask, error = SERVICES[name]
    with service(state, protocol) as address:
        began = time.monotonic()
        with pytest.raises(error):
            ask(address, monkeypatch, tmp_path)
        assert time.monotonic() - began < ENOUGH_S


@pytest.fixture
def names(monkeypatch):
    """Let the name servers be silent."""
    from threading import Event

    told = Event()

    def look_up(name, *_, **__):
        told.wait(120)
        raise socket.gaierror(name)

    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda name, *more, **kw: (look_up if "example" in str(name) else real)(name, *more, **kw),
    )
    yield
    told.set()
    wait_until(lambda: addresses._lookups._value == addresses.LOOKUPS, within_s=60, what="the end of the look-ups")


@pytest.mark.whole(keeps="all")
@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("name", ["virus scanner", "mail", "identity provider", "Stripe", "a website"])
def test_a_call_ends_by_its_deadline_when_the_name_servers_are_silent(name, monkeypatch, tmp_path):
    _, ask, error = SERVICES[name]
    began = time.monotonic()
    with pytest.raises(error):
        ask("service.example:4000", monkeypatch, tmp_path)
    assert time.monotonic() - began < ENOUGH_S


@pytest.mark.usefixtures("names")
def test_a_connection_to_the_database_ends_by_its_deadline_when_the_name_servers_are_silent():
    import psycopg

    began = time.monotonic()
    with pytest.raises(psycopg.OperationalError, match="the name servers took too long"):
        EndingConnection.opened("postgresql://u@one.example,two.example:5433/registry")
    assert time.monotonic() - began < ENOUGH_S


def test_an_address_that_is_known_is_used_beside_a_name_that_is_not(monkeypatch):
    import psycopg

    def look_up(name, port, *_, **__):
        if name == "gone.example":
            raise socket.gaierror(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))] * 2

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(psycopg.OperationalError, match=r'at "127\.0\.0\.1", port 9 failed'):
        EndingConnection.opened("host=gone.example,db.example port=5432,9 user=u dbname=registry")
    with pytest.raises(psycopg.OperationalError, match=r"the address of 'gone\.example' is not known"):
        EndingConnection.opened("host=gone.example user=u dbname=registry")


def test_while_the_store_is_silent_one_caller_waits_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(storage, "ANSWER_S", 0.5)
    monkeypatch.setattr(storage, "CONNECT_S", 0.4)
    with Silent() as silent:
        url = f"s3://k:s@bucket/kept?region=us-east-1&endpoint=http://{silent.address}"
        store = storage.Storage(tmp_path / "blobs", url)
        with pytest.raises(obstore.exceptions.BaseError):
            store.size_bytes("a")
        with store._service.asked(), pytest.raises(StillSilent) as refused:
            store.write("a", b"text")
        assert store.is_away(refused.value)


def test_a_message_that_was_accepted_is_not_sent_again_when_the_farewell_is_not_answered(monkeypatch):
    monkeypatch.setattr(delivery, "TIMEOUT_S", 0.5)
    answers = b"220 harbour\r\n250 harbour\r\n250 from\r\n250 to\r\n354 go on\r\n250 kept\r\n"
    with Halting(answers) as server:
        delivery._send(f"smtp://{server.address}", {"to": ["ada@moss.example"]}, b"Subject: tide\n\nIt is high.\n")
        assert server.answered == 1
