"""Damage under a live server: it is never sent, is counted at once, and documents are whole again within moments."""

import re
import sqlite3
from contextlib import closing
from urllib.parse import quote

import msgspec
import pytest

from make.corruption import Page, checkpoint, damage, flip, pages
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import Product
from services.prometheus import Prometheus

pytestmark = pytest.mark.sqlite  # the server's own file; test_replica_heals has a node's copy
BODIES = 20
COLLECTIONS = {"company": "companies", "person": "people", "framework": "frameworks"}


def sent(data):
    """Return the published bodies by their paths."""
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as file:
        rows = file.execute("SELECT kind, key, body FROM published_document ORDER BY id").fetchall()
    return {f"/api/v1/{COLLECTIONS[kind]}/{quote(key)}": body for kind, key, body in rows}


def renew_pages(data):
    """Let the server read its pages from the disk again, as after any change."""
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as file:
        file.execute("UPDATE published_meta SET at = at")
        file.commit()


def counted(product, name):
    """Return the sum of a metric."""
    lines = re.findall(rf"(?m)^{re.escape(name)}(?:{{.*}})? ([0-9.e+]+)$", product.metrics())
    return sum(map(float, lines))


def damaged_reads(product, what):
    text = product.metrics()
    lines = re.findall(rf'(?m)^muniment_damaged_reads_total{{[^}}]*what="{what}"[^}}]*}} ([0-9.e+]+)$', text)
    assert lines, text
    return sum(map(float, lines))


def test_flipped_bits_of_bodies_are_never_sent_and_count_at_once(tmp_path):
    data = demo_registry(tmp_path / "data")
    with Product(data) as product:
        product.wait_ready()
        assert damaged_reads(product, "documents") == 0
        before = sent(data)
        file = data / "muniment.sqlite3"
        checkpoint(file)
        chosen = list(before)[:BODIES]
        for path in chosen:
            # The whole body is on one page, or on overflow pages that do not hold it in one piece.
            flip(file, before[path][: len(before[path]) // 8])
        renew_pages(data)
        refused = set()

        def is_whole(path):
            answer = product.get(path)
            if answer.status == 503:
                assert int(answer.headers["retry-after"]) > 0
                refused.add(path)
                return False
            assert answer.status == 200
            assert answer.body == before[path], "damage is never sent"
            return True

        # Before they are mended, which takes moments.
        for path in chosen:
            is_whole(path)
        assert refused == set(chosen)
        for path in before:
            wait_until(lambda path=path: is_whole(path), within_s=30, what=f"{path} whole again")
        assert refused == set(chosen)
        assert damaged_reads(product, "documents") >= BODIES
        wait_until(
            lambda: counted(product, "muniment_scrub_mended") >= BODIES,
            within_s=30,
            what="the number mended",
            every_s=1,
        )
        assert counted(product, "muniment_scrub_damaged") == 0
        assert sent(data) == before
        assert product.output().count("mended: ") == BODIES


def test_flipped_bits_of_items_are_never_sent_and_count_at_once(tmp_path):
    data = demo_registry(tmp_path / "data")
    lists = ["/api/v1/companies?pageSize=100", "/api/v1/people?pageSize=100", "/api/v1/frameworks"]
    file = data / "muniment.sqlite3"
    with closing(sqlite3.connect(file)) as opened:
        stored = {
            kind: opened.execute(f"SELECT item FROM published_item_{kind} ORDER BY position LIMIT 2").fetchall()
            for kind in COLLECTIONS
        }
    with Product(data) as product:
        product.wait_ready()
        before = {path: msgspec.json.decode(product.get(path).body)["data"] for path in lists}
        renew_pages(data)
        checkpoint(file)
        for rows in stored.values():
            for (item,) in rows:
                flip(file, item)
    with Product(data) as product:  # which has kept no answers
        product.wait_ready()
        refused = set()

        def is_whole(path):
            answer = product.get(path)
            if answer.status == 503:
                assert int(answer.headers["retry-after"]) > 0
                refused.add(path)
                return False
            assert answer.status == 200
            assert msgspec.json.decode(answer.body)["data"] == before[path], "damage is never sent"
            return True

        for path in lists:
            wait_until(lambda path=path: is_whole(path), within_s=30, what=f"{path} whole again")
        assert refused == set(lists)
        assert damaged_reads(product, "documents") >= 2 * len(lists)
        wait_until(
            lambda: counted(product, "muniment_scrub_mended") >= 2 * len(lists),
            within_s=30,
            what="the number mended",
            every_s=1,
        )
        assert counted(product, "muniment_scrub_damaged") == 0


@pytest.mark.proof
def test_a_flipped_bit_alerts_within_half_a_minute(tmp_path):
    data = demo_registry(tmp_path / "data")
    with Product(data) as product, Prometheus(tmp_path / "prometheus", [product.host]) as prometheus:
        product.wait_ready()
        wait_until(lambda: prometheus.alerts() == {}, within_s=60, what="no alert")
        path, body = next(iter(sent(data).items()))
        checkpoint(data / "muniment.sqlite3")
        flip(data / "muniment.sqlite3", body[: len(body) // 8])
        renew_pages(data)
        product.get(path)
        wait_until(lambda: prometheus.alerts().get("MunimentDamagedReads") == "firing", within_s=30, what="the alert")


def test_pages_of_garbage_count_at_once_and_are_told_until_a_scrub(tmp_path):
    data = demo_registry(tmp_path / "data")
    with Product(data) as product:
        product.wait_ready()
        paths = list(sent(data))
        file = data / "muniment.sqlite3"
        checkpoint(file)
        for number in pages(file, "published_document", Page.LEAF_TABLE)[1::2]:
            damage(file, number, at=0, content=b"garbage " * 64)
        renew_pages(data)
        statuses = [product.get(path).status for path in paths]
        assert 503 in statuses
        assert set(statuses) <= {200, 404, 503}, "a row that is not found any more"
        assert damaged_reads(product, "pages") > 0
        wait_until(lambda: counted(product, "muniment_scrub_damaged") > 0, within_s=30, what="the damage being told")
        assert "a read met damaged pages" in product.output()
