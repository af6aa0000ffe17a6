"""The Python client verifies a document with the proof of a registry's log."""

import asyncio
import hashlib
import json

import pytest

from muniment.kernel.signed_notes import vkey
from muniment_client import AsyncClient, Client, MalformedResponseError
from services.log_site import LogSite, encoded, private_key, witness_key
from services.origin import Given, company, person

PICTURE = "/pictures/0123456789abcdef0123456789abcdef-144.webp"


@pytest.fixture
def site():
    with LogSite() as made:
        made.publish("company", "harbor-trust", company("harbor-trust", logoUrl=PICTURE))
        for number in range(6):
            made.publish("person", f"p-{number}", person(f"p-{number}"))
        yield made


@pytest.fixture
def verify(site):
    with Client(site.address) as client:
        yield lambda key="p-3", kind="person", **options: client.verify(
            kind, key, site.documents.get((kind, key), b"{}"), **options
        )


def changing(site, change):
    def changed(_, given):
        data = json.loads(given.body)["data"]
        data.update(change(data))
        return Given(200, json.dumps({"data": data}).encode())

    site.answers["/api/v1/log/proof"] = changed


def test_a_document_is_verified_by_the_proof_of_the_log(site, verify):
    found = verify()
    assert (found.is_published, found.is_current, found.is_logged) == (True, True, True)
    assert found.checkpoint == site.note()
    for number in range(6):
        assert verify(f"p-{number}").is_logged


def test_witnesses_that_are_named_must_all_have_cosigned(site, verify):
    first, second, third = [witness_key(number).text() for number in (1, 2, 3)]
    assert not verify(witnesses=[first]).is_logged
    site.cosign(1, 2)
    found = verify(log_key=site.vkey(1), witnesses=[first, second, first])
    assert found.is_logged
    assert "witness2.example" in found.checkpoint
    assert verify(witnesses=[second]).is_logged
    assert not verify(witnesses=[third]).is_logged
    assert not verify(witnesses=[first, third]).is_logged
    assert not verify(log_key=site.vkey(2), witnesses=[first]).is_logged
    for malformed in ("x", site.vkey(1)):
        with pytest.raises(ValueError, match="The key of a witness has the form"):
            verify(witnesses=[malformed])
    with pytest.raises(ValueError, match="The key of a log has the form"):
        verify(log_key=first)


@pytest.mark.parametrize("change", [("\n7\n", "\n8\n"), ("— witness1.example ", "— witness1.example A")])
def test_an_altered_cosignature_proves_nothing(site, verify, change):
    site.cosign(1)
    changing(site, lambda proof: {"checkpoint": proof["checkpoint"].replace(*change)})
    assert not verify(witnesses=[witness_key(1).text()]).is_logged


def test_the_checkpoint_is_signed_by_the_key(site, verify):
    assert verify(log_key=site.vkey(1)).is_logged
    assert not verify(log_key=site.vkey(2)).is_logged
    with pytest.raises(ValueError, match=r"has the form name\+id\+key"):
        verify(log_key="x")
    site.keys = [2, 1]
    assert verify(log_key=site.vkey(1)).is_logged
    assert not verify(log_key=vkey("other.example", private_key(1).public_key().public_bytes_raw())).is_logged


def test_a_forged_signature_is_refused(site, verify):
    signature_of_another = site.note(3).rpartition("\n\n")[2]
    forged = site.note().rpartition("\n\n")[0] + "\n\n" + signature_of_another
    changing(site, lambda _: {"checkpoint": forged})
    assert verify().is_logged
    assert not verify(log_key=site.vkey(1)).is_logged


def test_the_address_of_the_server_is_no_part_of_what_was_logged(site, verify):
    served = site.documents["company", "harbor-trust"].replace(PICTURE.encode(), f"{site.address}{PICTURE}".encode())
    site.answers["/api/v1/companies/harbor-trust"] = lambda *_: Given(200, b'{"data":%b}' % served)
    found = verify("harbor-trust", "company")
    assert found.is_logged
    assert found.sha256 == hashlib.sha256(served).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: {"index": data["index"] ^ 1},
        lambda data: {"index": data["size"]},
        lambda data: {"hashes": data["hashes"][:-1]},
        lambda data: {"size": data["size"] - 1},
        lambda data: {"leafData": encoded(bytes(32))},
        lambda data: {"leaf": {**data["leaf"], "change": "state"}},
        lambda data: {"leaf": {**data["leaf"], "key": "p-1"}},
        lambda data: {"leaf": {**data["leaf"], "digest": None}},
        lambda data: {"checkpoint": "nothing"},
        lambda data: {"checkpoint": data["checkpoint"].replace("\n7\n", "\n7\nA")},
    ],
)
def test_a_proof_of_something_else_shows_nothing(site, verify, change):
    changing(site, change)
    found = verify()
    assert found.is_current
    assert not found.is_logged


def test_a_document_that_was_changed_without_a_leaf_is_not_logged(site, verify):
    site.documents["person", "p-3"] = json.dumps(person("p-3", "Forged")).encode()
    found = verify()
    assert (found.is_current, found.is_logged) == (True, False)
    assert len([path for path in site.asked if "/log/proof" in path]) == 3


def test_a_registry_without_a_log_shows_nothing(site, verify):
    site.answers["/api/v1/log/proof"] = lambda *_: Given(404, b"{}")
    found = verify()
    assert (found.is_current, found.is_logged, found.checkpoint) == (True, False, "")


def test_a_malformed_proof_is_no_answer(site, verify):
    changing(site, lambda _: {"hashes": [encoded(bytes(31))]})
    with pytest.raises(MalformedResponseError):
        verify()


def test_the_asynchronous_client_verifies_too(site):
    async def ask():
        async with AsyncClient(site.address) as client:
            return await client.verify("person", "p-3", site.documents["person", "p-3"], log_key=site.vkey(1))

    assert asyncio.run(ask()).is_logged
