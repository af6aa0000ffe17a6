"""What is remembered of tokens: cheap when warm, empty as soon as a credential lost power anywhere."""

import asyncio
import sqlite3
from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.db.models import QuerySet

from make.accounts import account
from muniment.accounts import revocation, tokens
from muniment.accounts.models import PersonalToken
from muniment.kernel.actor import SCOPES
from muniment.kernel.ids import now
from muniment.oauth import token_authentication
from muniment.oauth.token_authentication import CHECK_INTERVAL_S, MAX_REMEMBERED, TokenAuthenticator
from services.manage import straight

pytestmark = pytest.mark.django_db
RESOURCE = "http://testserver/api/manage/mcp"


class Watched:
    """A doorkeeper whose clock the test moves, and whose questions to the database it counts."""

    def __init__(self):
        self.at = 0.0
        self.asked = []
        self.loop = asyncio.new_event_loop()
        self.keeper = TokenAuthenticator(self.bridge, resource=RESOURCE, clock=lambda: self.at)

    async def bridge(self, call, *arguments):
        self.asked.append(call.__name__)
        return await straight(call, *arguments)

    def __call__(self, text, client="suite"):
        self.asked.clear()
        return self.loop.run_until_complete(self.keeper(text, client))

    def close(self):
        self.loop.close()


@pytest.fixture
def door():
    made = Watched()
    yield made
    made.close()


@pytest.fixture
def minted():
    return tokens.create_token(account("owner@harbour.example").actor("web"), "laptop", permitted=SCOPES)


@pytest.mark.requirement("auth.missing")
def test_a_cached_answer_queries_no_database(door, minted):
    assert door(minted.text).credential == "laptop"
    assert door.asked == ["epoch", "_resolve"]
    assert door(minted.text).credential == "laptop"
    assert door.asked == []


@pytest.mark.requirement("auth.missing")
def test_another_process_ended_it_and_this_one_knows_within_a_second(door, minted):
    assert CHECK_INTERVAL_S < 1
    assert door(minted.text)
    PersonalToken.objects.update(revoked_at=now())
    revocation.bump()  # as another process does; no process is told here, since the test commits nothing
    assert door(minted.text)
    door.at += CHECK_INTERVAL_S + 0.01
    assert door(minted.text) is None
    assert door.asked == ["epoch", "_resolve"]


def test_while_nothing_was_ended_only_the_epoch_is_asked_for(door, minted):
    assert door(minted.text)
    door.at += CHECK_INTERVAL_S + 0.01
    assert door(minted.text)
    assert door.asked == ["epoch"]


@pytest.mark.requirement("auth.missing")
def test_a_revocation_takes_effect_in_its_own_process_at_once(door, minted, django_capture_on_commit_callbacks):
    assert door(minted.text)
    with django_capture_on_commit_callbacks(execute=True):
        tokens.revoke_token(minted.row.account.actor("web"), minted.row.pk)
    assert door(minted.text) is None


def test_an_answer_that_was_under_way_while_the_token_ended_is_not_kept(door, minted, monkeypatch):
    """The row is read live, the epoch increases, and only then the answer comes back: it must not be remembered."""
    real = token_authentication.resolve

    def slow(text, **how):
        found = real(text, **how)
        PersonalToken.objects.update(revoked_at=now())
        revocation.bump()
        door.keeper.recheck()
        return found

    monkeypatch.setattr(token_authentication, "resolve", slow)
    assert door(minted.text)  # it was good when it was asked about
    monkeypatch.setattr(token_authentication, "resolve", real)
    assert door(minted.text) is None


def test_an_invalid_token_is_looked_up_each_time_and_not_cached(door):
    for _ in range(3):
        assert door("mun_pat_" + "A" * 36) is None
    assert door.keeper._cache == {}


def test_a_remembered_token_ends_at_its_time(door, minted):
    PersonalToken.objects.update(expires_at=now() + timedelta(milliseconds=300))
    assert door(minted.text)
    key, known = next(iter(door.keeper._cache.items()))
    door.keeper._cache[key] = known._replace(ends_at=now().timestamp() - 1)
    PersonalToken.objects.update(expires_at=now())
    assert door(minted.text) is None


def test_a_new_day_is_noted_once_and_each_client_of_its_own(door, minted):
    assert door(minted.text, "one/1")
    assert door(minted.text, "two/2")
    assert door.asked == ["_resolve"]
    assert PersonalToken.objects.get().last_used_by == "two/2"
    key, known = next(iter(door.keeper._cache.items()))
    door.keeper._cache[key] = known._replace(day=known.day - timedelta(days=1))
    assert door(minted.text, key[1])
    assert door.asked == ["_resolve"]


def test_an_owner_reads_on_while_the_disk_takes_no_note_of_the_use(door, minted, monkeypatch):
    def update(*_, **__):
        raise DatabaseError from fault

    fault = sqlite3.OperationalError("database or disk is full")
    fault.sqlite_errorcode = sqlite3.SQLITE_FULL
    monkeypatch.setattr(QuerySet, "update", update)
    assert door(minted.text)
    fault = sqlite3.OperationalError("no such column")
    fault.sqlite_errorcode = sqlite3.SQLITE_ERROR
    with pytest.raises(DatabaseError):
        door(minted.text, "another/1")


def test_the_token_cache_is_bounded(door, minted, monkeypatch):
    monkeypatch.setattr(token_authentication, "MAX_REMEMBERED", 3)
    for number in range(8):
        assert door(minted.text, f"client/{number}")
    assert len(door.keeper._cache) <= 3
    assert MAX_REMEMBERED >= 1_000
    assert door("x" * 100_000) is None
    assert door.asked == []


def test_a_token_is_known_from_its_first_valid_use_until_it_is_found_invalid(door, minted):
    assert not door.keeper.is_known(minted.text)
    assert door("mun_pat_" + "0" * 36) is None
    assert not door.keeper.is_known("mun_pat_" + "0" * 36)
    door(minted.text)
    assert door.keeper.is_known(minted.text)
    assert door.keeper.is_known("x" * 1_000_000) is False
    PersonalToken.objects.all().delete()
    revocation.bump()
    door.at += CHECK_INTERVAL_S * 2
    assert door(minted.text) is None
    assert not door.keeper.is_known(minted.text)


def test_at_most_so_many_tokens_are_known(door, minted, monkeypatch):
    monkeypatch.setattr(token_authentication, "MAX_REMEMBERED", 1)
    other = tokens.create_token(account("other@harbour.example").actor("web"), "laptop", permitted=SCOPES)
    door(minted.text)
    door(other.text)
    assert [door.keeper.is_known(each.text) for each in (minted, other)] == [False, True]
