"""
Running nodes whose database is restored to an older dump, and then counts other changes under the same numbers.

Every process shows what the database holds, no read fails, and clients with a lost past are refused.
"""

import subprocess

import psycopg
import pytest

from contract.shapes import check_error
from services.load import Load
from services.nodes import Nodes, everything, feed
from services.ports import wait_until
from services.postgres import binaries
from services.product import Product

pytestmark = [pytest.mark.proof, pytest.mark.postgresql, pytest.mark.timeout(400)]


def newest(nodes):
    with psycopg.connect(nodes.settings["database_url"]) as connection:
        return connection.execute("SELECT value FROM published_edition").fetchone()[0]


def correct(nodes, words, times=1):
    for number in range(times):
        nodes.command("person", "correct", "ilsabet-corrowan", "--bio", f"{words} {number}.")


def diverged(node):
    lines = [line for line in node.metrics().splitlines() if line.startswith("muniment_replica_rebuilds_total{")]
    return sum(int(float(line.split()[-1])) for line in lines if 'reason="diverged"' in line)


@pytest.mark.parametrize("others", [1, 2, 5], ids=["behind", "the same number", "beyond it"])
def test_nodes_heal_from_a_restored_dump_while_they_serve(postgres, tmp_path, others):
    postgres.drop("diverged")
    url = postgres.create("diverged")
    with Nodes(tmp_path, url, 2, "--workers", "2") as nodes:
        nodes.wait_level(newest(nodes))
        kept = nodes.each[0].get(f"/api/v1/changes?after={newest(nodes) - 1}").json()
        dump = tmp_path / "older.dump"
        subprocess.run([binaries() / "pg_dump", "-Fc", "-f", dump, url], check=True, timeout=60)
        correct(nodes, "A change that will be lost", 2)
        nodes.wait_level(newest(nodes))
        for node in nodes.each:
            assert b"will be lost" in everything(node)["people/ilsabet-corrowan"]
        lost = nodes.each[0].get(f"/api/v1/changes?after={newest(nodes) - 1}").json()
        with Load(nodes.ports, threads=2, pause_s=0.01) as load:
            restore = ["--clean", "--if-exists", "--single-transaction", "-d", url, dump]
            subprocess.run([binaries() / "pg_restore", *restore], check=True, timeout=60)
            correct(nodes, "Another change", others)
            with Product(tmp_path / "late", **nodes.settings) as late:
                late.wait_ready(within_s=60)
                truth, told = everything(late), feed(late)
            wait_until(
                lambda: all(everything(node) == truth and feed(node) == told for node in nodes.each),
                within_s=60,
                what="every node showing what the database holds",
            )
            nodes.wait_level(newest(nodes))
        assert load.failures == []
        assert load.total > 0
        for node in nodes.each:
            assert diverged(node) == 1, "one process of the node rebuilt the file that all of them read"
            assert node.get("/readyz").json()["status"] == "ready"
            check_error(
                node.get(f"/api/v1/changes?after={lost['nextAfter']}&chain={lost['chain']}"), 400, "bad_request"
            )
            after = node.get(f"/api/v1/changes?after={kept['nextAfter']}&chain={kept['chain']}").json()
            assert len(after["data"]) == others
            page = node.get("/people/ilsabet-corrowan").body.decode()
            assert "Another change" in page
            assert "will be lost" not in page
        correct(nodes, "And one more")
        nodes.wait_level(newest(nodes))
        assert [diverged(node) for node in nodes.each] == [1, 1]
