"""A change that no standby confirms is answered as unknown, and later ones are refused until a standby confirms."""

import logging

import pytest
from django.db import OperationalError, connection, transaction

from muniment.accounts.models import Account
from muniment.kernel.problems import Unavailable
from muniment.store.database import commits
from muniment.store.database.commits import Unconfirmed
from muniment.store.database.retry import with_retry
from muniment.store.postgresql import base, standby
from muniment.store.postgresql.standby import Standby
from services.ports import wait_until

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def silence(postgres, monkeypatch):
    """Have every commit of this database wait for a standby that does not exist; return how to end that."""
    monkeypatch.setattr(standby, "EVERY_S", 0.02)
    monkeypatch.setattr(Standby, "_all", {})
    monkeypatch.setattr(commits, "known", [])
    monkeypatch.setattr(base, "STANDBY_WAIT_S", 0.05)
    name = connection.settings_dict["NAME"]

    def name_standbys(names):
        postgres.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        postgres.execute("SELECT pg_reload_conf()")

    connection.close()
    postgres.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = on')
    with connection.cursor() as cursor:
        name_standbys("absent")
        wait_until(lambda: _names(cursor) == "absent", within_s=60, what="the reload")
    yield lambda: name_standbys("")
    name_standbys("")
    wait_until(lambda: not commits.status()[0], within_s=60, what="the probe")
    connection.close()
    postgres.execute(f'ALTER DATABASE "{name}" RESET synchronous_commit')


def _names(cursor):
    cursor.execute("SHOW synchronous_standby_names")
    return cursor.fetchone()[0]


def create(email="made@example.org"):
    with transaction.atomic():
        Account.objects.create_user(email)


def test_a_commit_whose_wait_was_cancelled_is_unknown_and_not_a_success(silence, caplog):
    with pytest.raises(Unavailable, match="a failover of the database may lose it") as told:
        with_retry(create)
    assert "Check the current state" in told.value.hint
    assert Account.objects.filter(email="made@example.org").exists(), "committed, on the primary alone"
    assert commits.status() == (True, 1)
    assert [record.levelno for record in caplog.records if record.name == standby.__name__] == [logging.ERROR]


def test_while_no_standby_confirms_changes_are_refused_and_reads_go_on(silence):
    with pytest.raises(Unavailable):
        with_retry(create)
    tries = []

    def again():
        tries.append(1)
        create("second@example.org")

    with pytest.raises(Unavailable, match="nothing was saved") as told:
        with_retry(again)
    assert (len(tries), told.value.headers["Retry-After"]) == (1, "5")
    with pytest.raises(Unavailable, match="nothing was saved"):
        with_retry(Account.objects.filter(email="made@example.org").update, email="changed@example.org")
    with transaction.atomic():
        assert [account.email for account in Account.objects.all()] == ["made@example.org"]
    silence()
    wait_until(lambda: not commits.status()[0], within_s=60, what="changes being taken again")
    with_retry(create, "second@example.org")
    assert Account.objects.count() == 2


def test_a_statement_outside_a_transaction_is_unknown_too(silence):
    with pytest.raises(Unavailable, match="may lose it"):
        with_retry(Account.objects.create_user, "made@example.org")
    assert Account.objects.count() == 1


def test_without_the_retry_the_caller_hears_of_it(silence):
    with pytest.raises(Unconfirmed):
        create()
    assert issubclass(Unconfirmed, OperationalError)


def test_a_confirmed_commit_is_watched_only_while_it_waits():
    create()
    (known,) = [each for each in Standby._all.values() if connection._standby is each]
    assert (known.is_silent, known._pending) == (False, {})
