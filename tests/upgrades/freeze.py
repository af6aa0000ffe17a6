"""
Make the frozen instance of this version: a data folder, the same on PostgreSQL, and a backup. Everything is fictional.

    PYTHONPATH=tests .venv/bin/python tests/upgrades/freeze.py

It writes tests/upgrades/VERSION, which the tests of this folder open with every later version. Until a version is
released, make its instance again whenever what it stores has changed; after the release, never.
"""

import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from muniment import __version__
from services.postgres import Postgres, binaries
from services.product import run

BASE_URL = "http://registry.example"
KEEPER = "keeper@harbour.example"


def fill() -> dict[str, Any]:
    """Fill the instance by the product's own operations, and return what the tests must know of it."""
    import django  # after the data folder is named

    django.setup()
    from django.db import connection, connections

    from make import instances
    from make.reports import do_jobs
    from muniment.accounts.models import Account
    from muniment.accounts.tokens import create_token
    from muniment.kernel.actor import COMMAND, SCOPES
    from muniment.registry.models import Company
    from muniment.registry.publishing.upgrade import bring_up_to_date

    bring_up_to_date()
    documents = instances.filled()
    do_jobs()  # the text of the documents is read
    keeper = Account.objects.get(email=KEEPER)
    token = create_token(COMMAND, "frozen", permitted=SCOPES, days=None, account=keeper).text
    company = Company.objects.get(ownerships__account=keeper, state="published")
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connections.close_all()
    return {"token": token, "company": company.slug, "documents": sorted(each.pk for each in documents)}


def dumped(data: Path) -> str:
    """Move a copy of the instance to PostgreSQL, and return its dump as statements."""
    copy = data.parent / "moved"
    shutil.copytree(data, copy)
    cluster = Postgres()
    try:
        url = cluster.create("moved")
        run("move", "--to", url, data=copy, base_url=BASE_URL, database_url="")
        dump = [binaries() / "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=200", url]
        text = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    finally:
        cluster.close()
    # Only what every version of PostgreSQL reads: no commands of psql, no settings of the newest server.
    lines = [line for line in text.splitlines() if not line.startswith(("\\", "SET ", "--"))]
    return "\n".join(lines) + "\n"


def pack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive, "w:xz", preset=9) as out:
        for file in sorted(folder.rglob("*")):
            out.add(file, file.relative_to(folder), recursive=False)


def main(folder: Path) -> None:
    work = Path(tempfile.mkdtemp())
    data = work / "data"
    os.environ |= {
        "MUNIMENT_DATA": str(data),
        "MUNIMENT_BASE_URL": BASE_URL,
        "DJANGO_SETTINGS_MODULE": "muniment.settings",
    }
    data.mkdir()
    known = fill()
    for name in ("mail", "exports"):
        shutil.rmtree(data / name, ignore_errors=True)
    for file in data.glob("muniment.sqlite3?*"):
        file.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pack(folder / "data.tar.xz", data)
    (folder / "postgresql.sql.xz").write_bytes(lzma.compress(dumped(data).encode(), preset=9))
    served = work / "served"
    shutil.copytree(data, served)
    run("backup", str(folder / "instance.backup"), data=served, base_url=BASE_URL, database_url="")
    run("export", str(work / "exported"), "--private", data=served, base_url=BASE_URL, database_url="")
    pack(folder / "exported.tar.xz", work / "exported")
    (folder / "known.json").write_text(json.dumps(known, indent=2) + "\n")
    shutil.rmtree(work)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / __version__).absolute())
