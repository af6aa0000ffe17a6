"""What PostgreSQL takes back is done once in the end, or refused whole."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, connections, transaction

from make import registry as make
from make.accounts import account, signed_in
from muniment.accounts.models import Account
from muniment.documents import operations
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.store.database.retry import with_retry

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def names():
    return sorted(Account.objects.values_list("email", flat=True))


def lose_connection():
    """Have the server end this thread's connection, as its restart does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 2000)", [pid])
    other.close()


def test_two_that_wait_for_each_other_are_both_done_once():
    accounts = [Account.objects.create_user(f"{name}@example.org") for name in ("one", "two")]
    both_hold = threading.Barrier(2)
    tries = []

    def work(first, second):
        tries.append(first)
        with transaction.atomic():
            Account.objects.select_for_update().get(pk=first)
            if len(tries) <= 2:
                both_hold.wait(60)
            Account.objects.select_for_update().get(pk=second)
            account = Account.objects.get(pk=second)
            Account.objects.filter(pk=second).update(email=account.email + "x")

    def run(first, second):
        try:
            with_retry(work, first, second)
        finally:
            connections.close_all()

    one, two = (account.pk for account in accounts)
    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(run, one, two), threads.submit(run, two, one)]:
            each.result(30)
    assert len(tries) >= 3, "one of them was taken back and began again"
    assert names() == ["one@example.orgx", "two@example.orgx"]


def test_a_connection_lost_before_the_commit_costs_nothing():
    tries = []

    def work():
        with transaction.atomic():
            Account.objects.create_user("made@example.org")
            tries.append(1)
            if len(tries) == 1:
                lose_connection()
            return Account.objects.count()

    assert with_retry(work) == 1
    assert names() == ["made@example.org"]
    assert len(tries) == 2


def test_a_transaction_that_may_have_committed_is_not_retried():
    tries = []

    def work():
        tries.append(1)
        with transaction.atomic():
            Account.objects.create_user("first@example.org")
        lose_connection()
        Account.objects.create_user("second@example.org")

    with pytest.raises(Unavailable, match="may or may not have been saved"):
        with_retry(work)
    connections.close_all()
    assert names() == ["first@example.org"]
    assert len(tries) == 1


def test_a_change_outside_a_transaction_is_not_done_again_either():
    account = Account.objects.create_user("a@example.org")
    tries = []

    def work():
        tries.append(1)
        Account.objects.filter(pk=account.pk).update(email="b@example.org")
        lose_connection()
        Account.objects.count()

    with pytest.raises(Unavailable, match="may or may not have been saved"):
        with_retry(work)
    connections.close_all()
    assert names() == ["b@example.org"]
    assert len(tries) == 1


def test_an_unreachable_database_is_reported_with_a_retry_after(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "PORT", "9")
    connection.close()
    with pytest.raises(Unavailable, match="nothing was saved") as told:
        with_retry(Account.objects.count)
    assert int(told.value.headers["Retry-After"]) >= 1
    with pytest.raises(OperationalError):
        Account.objects.count()


def test_a_faulty_statement_is_not_retried():
    def work():
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")

    with pytest.raises(Exception, match="nowhere"):
        with_retry(work)


def test_a_name_with_nul_is_refused_as_what_was_sent_not_as_a_fault_of_ours():
    who = account("reviewer@harbour.example", "reviewer")
    make.draft(who.actor("web"))
    with pytest.raises(BadRequest, match=r"U\+0000"):
        with_retry(operations.get_document, who.actor("web"), "\0")
    browser = signed_in(who)
    assert browser.get("/manage/reports", {"documents": "\0"}).status_code == 400
    for address in ("/manage/reports/%00", "/manage/applications/%00"):
        assert browser.get(address).status_code == 400
    for address, sent in (("/review/take", {"subject": "company:\0"}), ("/manage/documents/%00/delete", {})):
        assert browser.post(address, sent).status_code == 400
