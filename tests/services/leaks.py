"""Find secrets in what an instance leaves behind, in plain text and inside the encodings of storage."""

import base64
import binascii
import contextlib
import re
import sqlite3
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

from django.contrib.sessions.serializers import JSONSerializer
from django.core import signing

from services.postgres import binaries
from services.product import Product

MAX_LAYERS = 5
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){8,}")
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")


def left_behind(content: bytes, secrets: Iterable[str]) -> set[str]:
    """Return those of *secrets* that occur in *content*, also in base64, hex, percent escapes and compression."""
    wanted = {secret: secret.encode() for secret in secrets}
    found: set[str] = set()
    for layer in layers(content):
        found |= {secret for secret, text in wanted.items() if text in layer and _stands(secret, layer)}
    return found


def _stands(secret: str, layer: bytes) -> bool:
    """Digits count only if no other digit or letter is next to them."""
    return not secret.isdigit() or re.search(rb"\b%b\b" % secret.encode(), layer) is not None


def layers(content: bytes) -> Iterator[bytes]:
    """Yield *content* and everything that can be decoded from it, recursively."""
    seen: set[bytes] = set()
    waiting = [(content, 0)]
    while waiting:
        layer, depth = waiting.pop()
        yield layer
        if depth < MAX_LAYERS:
            for inner in _inner(layer):
                if inner not in seen:
                    seen.add(inner)
                    waiting.append((inner, depth + 1))


def _inner(layer: bytes) -> Iterator[bytes]:
    with contextlib.suppress(zlib.error):
        yield zlib.decompress(layer, wbits=47)  # zlib's own header or gzip's
    if b"%" in layer:
        yield unquote_to_bytes(layer)
    if b"\\" in layer:
        yield layer.replace(b"\\/", b"/").replace(b'\\"', b'"')
    for run in _HEX.findall(layer):
        yield bytes.fromhex(run.decode())
    for run in _BASE64.findall(layer):
        whole = run.rstrip(b"=").translate(_TO_STANDARD)
        with contextlib.suppress(binascii.Error):
            yield base64.b64decode(whole + b"=" * (-len(whole) % 4))


def sqlite_dump(folder: Path) -> bytes:
    """Return every row of the databases in *folder* as SQL, and the files themselves with their logs."""
    files = sorted(folder.glob("*.sqlite3*"))
    parts = [file.read_bytes() for file in files]  # before a reader of ours could empty the log
    for file in files:
        if file.suffix == ".sqlite3":
            with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                parts += [line.encode() for line in database.iterdump()]
    return b"\n".join(parts)


def postgres_dump(url: str) -> bytes:
    """Return every row of a PostgreSQL database as SQL."""
    done = subprocess.run([binaries() / "pg_dump", "--inserts", url], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def as_django_would_keep_it(code: str) -> str:
    """Return a session that waits for *code* as Django itself stores it: signed, compressed, readable."""
    waiting = {"account_login": {"code": code, "more": "x" * 200}}
    return signing.dumps(waiting, salt="any", serializer=JSONSerializer, compress=True)


PLANTED = "INSERT INTO django_session (session_key, session_data, expire_date) VALUES (%s, %s, '2030-01-01')"
PLANTS = ("planted-as-a-key", as_django_would_keep_it("planted-inside"))


def look_through(used: dict[str, str], dump: bytes, product: Product) -> None:
    """
    Check that no secret occurs in a dump or in the log, and that planted values are found.

    Args:
        used: secrets with their descriptions.
        dump: of the database that contains :data:`PLANTS`.

    Raises:
        AssertionError: names what was found, never the secret.
    """
    there = {"Harbour Agent", "argon2id", "planted-as-a-key", "planted-inside"}
    found = {used.get(each, each) for each in left_behind(dump, [*used, *there])}
    assert found == there, f"in the database: {sorted(found ^ there)}"
    logged = {"/oauth/token", "/manage/invitations/***", "%2Fmanage%2Finvitations%2F***", "/reports/shared/***"}
    found = {used.get(each, each) for each in left_behind(product.output().encode(), [*used, *logged])}
    assert found == logged, f"in the logs: {sorted(found ^ logged)}"
