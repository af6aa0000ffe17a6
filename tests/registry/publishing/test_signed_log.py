"""Checkpoints of the log are signed by a key that is made once, rotated with a word of the former, and kept sealed."""

from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from django.db import connection

from make.registry import bodies, owner, published
from muniment import config
from muniment.accounts.keys import sealed
from muniment.api.public_log import PublicLog
from muniment.kernel.ids import now
from muniment.kernel.problems import NotFound, Unavailable
from muniment.kernel.signed_notes import Checkpoint, Succession, UnknownSignerError, verify
from muniment.registry.models import LogKey
from muniment.registry.publishing import publisher, signed_log
from muniment.server.app.log_source import DatabaseLog
from muniment.store import public_log

pytestmark = pytest.mark.django_db(transaction=True)


def log():
    return DatabaseLog().read(lambda _, found: found)


def signed():
    """Return the checkpoint of the log as it is."""
    state = log().state
    return signed_log.sign_checkpoint(Checkpoint(state.origin, state.size, state.root))


def test_the_first_reader_finds_a_name_and_a_key_that_stay():
    LogKey.objects.all().delete()
    published(owner())
    first = log()
    assert len(first.keys) == 1
    assert first.state.origin.rpartition("/")[2] == first.state.name
    note = verify(signed(), first.keys)
    assert Checkpoint.parse(note.text) == Checkpoint(first.state.origin, 1, first.state.root)
    signed_log.prepare()
    assert log().keys == first.keys
    assert LogKey.objects.count() == 1


@pytest.mark.parametrize(
    ("settings", "host"),
    [({"base_url": "https://registry.example:8443"}, "registry.example:8443"), ({}, "muniment")],
)
def test_the_log_is_named_by_the_public_host_if_it_is_known(settings, host, tmp_path):
    assert signed_log.host_of(config.Config({}, data=tmp_path, **settings)) == host


def test_the_log_keeps_its_name_when_the_host_changes(monkeypatch):
    origin = log().state.origin
    monkeypatch.setattr(signed_log, "host_of", lambda _: "other.example")
    signed_log.settle()
    assert log().state.origin == origin


def test_a_rotated_key_is_named_by_the_former_which_signs_for_90_days():
    former = log().keys[0]
    rotated = signed_log.rotate_key()
    assert rotated.is_vouched
    found = log()
    assert found.keys == [rotated.key, former]
    (note,) = found.successions
    assert Succession.parse(verify(note, [former]).text) == Succession(found.state.origin, rotated.key)
    assert len(verify(signed(), found.keys).keys) == 2
    LogKey.objects.filter(ended_at__isnull=False).update(ended_at=now() - timedelta(days=91))
    assert log().keys == [rotated.key]
    with pytest.raises(UnknownSignerError):
        verify(signed(), [former])
    assert log().successions == [note], "who knew the first key still finds the present one"
    last = signed_log.rotate_key()
    assert len(log().successions) == 2
    assert LogKey.objects.earliest("pk").sealed == "", "it signs no more"
    verify(signed(), [last.key])


def test_a_key_that_cannot_be_opened_signs_nothing_and_names_no_other():
    log()
    LogKey.objects.update(sealed=Fernet(Fernet.generate_key()).encrypt(b"x").decode())
    with pytest.raises(Unavailable, match="cannot be opened"):
        signed()
    rotated = signed_log.rotate_key()
    assert not rotated.is_vouched
    assert (log().keys, log().successions) == ([rotated.key], [])
    verify(signed(), [rotated.key])


def test_a_former_key_that_cannot_be_opened_hinders_nothing():
    log()
    rotated = signed_log.rotate_key()
    LogKey.objects.filter(ended_at__isnull=False).update(sealed=Fernet(Fernet.generate_key()).encrypt(b"x").decode())
    assert [key.text() for key in verify(signed(), [rotated.key]).keys] == [rotated.key]


def test_the_private_key_is_sealed_and_follows_the_secret_key(settings):
    log()
    before = signed()
    (kind,) = [each for each in sealed.KINDS if each.words == "keys of the public log"]
    former = settings.SECRET_KEY
    assert kind.reseal(["another-secret-key-of-this-instance", former]) == 1
    settings.SECRET_KEY = "another-secret-key-of-this-instance"
    assert signed() == before


def test_a_log_that_began_again_has_another_name_and_no_word_of_former_keys():
    published(owner())
    first = log()
    signed_log.rotate_key()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM published_leaf")
    published(owner())
    second = log()
    assert second.state.former.origin == first.state.origin
    assert second.state.former.root == first.state.root
    assert second.state.origin != first.state.origin
    assert second.successions == []
    verify(signed(), second.keys)


def test_a_log_that_was_lost_begins_when_it_is_read():
    published(owner())
    with connection.cursor() as cursor:
        for table in (public_log.STATE_TABLE, public_log.LEAF_TABLE):
            cursor.execute(f"DELETE FROM {table}")
    assert log().state.size == 1
    assert publisher.log_faults() == []


def test_the_api_reads_the_log_of_the_database():
    slug = published(owner()).slug
    answers = PublicLog("https://registry.example", source=DatabaseLog())
    nothing = dict.fromkeys(("kind", "id", "index", "size", "formerSize", "cosignatures"))
    proof = answers.proof({**nothing, "kind": "company", "id": slug}).body
    assert public_log.body_digest(bodies()["company", slug]).hex().encode() in proof
    assert b"\xe2\x80\x94" in answers.checkpoint(nothing).body
    assert b'"former":null' in answers.describe().body


def test_a_former_log_is_told_even_if_its_root_is_lost():
    log()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE published_log SET former_origin = 'a/b', former_size = 7, former_root = %s", [b""])
    described = PublicLog("", source=DatabaseLog()).describe().body
    assert b'"former":{"origin":"a/b","size":7,"root":null}' in described


def test_a_mirror_names_the_log_of_its_origin():
    with pytest.raises(NotFound, match="no log of its own") as refused:
        PublicLog("", origin="https://registry.example").describe()
    assert "https://registry.example/api/v1/log" in refused.value.hint
