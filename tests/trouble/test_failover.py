"""
A PostgreSQL cluster under Patroni fails over while a registry of two nodes is read and changed.

HAProxy, PgBouncer and Patroni run with the files of deploy/cluster.
"""

import contextlib
import json
import sqlite3
import time
from contextlib import closing
from urllib.parse import quote

import msgspec
import psycopg
import pytest

from muniment.store import public_log
from muniment.store.published_document import PublishedDocument
from services.editors import Editors, website
from services.follower import Follower
from services.load import Load
from services.nodes import EMAIL, Nodes
from services.patroni import Cluster
from services.pooler import Pooler
from services.ports import wait_until
from services.product import DEMO, run

pytestmark = [pytest.mark.proof, pytest.mark.sqlite, pytest.mark.timeout(1700)]  # it has a PostgreSQL of its own
FAILOVERS = 10
LEVEL_WITHIN_S = 10.0
PATHS = {"company": "companies", "person": "people", "framework": "frameworks"}
_decoder = msgspec.msgpack.Decoder(PublishedDocument)


@contextlib.contextmanager
def registry(folder, cluster, name, **settings):
    """Serve the demo registry by two nodes from the cluster; yield them and a token of the owner of all companies."""
    with (
        Pooler(cluster.create(name), shipped=True) as pooler,
        Nodes(folder, pooler.url, 2, **settings) as nodes,
    ):
        yield nodes, nodes.command("user", "token", EMAIL, "--name", "editor").stdout.split()[-1]


def state_of_primary(node, name):
    """Return edition, chain and digest of everything that a PostgreSQL node has published."""
    with psycopg.connect(node.url(name), connect_timeout=3) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        (edition,) = connection.execute("SELECT value FROM published_edition").fetchone()
        return edition, bytes(public_log.latest_link(connection).chain), public_log.state_digest(connection)


def state_of_node(node):
    """Return the same of the copy that a node serves from."""
    with closing(sqlite3.connect(f"file:{node.data}/published.sqlite3?mode=ro", uri=True, timeout=10)) as file:
        file.execute("BEGIN")
        (edition,) = file.execute("SELECT edition FROM published_meta").fetchone()
        return edition, bytes(public_log.latest_link(file).chain), public_log.state_digest(file)


def differences(nodes, node, name):
    """Compare every response of every product node with what the PostgreSQL node holds."""
    with psycopg.connect(node.url(name), connect_timeout=3) as connection:
        rows = connection.execute("SELECT document FROM published_document").fetchall()
    documents = [_decoder.decode(row[0]) for row in rows]
    assert len(documents) > 100
    return [
        (product.port, each.key)
        for product in nodes.each
        for each in documents
        if each.kind in PATHS and product.get(f"/api/v1/{PATHS[each.kind]}/{quote(each.key)}").body != each.body
    ]


def stored(node, name, slugs):
    """Return the number of the last change of each company that a PostgreSQL node has in its source."""
    with psycopg.connect(node.url(name), connect_timeout=3) as connection:
        rows = connection.execute(
            "SELECT slug, website FROM registry_company WHERE slug = ANY(%s)", (list(slugs),)
        ).fetchall()
    prefix = {slug: website(slug, 0)[:-1] for slug in slugs}
    return {slug: int(url.removeprefix(prefix[slug])) if url.startswith(prefix[slug]) else 0 for slug, url in rows}


def report(words):
    print(f"\n{words}")  # noqa: T201 - a proof says what it measured


def spread(seconds):
    return f"{min(seconds):.1f} to {max(seconds):.1f} s"


@pytest.mark.requirement("nodes.failover")
def test_nodes_serve_what_the_new_primary_holds_after_failovers_to_a_lagging_standby(tmp_path):
    level, promoted, lost, told, cloned = [], [], 0, 0, 0
    with Cluster(3, synchronous_mode=False) as cluster, registry(tmp_path, cluster, "lagging") as (nodes, token):
        slugs = nodes.slugs[:4]
        with (
            Load(nodes.ports, threads=4, pause_s=0.01) as load,
            Follower(nodes.ports) as follower,
            Editors(nodes.each, token, slugs) as editors,
        ):
            for _ in range(FAILOVERS):
                former = cluster.wait_primary()
                for sender in former.senders():
                    sender.suspend()  # the standbys lag from now on
                before = editors.total
                wait_until(lambda before=before: editors.total >= before + 20, within_s=60, what="20 changes")
                _publish_another(nodes, tmp_path)  # a document that the new primary will not have at all
                acknowledged = dict(editors.acknowledged)
                joined, warned = follower.at, len(follower.told)
                began = time.monotonic()
                former.kill()
                primary = cluster.wait_primary(other_than=former)
                promoted_at = time.monotonic()
                promoted.append(promoted_at - began)
                kept = stored(primary, "lagging", slugs)
                lost += sum(max(0, acknowledged[slug] - kept[slug]) for slug in slugs)
                # The new primary is written to at once, so that its numbers overtake the lost ones.
                wait_until(
                    lambda: time.monotonic() > promoted_at + 3 or editors.answered_at > promoted_at + 1,  # noqa: B023 - ends in this round
                    within_s=10,
                    what="the first changes",
                )
                editors.pause()
                wait_until(
                    lambda primary=primary: (
                        {state_of_node(node) for node in nodes.each} == {state_of_primary(primary, "lagging")}
                    ),
                    within_s=promoted_at + LEVEL_WITHIN_S - time.monotonic(),
                    what="every node serving what the new primary holds",
                    every_s=0.1,
                )
                level.append(time.monotonic() - promoted_at)
                assert differences(nodes, primary, "lagging") == []
                history = _history(primary, "lagging")
                if joined is not None and joined not in history:
                    wait_until(
                        lambda warned=warned: len(follower.told) > warned, within_s=10, what="the follower being told"
                    )
                    told += 1
                wait_until(
                    lambda history=history: set(follower.history) == set(history), within_s=20, what="the follower"
                )
                editors.resume()
                cloned += cluster.wait_whole()
        assert load.failures == []
        assert lost > 0, "no standby lagged, so nothing was shown"
        assert told > 0
        assert editors.messages().keys() <= UNKNOWN | REFUSED, editors.messages()
        report(
            f"{FAILOVERS} failovers to a lagging standby: promoted in {spread(promoted)}, {lost} acknowledged changes"
            f" lost by asynchronous replication; every node level {spread(level)} later; the follower was told {told}"
            f" times; {load.total} reads, 0 failed; {cloned} PostgreSQL nodes had to be cloned again"
        )
    assert max(level) < LEVEL_WITHIN_S


def _publish_another(nodes, folder):
    """Import one more company, and wait until every node shows it."""
    listing = json.loads((DEMO / "companies.jsonl").read_text().splitlines()[0])
    slug = f"lagging-{time.monotonic_ns()}"
    (folder / slug).mkdir()
    company = {name: listing["company"][name] for name in ("type", "industry", "status", "listedAt", "description")}
    line = {"company": {**company, "id": slug, "name": slug}}
    (folder / slug / "companies.jsonl").write_text(json.dumps(line) + "\n")
    nodes.command("import", str(folder / slug))
    path = f"/api/v1/companies/{slug}"
    wait_until(lambda: all(node.get(path).status == 200 for node in nodes.each), within_s=20, what="one more company")


def _history(node, name):
    with psycopg.connect(node.url(name), connect_timeout=3) as connection:
        rows = connection.execute(
            "SELECT sequence, chain FROM published_chain JOIN published_change USING (sequence)"
        ).fetchall()
    return {(sequence, bytes(chain).hex()) for sequence, chain in rows}


@pytest.mark.requirement("nodes.failover")
def test_nothing_acknowledged_is_lost_by_failovers_with_synchronous_replication(tmp_path):
    writable, acknowledged_of_all = [], 0
    with Cluster(3, synchronous_mode=True) as cluster, registry(tmp_path, cluster, "sync") as (nodes, token):
        slugs = nodes.slugs[:4]
        with (
            Load(nodes.ports, threads=4, pause_s=0.01) as load,
            Editors(nodes.each, token, slugs, pause_s=0.02) as editors,
        ):
            for number in range(FAILOVERS):
                former = cluster.wait_primary()
                before = editors.total
                wait_until(lambda before=before: editors.total >= before + 20, within_s=60, what="20 changes")
                acknowledged = dict(editors.acknowledged)
                began = time.monotonic()
                former.kill()
                primary = cluster.wait_primary(other_than=former)
                wait_until(lambda began=began: editors.answered_at > began + 0.5, within_s=60, what="a change")
                writable.append(editors.answered_at - began)
                kept = stored(primary, "sync", slugs)
                assert {slug: kept[slug] for slug in slugs if kept[slug] < acknowledged[slug]} == {}, number
                cluster.wait_whole()
                wait_until(lambda: _is_synchronous(cluster), within_s=30, what="a synchronous standby")
            editors.pause()
            primary = cluster.wait_primary()
            wait_until(
                lambda: {state_of_node(node) for node in nodes.each} == {state_of_primary(primary, "sync")},
                within_s=10,
                what="every node level",
            )
            kept = stored(primary, "sync", slugs)
            assert all(kept[slug] >= editors.acknowledged[slug] for slug in slugs)
            assert differences(nodes, primary, "sync") == []
            acknowledged_of_all = editors.total
        assert load.failures == []
        assert editors.messages().keys() <= UNKNOWN | REFUSED, editors.messages()
        doctor = run("doctor", data=tmp_path / "maker", **nodes.settings)
        assert "OK    replication: synchronous, 2 standbys connected" in doctor.stdout
    report(
        f"{FAILOVERS} failovers with synchronous_mode: {acknowledged_of_all} acknowledged changes, 0 lost; writable"
        f" again after {spread(writable)}; {load.total} reads, 0 failed"
    )


def _is_synchronous(cluster):
    with cluster.wait_primary().connect() as connection:
        return connection.execute("SHOW synchronous_standby_names").fetchone()[0] not in {"", "*"}


UNKNOWN = {
    "The database connection was lost; your change may or may not have been saved.",
    "No standby has confirmed your change: it is saved now, but a failover of the database may lose it.",
}
REFUSED = {
    "503",  # before the call: the token could not be looked up
    "The database is unavailable; nothing was saved. Public reads still work.",
    "No standby of the database confirms changes; nothing was saved. Public reads still work.",
    "Another change is in progress; nothing was saved.",
}


@pytest.mark.requirement("nodes.failover")
def test_with_strict_synchronous_replication_changes_stop_and_say_why_while_reads_continue(tmp_path):
    with (
        Cluster(2, synchronous_mode=True, synchronous_mode_strict=True) as cluster,
        registry(tmp_path, cluster, "strict") as (nodes, token),
        Load(nodes.ports, threads=4, pause_s=0.01) as load,
        Editors(nodes.each, token, nodes.slugs[:2]) as editors,
    ):
        wait_until(lambda: editors.total > 20, within_s=60, what="20 changes")
        primary = cluster.wait_primary()
        (standby,) = [node for node in cluster.nodes if node is not primary]
        told = run("doctor", data=tmp_path / "maker", **nodes.settings).stdout
        assert "OK    replication: synchronous, 1 standby connected" in told
        standby.stop()
        standby.end()
        wait_until(lambda: UNKNOWN & set(editors.messages()), within_s=60, what="an unconfirmed change")
        wait_until(lambda: _says_no_standby(nodes, editors), within_s=60, what="changes being refused for the standby")
        acknowledged = editors.total
        for node in nodes.each:
            assert node.get("/readyz").status == 200
            # Each node learns the reason by a change of its own; until then it only says that none is possible.
            wait_until(lambda node=node: _tells_of_standby(node), within_s=30, what="the reason")
            assert "muniment_standby_silent 1.0" in node.metrics()
        assert (
            "WARN  replication: synchronous, but 0 standbys"
            in run("doctor", data=tmp_path / "maker", **nodes.settings).stdout
        )
        assert editors.total == acknowledged, "nothing was acknowledged without a standby"
        standby.start()
        began = time.monotonic()
        cluster.wait_whole()
        whole = time.monotonic()
        wait_until(lambda: editors.total > acknowledged, within_s=30, what="changes again")
        assert editors.answered_at - whole < 5
        for node in nodes.each:
            node.wait_ready("/readyz?writes", within_s=10)
        editors.pause()
        kept = stored(primary, "strict", nodes.slugs[:2])
        assert all(kept[slug] >= editors.acknowledged[slug] for slug in kept)
        assert load.failures == []
        assert editors.messages().keys() <= UNKNOWN | REFUSED, editors.messages()
        report(
            f"synchronous_mode_strict without a standby: {editors.messages()}; the standby streamed"
            f" {whole - began:.1f} s after its start, changes {editors.answered_at - whole:.1f} s later"
        )


def _tells_of_standby(node):
    writes = node.get("/readyz?writes")
    assert writes.status == 503, writes
    return b"no standby confirms changes" in writes.body


def _says_no_standby(nodes, editors):
    return any(message.startswith("No standby of the database") for message in editors.messages()) and all(
        node.get("/readyz?writes").status == 503 for node in nodes.each
    )
