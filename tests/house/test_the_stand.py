"""The suite's own ground: nothing that one test writes is there for the next."""

import pytest
from django.contrib.auth import get_user_model
from django.db import connection


@pytest.mark.django_db
@pytest.mark.parametrize("_round", [1, 2])
def test_a_rolled_back_test_leaves_nothing(_round):
    accounts = get_user_model().objects
    assert accounts.count() == 0
    accounts.create(email="someone@stand.example")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_round", [1, 2])
def test_a_committed_test_leaves_nothing_either_and_migrations_rows_stay(_round):
    accounts = get_user_model().objects
    assert accounts.count() == 0
    accounts.create(email="someone@stand.example")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations")
        assert cursor.fetchone()[0] > 0


@pytest.mark.django_db
def test_the_run_is_on_the_database_that_was_asked_for(pytestconfig):
    assert connection.vendor == pytestconfig.getoption("--database")
