"""Which key a process uses, and when it refuses a database."""

import logging
from datetime import timedelta

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.sessions.models import Session

from make.accounts import PASSWORD, Letters, account, signed_in
from muniment import config
from muniment.accounts.keys import key_file, keyring
from muniment.accounts.keys.key_file import fingerprint
from muniment.accounts.models import KeptSecret, KeyHolder, SecretKey
from muniment.accounts.security.models import SecurityEvent
from muniment.accounts.sessions import SessionStore
from muniment.encryption import seal_under
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict
from muniment.mail import outgoing

OLD, NEW, LONGER = "old-key-" * 5, "new-key-" * 5, "third-key" * 5
pytestmark = pytest.mark.django_db


@pytest.fixture
def node(settings, monkeypatch):
    """Return a function that gives this process the keys of a node, as after a start."""
    SecretKey.objects.all().delete()

    def has(text, **given):
        values = {each.name: getattr(config.current(), each.name) for each in config.SETTINGS}
        monkeypatch.setattr(config, "_current", config.Config({}, **values | {"secret_key": text} | given))
        settings.SECRET_KEYS_TEXT = text
        settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS = text.split(",")

    return has


@pytest.fixture
def file_node(node, settings, tmp_path):
    """Return a function that gives this process a key file, and the file."""
    file = tmp_path / "keys" / "django.key"
    file.parent.mkdir()

    def has(text):
        node(text, secret_key="", data=tmp_path)
        file.write_text(text)
        settings.SECRET_KEYS_TEXT = text
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = text, []

    return has, file


def recorded():
    return dict(SecretKey.objects.values_list("fingerprint", "state"))


def sealed_factor(key):
    factor = TOTP.activate(account("ada@harbour.example"), "JBSWY3DPEHPK3PXP").instance
    factor.data = {"secret": seal_under(key, b"JBSWY3DPEHPK3PXP", "second factor")}
    factor.save()
    return factor


def test_the_first_start_of_a_new_instance_records_its_key(node):
    node(OLD)
    keyring.settle(is_new=True)
    assert recorded() == {fingerprint(OLD): "current"}


def test_a_database_without_anything_sealed_waits_for_the_operator(node):
    node(OLD)
    keyring.settle()
    assert recorded() == {}
    assert keyring.adopt(COMMAND) == fingerprint(OLD)
    assert recorded() == {fingerprint(OLD): "current"}
    assert SecurityEvent.objects.filter(event="keys_rotated").count() == 1


def test_the_key_that_opens_what_is_sealed_is_recorded_whatever_the_order(node):
    sealed_factor(OLD)
    node(f"{NEW},{OLD}")
    keyring.settle()
    assert recorded() == {fingerprint(OLD): "current"}


@pytest.mark.parametrize("key", [f"{OLD},{NEW}", "tr0ub4dor,3", f"{OLD}, with a comma"])
def test_a_single_key_that_contains_a_comma_keeps_working(node, settings, key):
    sealed_factor(key)
    node(key)
    keyring.settle()
    assert recorded() == {fingerprint(key): "current"}
    assert key == settings.SECRET_KEY
    assert settings.SECRET_KEY_FALLBACKS == []
    node(f"{NEW},{key}")
    keyring.settle()
    assert key == settings.SECRET_KEY


def test_nodes_of_different_keys_are_told_and_not_refused_as_long_as_nothing_is_recorded(node, caplog):
    sealed_factor(OLD)
    node(NEW)
    with caplog.at_level(logging.WARNING):
        keyring.settle()
    assert "have used different secret keys" in caplog.text
    assert recorded() == {}


def test_a_node_with_another_key_is_refused_and_told_which_it_lacks(node):
    node(OLD)
    keyring.settle(is_new=True)
    node(NEW)
    with pytest.raises(keyring.WrongKey, match=f"{fingerprint(OLD)}, which this node lacks; it has {fingerprint(NEW)}"):
        keyring.settle()


def test_a_node_signs_with_the_key_of_the_database_whatever_its_own_order(node, settings):
    node(OLD)
    keyring.settle(is_new=True)
    node(f"{NEW},{OLD}")
    keyring.settle()
    assert (settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS) == (OLD, [NEW])
    keyring.rotate(COMMAND)
    assert (settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS) == (NEW, [OLD])
    assert recorded() == {fingerprint(OLD): "former", fingerprint(NEW): "current"}


def test_a_short_key_is_neither_a_new_key_nor_accepted_beside_another(node, settings):
    node(OLD)
    keyring.settle(is_new=True)
    node(f"{OLD},guessable")
    keyring.settle()
    assert settings.SECRET_KEY_FALLBACKS == []
    with pytest.raises(BadRequest, match="shorter"):
        keyring.rotate(COMMAND)


def test_a_rotation_needs_a_recorded_and_a_new_key(node):
    node(OLD)
    with pytest.raises(Conflict):
        keyring.rotate(COMMAND)
    keyring.settle(is_new=True)
    with pytest.raises(BadRequest, match="lists no new key"):
        keyring.rotate(COMMAND)


def test_only_what_is_sealed_under_a_former_key_is_sealed_again(node):
    node(f"{NEW},{OLD}")
    factor = sealed_factor(OLD)
    second_factors = keyring.sealed.KINDS[0]
    assert second_factors.reseal([NEW, OLD]) == 1
    factor.refresh_from_db()
    assert second_factors.reseal([NEW, OLD]) == 0
    again = factor.__class__.objects.get(pk=factor.pk)
    assert again.data == factor.data


class Killed(BaseException):
    """The process ended here."""


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_a_rotation_that_was_killed_is_finished_by_the_next(node, monkeypatch, kind):
    node(OLD)
    keyring.settle(is_new=True)
    factor = sealed_factor(OLD)
    store = SessionStore()
    store["form"] = "kept"
    store.create()
    letters = Letters()
    outgoing.send("ada@harbour.example", "Waiting", "for the mail server")
    node(f"{NEW},{OLD}")
    keyring.settle()
    kinds = list(keyring.sealed.KINDS)

    def killed(_keys):
        raise Killed

    broken = [each._replace(reseal=killed) if number == kind else each for number, each in enumerate(kinds)]
    monkeypatch.setattr(keyring.sealed, "KINDS", tuple(broken))
    with pytest.raises(Killed):
        keyring.rotate(COMMAND)
    monkeypatch.setattr(keyring.sealed, "KINDS", tuple(kinds))
    with pytest.raises(Conflict, match="is still needed"):
        keyring.drop(COMMAND, fingerprint(OLD))
    keyring.rotate(COMMAND)
    node(NEW)
    factor.refresh_from_db()
    assert not factor.wrap().validate_code("000000")  # it opens
    assert keyring.sealed.survey([NEW])[""] == 0
    assert SessionStore(store.session_key)["form"] == "kept"
    assert [subject for subject, _ in letters.to("ada@harbour.example")] == ["[Muniment] Waiting"]


def test_what_is_saved_during_a_pass_is_not_overwritten(node, monkeypatch):
    node(OLD)
    keyring.settle(is_new=True)
    store = SessionStore()
    store["step"] = 1
    store.create()

    def saved_meanwhile(*_):
        Session.objects.filter(pk=store.session_key).update(
            session_data=seal_under(OLD, store.serializer().dumps({"step": 2}), "session")
        )
        return {}

    monkeypatch.setattr(keyring.sealed, "_with_hash", lambda one, *_: [saved_meanwhile(), one][1])
    node(f"{NEW},{OLD}")
    keyring.settle()
    keyring.rotate(COMMAND)
    monkeypatch.undo()
    node(f"{NEW},{OLD}")
    keyring.rotate(COMMAND)
    node(NEW)
    assert SessionStore(store.session_key)["step"] == 2


def test_a_rotation_does_not_revive_a_session_that_a_new_password_has_ended(node):
    node(OLD)
    keyring.settle(is_new=True)
    ada = account("ada@harbour.example")
    browser = signed_in(ada)
    ada.set_password("another, longer password")
    ada.save()
    node(f"{NEW},{OLD}")
    keyring.settle()
    keyring.rotate(COMMAND)
    node(NEW)
    assert browser.get("/manage").url.startswith("/accounts/login/")


def test_a_former_key_goes_when_nothing_depends_on_it(node, settings):
    node(OLD)
    keyring.settle(is_new=True)
    node(f"{NEW},{OLD}")
    keyring.settle()
    keyring.rotate(COMMAND)
    with pytest.raises(Conflict, match="what it signed is valid until"):
        keyring.drop(COMMAND, fingerprint(OLD))
    with pytest.raises(BadRequest):
        keyring.drop(COMMAND, fingerprint(NEW))
    SecretKey.objects.filter(state="former").update(since="2026-01-01T00:00:00Z")
    assert keyring.drop(COMMAND, fingerprint(OLD)) is False
    assert recorded() == {fingerprint(NEW): "current"}
    node(f"{LONGER},{NEW}")
    keyring.rotate(COMMAND)
    assert settings.SECRET_KEY == LONGER


def test_a_lost_key_is_replaced_only_on_request_and_what_it_sealed_is_named(node):
    node(OLD)
    keyring.settle(is_new=True)
    factor = sealed_factor(OLD)
    store = SessionStore()
    store["form"] = "kept"
    store.create()
    KeptSecret.objects.create(name="suppression", sealed=seal_under(OLD, b"x", "kept secret"))
    node(NEW)
    with pytest.raises(Conflict, match=f"The database uses the key {fingerprint(OLD)}"):
        keyring.adopt(COMMAND)
    assert keyring.adopt(COMMAND, replace=True) == fingerprint(NEW)
    assert keyring.status().unopened == {
        "second factors": 1,
        "sessions": 0,
        "kept secrets": 0,
        "waiting messages": 0,
        "keys of the public log": 0,
        "secrets of webhooks": 0,
        "former secrets of webhooks": 0,
        "addresses of share links": 0,
    }
    assert factor.__class__.objects.filter(pk=factor.pk).exists()
    assert not Session.objects.filter(pk=store.session_key).exists()


def test_a_session_stays_the_same_while_nodes_sign_with_different_keys(node, settings):
    person = account("ada@harbour.example", password=PASSWORD)
    node(OLD)
    keyring.settle(is_new=True)
    client, elsewhere = signed_in(person), signed_in(person)
    for current, other in ((NEW, OLD), (OLD, NEW)):  # a node that has switched, and one that has not
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = current, [other]
        answer = client.get("/manage/tokens")
        assert answer.status_code == 200
        assert settings.SESSION_COOKIE_NAME not in answer.cookies
    person.set_password("another four harbours")
    person.save()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert elsewhere.get("/manage/tokens").status_code == 302


@pytest.mark.parametrize("old", [OLD, f"{OLD}\n", "short", "tr0ub4dor,3", f"{OLD},{LONGER}", "two\nlines\n"])
def test_a_key_file_is_rotated_twice_and_holds_one_key_in_the_end(file_node, settings, old):
    has, file = file_node
    has(old)
    factor = sealed_factor(old)
    keyring.settle()
    assert recorded() == {fingerprint(old): "current"}
    keys = [old]
    for _ in range(2):
        keyring.rotate(COMMAND)
        keys.insert(0, settings.SECRET_KEY)
        assert keyring.status().keys[0].fingerprint == fingerprint(keys[0])
        assert {each.fingerprint for each in keyring.status().keys} == set(map(fingerprint, keys))
        assert all(each.is_here for each in keyring.status().keys)
    assert len(set(keys)) == 3
    SecretKey.objects.filter(state="former").update(since="2026-01-01T00:00:00Z")
    for key in keys[1:]:
        assert keyring.drop(COMMAND, fingerprint(key)) is True
    assert file.read_text() == keys[0]
    factor.refresh_from_db()
    assert not factor.wrap().validate_code("000000")  # it opens


def test_a_key_file_holds_one_unusual_key_at_most(file_node):
    _, file = file_node
    with pytest.raises(ValueError, match="one key with line breaks"):
        key_file.write(file, [NEW, "a,b", "c\n"])


def test_a_rotation_waits_for_processes_that_lack_the_key_and_names_them(node):
    node(OLD)
    keyring.settle(is_new=True)
    KeyHolder.objects.create(name="web-2:7", fingerprints=fingerprint(OLD), signs_with=fingerprint(OLD), seen_at=now())
    node(f"{NEW},{OLD}")
    keyring.settle()
    with pytest.raises(Conflict, match="A running process lacks the new key: web-2:7"):
        keyring.rotate(COMMAND, wait_s=0)
    assert recorded() == {fingerprint(OLD): "current"}
    KeyHolder.objects.update(seen_at=now() - timedelta(minutes=1))  # it was killed
    keyring.rotate(COMMAND, wait_s=0)
    assert recorded()[fingerprint(NEW)] == "current"


def test_of_two_rotations_at_once_one_is_told(node):
    node(OLD)
    keyring.settle(is_new=True)
    node(f"{NEW},{OLD}")
    keyring.settle()
    keyring.rotate(COMMAND)
    with pytest.raises(Conflict, match="Another rotation has just taken place"):
        keyring._switch(COMMAND, fingerprint(OLD), NEW)


def test_a_process_reports_its_keys_and_its_end(node, caplog):
    node(OLD)
    keyring.settle(is_new=True)
    reporter = keyring.Reporter()
    reporter.look()
    (found,) = keyring.live_processes()
    assert (found.keys, found.signs_with) == ({fingerprint(OLD)}, fingerprint(OLD))
    SecretKey.objects.update(state="former")
    SecretKey.objects.create(fingerprint=fingerprint(NEW), state="current")
    with caplog.at_level(logging.ERROR):
        reporter.look()
        reporter.look()
    assert caplog.text.count("current secret key is missing here") == 1
    reporter.leave()
    assert keyring.live_processes() == []
