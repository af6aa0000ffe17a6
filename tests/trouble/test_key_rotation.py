"""The secret key is rotated while the instance is in use: no account is locked out, and a wrong key does not start."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from muniment.accounts.keys.key_file import fingerprint, new_key
from services.credentials import Credentials, wait_reported
from services.owner import EMAIL, owned_registry
from services.ports import free_port
from services.product import DEMO, Product, run

AN_HOUR_AGO = "UPDATE accounts_secretkey SET since = '2026-01-01 00:00:00+00' WHERE state = 'former'"
PERSON = "SELECT slug FROM registry_person WHERE listed AND account_id IS NULL ORDER BY id LIMIT 1"


@pytest.mark.proof
@pytest.mark.sqlite  # the key is a file beside the database
def test_on_one_machine_a_rotation_locks_no_account_out(tmp_path):
    data = owned_registry(tmp_path / "data")
    file = data / "keys" / "django.key"
    old = file.read_text()
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as database:
        erased = database.execute(PERSON).fetchone()[0]
    run("person", "erase", erased, "--yes", data=data)
    with Product(data, "--workers", "2") as product:
        product.wait_ready()
        person = Credentials(product)
        person.refresh()
        wait_reported(product, 2)
        told = run("keys", "rotate", data=data)
        new = file.read_text().split()[0]
        assert file.read_text().split() == [new, old]
        assert f"{fingerprint(new)} is the key now." in told.stdout
        assert f"{fingerprint(old)} can go after" in told.stdout
        assert "1 second factors" not in run("keys", data=data).stdout.partition(fingerprint(old))[2]
        person.check_retry()
        person.check_all(product, person.code)
        person.refresh()
        assert "is still needed" in run("keys", "drop", fingerprint(old), data=data, check=False).stderr
        with closing(sqlite3.connect(data / "muniment.sqlite3")) as database, database:
            database.execute(AN_HOUR_AGO)
        run("keys", "drop", fingerprint(old), data=data)
        assert file.read_text() == new
        product.stop()
        product.start().wait_ready()
        person.check_retry()
        person.check_all(product, person.recovery[0])
    person.close()
    assert "was erased; the row is ignored" in run("import", str(DEMO), data=data).stderr
    backup = tmp_path / "instance.backup"
    run("backup", str(backup), data=data)
    refused = run("serve", "--port", str(free_port()), data=data, check=False, secret_key="x" * 40)
    assert refused.returncode == 78
    assert f"error: This database uses the secret key with the fingerprint {fingerprint(new)}" in refused.stderr
    among = run("serve", "--port", str(free_port()), "--workers", "2", data=data, check=False, secret_key="x" * 40)
    assert among.returncode == 78
    elsewhere = run("restore", str(backup), data=tmp_path / "elsewhere", secret_key="x" * 40)
    assert f"the fingerprint {fingerprint(new)} is missing here" in elsewhere.stderr


@pytest.mark.proof
@pytest.mark.postgresql
def test_nodes_are_given_the_new_key_first_and_then_rotate_together(tmp_path, postgres):
    old, new = new_key(), new_key()
    url = postgres.create("key_rotation")
    data = owned_registry(tmp_path / "maker", database_url=url, secret_key=old)
    one, both, after = (
        {"database_url": url, "secret_key": text, "base_url": "http://127.0.0.1:8000"}
        for text in (old, f"{new},{old}", new)
    )
    with Product(tmp_path / "first", **both) as first, Product(tmp_path / "second", **one) as second:
        for node in (first, second):
            node.wait_ready(within_s=60)
        person = Credentials(first)
        person.refresh()
        wait_reported(first, 2, **both)
        refused = run("keys", "rotate", "--wait", "0", data=data, check=False, **both)
        assert "lacks the new key" in refused.stderr
        person.check_retry_at(second)
        second.stop()
    with Product(tmp_path / "first", **both) as first, Product(tmp_path / "second", **both) as second:
        for node in (first, second):
            node.wait_ready(within_s=60)
        wait_reported(first, 2, **both)
        run("keys", "rotate", data=data, **both)
        person.check_retry_at(second)
        person.check_all(second, person.code)
        person.check_all(first, person.recovery[0])
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(AN_HOUR_AGO)
    assert "Remove it from MUNIMENT_SECRET_KEY" in run("keys", "drop", fingerprint(old), data=data, **both).stdout
    with Product(tmp_path / "first", **after) as first:
        first.wait_ready(within_s=60)
        person.check_all(first, person.recovery[1])
    person.close()
    refused = run("serve", "--port", str(free_port()), data=Path(tmp_path / "third"), check=False, **one)
    assert (refused.returncode, fingerprint(new) in refused.stderr) == (78, True)
    assert EMAIL in run("user", "list", data=data, **after).stdout
