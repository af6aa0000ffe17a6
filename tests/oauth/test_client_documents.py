"""Client metadata documents are fetched from public addresses only, in time and in size."""

import datetime as dt
import json
import ssl
import threading
import time

import pytest
from django.core.cache import cache

from muniment.kernel.ids import now
from muniment.oauth import client_documents, clients
from muniment.oauth.errors import Refusal
from muniment.oauth.models import Client
from muniment.outbound.addresses import is_public
from services.site import certificate_for, head, site

ADDRESS = "https://app.example/oauth/client.json"
DOCUMENT = {"client_id": ADDRESS, "client_name": "Tide Table", "redirect_uris": ["https://app.example/cb"]}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return certificate_for("app.example", tmp_path_factory.mktemp("tls"))


def read(certificate, port, address=ADDRESS, **how):
    return client_documents.read(
        address,
        **{
            "resolve": lambda *_: ["127.0.0.1"],
            "is_allowed": lambda address: address == "127.0.0.1",
            "tls": ssl.create_default_context(cafile=certificate),
            "port": port,
            **how,
        },
    )


def test_a_document_is_read_from_the_address_that_was_checked(certificate):
    with site(certificate, head(), json.dumps(DOCUMENT).encode()) as (port, asked):
        assert read(certificate, port) == DOCUMENT
    assert asked[0].startswith(b"GET /oauth/client.json HTTP/1.1\r\nHost: app.example\r\n")


def test_the_name_is_resolved_once_and_the_connection_goes_to_that_address(certificate):
    """A name that changes its answer after the check (DNS rebinding) changes nothing."""
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    with site(certificate, head(), json.dumps(DOCUMENT).encode()) as (port, _):
        assert read(certificate, port, resolve=lambda *_: next(answers)) == DOCUMENT
    assert next(answers) == ["10.0.0.1"]


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "240.0.0.1"),
        *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "::127.0.0.1", "fe80::1%eth0", "no address"),
        "fec0::1",
    ],
)
def test_an_address_that_is_not_public_is_never_connected_to(address):
    assert not is_public(address)
    with pytest.raises(ValueError, match="not public"):
        client_documents.read(ADDRESS, resolve=lambda *_: ["93.184.216.34", address])


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_public_addresses_are(address):
    assert is_public(address)


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((head("302 Found", Location="http://169.254.169.254/"),), id="a redirect"),
        pytest.param((head("404 Not Found"), b"{}"), id="404"),
        pytest.param((head(), b"x" * 9_000), id="over 8 KB"),
        pytest.param((b"x" * 30_000,), id="an endless head"),
        pytest.param((head(Content_Type="text/html"), b"{}"), id="HTML"),
        pytest.param((head(), b"[1]"), id="no object"),
        pytest.param((head(), b"{"), id="broken JSON"),
        pytest.param((head(), b'{"client_id": "a", "client_id": "b"}'), id="a member twice"),
        pytest.param((head(), b'{"x": Infinity}'), id="infinity"),
        pytest.param((b"SSH-2.0-OpenSSH\r\n",), id="no HTTP"),
        pytest.param((), id="nothing"),
    ],
)
def test_an_answer_that_is_no_document_is_refused(certificate, pieces):
    import http.client

    with site(certificate, *pieces) as (port, _), pytest.raises((OSError, ValueError, http.client.HTTPException)):
        read(certificate, port)


def test_an_endless_answer_is_cut_off_once_it_is_too_large(certificate):
    with (
        site(certificate, head() + b"x" * 40_000, pause_s=5) as (port, _),
        pytest.raises(ValueError, match="too large"),
    ):
        read(certificate, port, deadline_s=60)


def test_a_site_that_drips_is_cut_off(certificate):
    began = time.monotonic()
    with (
        site(certificate, *[b"H"] * 1_000, pause_s=0.1) as (port, _),
        pytest.raises(TimeoutError),
    ):
        read(certificate, port, deadline_s=0.5)
    assert time.monotonic() - began < 60, "it took as long as the whole answer"


def test_a_name_that_takes_too_long_to_resolve_leaves_no_time_to_connect(certificate):
    with pytest.raises(TimeoutError):
        read(certificate, 1, deadline_s=0)  # a connection would be refused


def test_a_site_of_another_name_is_refused(certificate):
    with site(certificate, head(), b"{}") as (port, _), pytest.raises(ssl.SSLError):
        read(certificate, port, "https://other.example/client.json")


@pytest.mark.parametrize(
    "identifier",
    [
        *("http://app.example/client.json", "https://app.example", "https://app.example/", "https:///client.json"),
        *(
            "https://a@app.example/c",
            "https://app.example/c#x",
            "https://app.example/a/../c",
            "https://app.example/./c",
        ),
        *("https://app.example:8443/c", "https://app.example:x/c", "https://app.example/c d", "ftp://app.example/c"),
        *("https://app.example\\@evil.example/c", "https://app.example/\x7f", "https://app.example/ä"),
    ],
)
def test_only_plain_https_addresses_with_a_path_name_a_document(identifier):
    assert not client_documents.is_document_address(identifier)


@pytest.mark.parametrize("identifier", [ADDRESS, "https://app.example:443/c", "https://app.example/~ada/!c"])
def test_a_plain_https_address_names_a_document(identifier):
    assert client_documents.is_document_address(identifier)


@pytest.mark.django_db
class TestKept:
    """What is kept of documents, and of failures."""

    @pytest.fixture(autouse=True)
    def _clean(self):
        cache.clear()

    def test_a_document_is_asked_for_once_an_hour(self, monkeypatch):
        calls = []
        monkeypatch.setattr(client_documents, "read", lambda address: calls.append(address) or DOCUMENT)
        first = clients.find_client(ADDRESS, fetch_for=1)
        assert clients.find_client(ADDRESS, fetch_for=1) == first
        assert calls == [ADDRESS]
        assert (first.name, first.kind, clients.home_of(first)) == ("Tide Table", "document", "app.example")
        Client.objects.update(fetched_at=now() - dt.timedelta(hours=2))
        clients.find_client(ADDRESS, fetch_for=1)
        assert len(calls) == 2

    def test_only_a_few_documents_are_fetched_at_once(self, monkeypatch):
        monkeypatch.setattr(client_documents, "read", lambda _: pytest.fail("fetched"))
        monkeypatch.setattr(client_documents, "_slots", threading.BoundedSemaphore(1))
        with client_documents._slots, pytest.raises(Refusal) as refused:
            clients.find_client(ADDRESS, fetch_for=1)
        assert refused.value.error == "temporarily_unavailable"
        assert not Client.objects.exists()

    def test_a_failure_is_kept_for_a_minute(self, monkeypatch):
        calls = []

        def fail(address):
            calls.append(address)
            raise OSError

        monkeypatch.setattr(client_documents, "read", fail)
        for _ in range(3):
            with pytest.raises(Refusal, match="could not be read"):
                clients.find_client(ADDRESS, fetch_for=1)
        assert len(calls) == 1

    def test_nothing_is_fetched_where_it_must_not_be(self, monkeypatch):
        monkeypatch.setattr(client_documents, "read", lambda _: pytest.fail("fetched"))
        assert clients.find_client(ADDRESS, fetch_for=None) is None

    def test_no_account_uses_up_what_others_may_fetch(self, monkeypatch):
        moment = now()
        monkeypatch.setattr(client_documents, "now", lambda: moment)  # the hour does not turn
        monkeypatch.setattr(client_documents, "FETCHES_A_MINUTE", client_documents.FETCHES_AN_HOUR)
        monkeypatch.setattr(client_documents, "read", lambda address: {**DOCUMENT, "client_id": address})
        most = client_documents.FETCHES_OF_AN_ACCOUNT_AN_HOUR
        for number in range(most):
            clients.find_client(f"{ADDRESS}?{number}", fetch_for=1)
        for number in range(most, most + 2 * client_documents.FETCHES_AN_HOUR):
            with pytest.raises(Refusal) as refused:
                clients.find_client(f"{ADDRESS}?{number}", fetch_for=1)
            assert refused.value.error == "temporarily_unavailable"
        assert clients.find_client(ADDRESS, fetch_for=2).identifier == ADDRESS

    def test_over_the_limit_of_fetching_a_stored_document_holds_and_after_a_failure_it_does_not(self, monkeypatch):
        monkeypatch.setattr(client_documents, "read", lambda _: DOCUMENT)
        known = clients.find_client(ADDRESS, fetch_for=1)
        Client.objects.update(fetched_at=now() - dt.timedelta(hours=2))
        with monkeypatch.context() as limited:
            limited.setattr(client_documents, "FETCHES_AN_HOUR", 0)
            assert clients.find_client(ADDRESS, fetch_for=1) == known
            with pytest.raises(Refusal) as refused:
                clients.find_client(f"{ADDRESS}?other", fetch_for=1)
        assert refused.value.error == "temporarily_unavailable"
        monkeypatch.setattr(client_documents, "read", lambda _: {**DOCUMENT, "client_id": "another"})
        with pytest.raises(Refusal) as changed:
            clients.find_client(ADDRESS, fetch_for=1)
        assert changed.value.error == "invalid_client"

    def test_fetching_has_a_bucket_of_its_own(self, monkeypatch):
        monkeypatch.setattr(client_documents, "read", lambda address: {**DOCUMENT, "client_id": address})
        more = client_documents.FETCHES_A_MINUTE * 2 + 1  # the minute may turn once meanwhile

        def fetch_many():
            for number in range(more):
                clients.find_client(f"{ADDRESS}?{number}", fetch_for=number)

        with pytest.raises(Refusal) as refused:
            fetch_many()
        assert refused.value.error == "temporarily_unavailable"

    @pytest.mark.whole(keeps="all")
    @pytest.mark.parametrize(
        "change",
        [
            {"client_id": "https://other.example/c"},
            {"client_name": None},
            {"client_name": "Muniment helper"},
            {"redirect_uris": []},
            {"redirect_uris": ["javascript:alert(1)"]},
            {"redirect_uris": "https://app.example/cb"},
        ],
    )
    def test_a_document_that_says_something_else_is_refused(self, monkeypatch, change):
        monkeypatch.setattr(client_documents, "read", lambda _: {**DOCUMENT, **change})
        with pytest.raises(Refusal) as refused:
            clients.find_client(ADDRESS, fetch_for=1)
        assert refused.value.error == "invalid_client"
        assert not Client.objects.exists()

    def test_a_document_may_prefer_a_method_that_we_lack(self, monkeypatch):
        monkeypatch.setattr(
            client_documents, "read", lambda _: {**DOCUMENT, "token_endpoint_auth_method": "private_key_jwt"}
        )
        assert clients.find_client(ADDRESS, fetch_for=1).redirect_uris == ["https://app.example/cb"]
