"""
What is left behind after everything with a secret in it was done, on PostgreSQL; and that planted secrets are found.

On SQLite the last test of the OAuth flow looks, after real clients have been there too.
"""

import base64
import gzip
import json
import pickle
import secrets
import sqlite3
import zlib
from contextlib import closing

import psycopg
import pytest

from services.issuer import Issuer, upstream
from services.leaks import (
    PLANTED,
    PLANTS,
    as_django_would_keep_it,
    left_behind,
    look_through,
    postgres_dump,
    sqlite_dump,
)
from services.owner import EMAIL, PASSWORD, owned_instance
from services.walk import Walk

SECRET = "Wr3ck-of-the-Hesperus-1842"


@pytest.mark.proof
@pytest.mark.postgresql
@pytest.mark.requirement("secrets.at-rest")
def test_on_postgresql_nothing_is_left_that_opens_anything(tmp_path, mailbox, postgres):
    word = secrets.token_urlsafe(12)
    url = postgres.create("secrets_at_rest")
    settings = {"database_url": url.replace("muniment@", f"muniment:{word}@"), "mail_url": mailbox.url}
    with (
        Issuer({"sub": "7", "email": "ada@harbour.example", "email_verified": True}) as issuer,
        owned_instance(tmp_path, log_requests="on", **settings, **upstream(issuer)) as (product, slug),
    ):
        walk = Walk(product, mailbox, owner=EMAIL, password=PASSWORD, company=slug)
        walk.used[word] = "password of the database"
        walk.everything(issuer)
        with psycopg.connect(url, autocommit=True) as database:
            database.execute(PLANTED, PLANTS)
        look_through(walk.used, postgres_dump(url) + sqlite_dump(product.data), product)


@pytest.mark.parametrize(
    "planted",
    [
        SECRET.encode(),
        f'{{"level":"info","message":"GET /x?next=%2Fcb%3Fkey%3D{SECRET}"}}'.encode(),
        base64.b64encode(json.dumps({"code": SECRET}).encode()),
        b"INSERT INTO x VALUES('" + base64.urlsafe_b64encode(pickle.dumps(["count", SECRET])) + b"');",
        f"INSERT INTO x VALUES(X'{json.dumps({'url': f'/a/{SECRET}'}).encode().hex()}');".encode(),
        f"'\\x{gzip.compress(SECRET.encode()).hex()}'".encode(),
        as_django_would_keep_it(SECRET).encode(),
        base64.b64encode(zlib.compress(json.dumps({"mail": json.dumps({"text": SECRET})}).encode())),
    ],
    ids=["plain", "in-a-log", "base64", "pickled", "hex-in-a-dump", "gzipped", "as-django-keeps-it", "deflated"],
)
def test_planted_secrets_are_found(planted):
    noise = secrets.token_hex(500).encode() + b" " + base64.b64encode(secrets.token_bytes(3000))
    assert left_behind(noise + b" " + planted + b" " + noise, [SECRET, "never used"]) == {SECRET}
    assert left_behind(noise, [SECRET]) == set()


def test_numbers_are_found_as_whole_words():
    assert left_behind(b'{"code":"04711815"}', ["04711815"]) == {"04711815"}
    assert left_behind(b"2026-11-21 10:04711815", ["0471181"]) == set()


def test_a_secret_in_the_database_log_alone_is_found(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.sqlite3")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE kept (text)")
        database.execute("INSERT INTO kept VALUES (?)", [SECRET])
        database.commit()
        database.execute("DELETE FROM kept")
        database.commit()
        assert left_behind(sqlite_dump(tmp_path), [SECRET]) == {SECRET}
