"""Litestream with the file of deploy/: writer and Litestream are killed together, and seconds of changes are lost."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.client import HTTPException
from pathlib import Path

import pytest

from services.ports import wait_until
from services.product import Product, run
from services.s3 import BUCKET, KEY, S3, SECRET
from services.uploads import Owner

pytestmark = [pytest.mark.proof, pytest.mark.sqlite, pytest.mark.timeout(600)]
LITESTREAM = Path(sys.executable).parent / "litestream"
SETTINGS = Path(__file__).parents[2] / "deploy" / "litestream" / "litestream.yml"
MOST_LOST_S = 10.0
SETTLED_S = 12.0


def environment(data, s3):
    """Return the environment of Litestream; a set AWS_CA_BUNDLE breaks its S3 client."""
    own = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    return {
        **own,
        "MUNIMENT_DATA": str(data),
        "LITESTREAM_ENDPOINT": f"http://127.0.0.1:{s3.port}",
        "LITESTREAM_BUCKET": BUCKET,
        "LITESTREAM_REGION": "us-east-1",
        "LITESTREAM_ACCESS_KEY_ID": KEY,
        "LITESTREAM_SECRET_ACCESS_KEY": SECRET,
    }


def edit(owner, acknowledged, ended):
    number = 0
    while not ended.is_set():
        try:
            found = owner.call("update_my_company", slug=owner.slug, changes={"description": str(number + 1)})
        except (OSError, HTTPException, AssertionError):  # killed
            return
        if "data" in found:
            number += 1
            acknowledged.append((number, time.monotonic()))


def test_writer_and_litestream_killed_together_lose_seconds_and_the_restored_database_is_whole(tmp_path):
    data, target = tmp_path / "data", tmp_path / "target"
    own = {"database_url": "", "account_writes": "off", "rate_limit": "off", "backups": "off"}
    acknowledged: list[tuple[int, float]] = []
    ended = threading.Event()
    with S3(tmp_path / "s3") as s3:
        product = Product(data, **own).start(within_s=60)
        product.wait_ready("/readyz?writes", within_s=180)
        owner = Owner(product, **own)
        command = [LITESTREAM, "replicate", "-config", SETTINGS]
        with (
            (tmp_path / "litestream.log").open("wb") as log,
            subprocess.Popen(command, env=environment(data, s3), stdout=log, stderr=log) as copying,
        ):
            there = s3.folder / BUCKET / "muniment"
            wait_until(lambda: list(there.glob("0009/*.ltx")), within_s=60, what="the first snapshot")
            thread = threading.Thread(target=edit, args=(owner, acknowledged, ended))
            thread.start()
            time.sleep(SETTLED_S)  # some rounds of copying
            copying.kill()
            product.kill()
            killed_at = time.monotonic()
            ended.set()
            thread.join(60)
        shutil.copytree(data / "keys", target / "keys")
        subprocess.run(
            [LITESTREAM, "restore", "-config", SETTINGS, "-o", target / "muniment.sqlite3", data / "muniment.sqlite3"],
            env=environment(data, s3),
            check=True,
            capture_output=True,
            timeout=120,
        )
    with closing(sqlite3.connect(target / "muniment.sqlite3")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (found,) = database.execute("SELECT description FROM registry_company WHERE slug = ?", (owner.slug,)).fetchone()
    lost = [at for number, at in acknowledged if number > int(found or 0)]
    lost_s = killed_at - min(lost) if lost else 0.0
    print(f"{len(acknowledged)} edits acknowledged, {len(lost)} lost, the oldest {lost_s:.1f} s old")  # noqa: T201 - the figure
    assert int(found) > 0
    assert lost_s < MOST_LOST_S
    run("feed", "renew", data=target, **own)
    assert "FAIL" not in run("doctor", "--ledger", data=target, **own).stdout
    with Product(target, **own) as again:
        again.wait_ready("/readyz?writes", within_s=180)
