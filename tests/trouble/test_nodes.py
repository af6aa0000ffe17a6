"""Nodes over one PostgreSQL: writers at once, nodes killed, the database gone. What every node shows stays the same."""

import json
import os
import random
import re
import signal
import sqlite3
import threading
import time
from collections import defaultdict
from contextlib import closing

import psycopg
import pytest

from contract.shapes import check_error
from muniment.schema.objects import registry_schema
from muniment.store import published
from muniment.store.tables import FILE_NAME
from muniment.store.tables.comparing import compare
from muniment.store.tables.form import Form
from services.load import Load
from services.mcp import modern
from services.nodes import EMAIL, Nodes, everything, feed, shown
from services.pooler import Pooler
from services.ports import SEEN_WITHIN_S, wait_until
from services.product import Product

pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(600)]
REGISTRATION = b'{"client_name": "Meanwhile", "redirect_uris": ["https://meanwhile.example/cb"]}'


@pytest.fixture(scope="module")
def pair(postgres, tmp_path_factory):
    """Yield two nodes."""
    postgres.drop("pair")
    with Nodes(tmp_path_factory.mktemp("pair"), postgres.create("pair"), 2) as nodes:
        yield nodes


def newest(nodes):
    with psycopg.connect(nodes.settings["database_url"]) as connection:
        return connection.execute("SELECT value FROM published_edition").fetchone()[0]


@pytest.mark.whole(keeps=0)
def test_a_node_does_not_refuse_a_number_that_it_has_not_replicated_yet(pair):
    for number in range(2):
        pair.command("person", "correct", "ilsabet-corrowan", "--bio", f"Engineer of {number} machines.")
        edition = newest(pair)
        for node in pair.each:
            told = node.get(f"/api/v1/changes?after={edition}")
            assert (told.status, told.json()["head"]) == (200, edition)
            assert check_error(node.get(f"/api/v1/changes?after={edition + 1}"), 400, "bad_request")
    assert len({node.get("/api/v1/changes").json()["feedId"] for node in pair.each}) == 1


def test_an_erased_person_leaves_every_node_and_its_file(pair):
    slug, name = "ptolemy-fenn", b"Ptolemy Fenn"
    files = [node.data / "published.sqlite3" for node in pair.each]
    pair.wait_level(newest(pair))

    def left():
        parts = [part for file in files for part in sorted(file.parent.glob(f"{file.name}*"))]
        tables = [part for node in pair.each for part in node.data.glob(f"{FILE_NAME}*")]
        named = [part.name for part in [*parts, *tables] if name in part.read_bytes()]
        # The feed keeps the slug for copies, and tables are none.
        return named + [part.name for part in tables if slug.encode() in part.read_bytes()]

    assert all(node.get(f"/api/v1/people/{slug}").status == 200 for node in pair.each)
    assert left()
    told = pair.command("person", "erase", slug, "--yes")
    assert "names the person" not in told.stdout
    pair.wait_level(newest(pair))
    assert [node.get(f"/api/v1/people/{slug}").status for node in pair.each] == [404, 404]
    wait_until(lambda: not left(), within_s=60, what="the files without the name")


def check_tables(nodes):
    """Hold every row of the tables of each node against the published documents."""
    form = Form(registry_schema("USD"))
    for node in nodes.each:
        found = compare(node.data / "published.sqlite3", node.data / FILE_NAME, form, "", 1_000_000)
        assert found.faults == []
        assert found.examined > 10, "the tables reached the edition of the documents"


def check_all_is_there(nodes, notes):
    """Hold every node against what the writers noted and against the feed of the database."""
    edition = newest(nodes)
    nodes.wait_level(edition, within_s=60)
    with psycopg.connect(nodes.settings["database_url"]) as connection:
        kept = connection.execute(
            "SELECT sequence, kind, key, change FROM published_change ORDER BY sequence"
        ).fetchall()
    assert [row[0] for row in kept] == list(range(1, edition + 1)), "nothing lost and nothing doubled"
    truth = everything(nodes.each[0])
    for node in nodes.each:
        told = feed(node)
        assert [(each["sequence"], each["kind"], each["id"], each["change"]) for each in told] == kept
        assert everything(node) == truth
    check_tables(nodes)
    by_edition = {row[0]: row[2] for row in kept}
    assert all(by_edition[note["edition"]] == note["slug"] for note in notes)
    assert len({note["edition"] for note in notes}) == len(notes)
    last = {note["slug"]: note["website"] for note in notes}
    for slug, website in last.items():
        assert json.loads(truth[f"companies/{slug}"])["data"]["company"]["website"] == website


class Seen:
    """When each node was first seen to show an edition."""

    def __init__(self):
        self.first = defaultdict(list)

    def __call__(self, port, headers):
        edition = int(headers["x-muniment-edition"])
        if not self.first[port] or edition > self.first[port][-1][0]:
            self.first[port].append((edition, time.time()))

    def lags(self, notes, down):
        """Return the seconds from each commit until each node showed it, but while that node was down."""
        found = []
        for port, steps in self.first.items():
            index = 0
            for note in notes:
                while index < len(steps) and steps[index][0] < note["edition"]:
                    index += 1
                if index == len(steps):
                    break
                if not any(begin - 1 <= note["at"] <= end for where, begin, end in down if where == port):
                    found.append(max(0.0, steps[index][1] - note["at"]))
        return sorted(found)


@pytest.mark.requirement("nodes.same")
def test_writers_at_once_leave_the_same_bytes_on_every_node(pair):
    seen = Seen()
    with Load(pair.ports, threads=2, pause_s=0.01, observe=seen) as load:
        for writer in pair.write(2, 25):
            assert writer.wait(90) == 0
        pair.wait_level(newest(pair))
    assert load.failures == []
    notes = pair.notes(2)
    assert len(notes) == 50
    check_all_is_there(pair, notes)
    lags = seen.lags(notes, [])
    assert lags[len(lags) // 2] < SEEN_WITHIN_S, "a change is shown by every node soon"


def test_a_new_node_builds_itself_and_takes_no_part_until_it_has(pair, tmp_path):
    with Product(tmp_path / "late", **pair.settings) as late:
        answer = late.get("/api/v1/companies/quillmere")
        assert answer.status in {200, 503}, "never 404: what it has not built is not gone"
        if answer.status == 503:
            assert int(answer.headers["retry-after"]) >= 1
            check_error(late.get("/readyz"), 503, "internal_error")
        late.wait_ready(within_s=60)
        assert late.get("/readyz").json()["edition"] == newest(pair)
        assert everything(late) == everything(pair.each[0])
        assert feed(late)[-1]["sequence"] == newest(pair)


def test_a_process_reads_what_another_process_of_its_node_holds_for_writing(pair):
    data = pair.each[0].data
    with closing(sqlite3.connect(data / "published.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with Product(data, **pair.settings) as late:
            assert late.get("/api/v1/companies/quillmere").status == 200
        other.execute("ROLLBACK")


def test_a_process_reads_the_file_that_another_was_still_making_when_it_began(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with closing(sqlite3.connect(data / "published.sqlite3", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("BEGIN IMMEDIATE")
        published.create(other)
        with Product(data, database_url="postgresql://unknown@127.0.0.1:9/none") as late:
            check_error(late.get("/api/v1/companies"), 503, "internal_error")
            other.execute("COMMIT")
            late.wait_ready("/api/v1/companies", within_s=SEEN_WITHIN_S)


@pytest.mark.requirement("nodes.edition")
def test_a_node_reports_its_lag(pair):
    node = pair.each[0]
    assert node.get("/readyz").json() | {"behindSeconds": 0} == {
        "status": "ready",
        "edition": newest(pair),
        "newest": newest(pair),
        "behindSeconds": 0,
    }
    text = node.metrics()
    assert re.findall(r"\nmuniment_edition(?:\{.*\})? (\d+)", text) == [str(newest(pair))] * node.workers
    assert len(re.findall(r"\nmuniment_edition_lag_seconds(?:\{.*\})? \d", text)) == node.workers


IMPATIENT = {"muniment.server.app.readiness.MAX_LAG_S": 1}


@pytest.mark.requirement("nodes.edition")
def test_a_node_that_stays_behind_is_not_ready_and_says_by_how_much(pair, tmp_path):
    with Product(tmp_path / "slow", constants=IMPATIENT, **pair.settings) as slow:
        slow.wait_ready(within_s=60)
        with closing(sqlite3.connect(slow.data / "published.sqlite3", isolation_level=None)) as held:
            held.execute("BEGIN IMMEDIATE")
            assert pair.write(1, 1)[0].wait(60) == 0
            pair.wait_level(newest(pair))
            wait_until(
                lambda: all(answer.status == 503 for answer in slow.get_of_each("/readyz")),
                within_s=60,
                what="each process of the node to say so",
            )
            message = slow.get("/readyz").json()["error"]["message"]
            assert f"is at edition {shown(slow)} of {newest(pair)}, " in message
            assert "s behind" in message
            assert shown(slow) == newest(pair) - 1
            assert slow.get("/api/v1/stats").status == 200
            held.execute("ROLLBACK")
        slow.wait_ready()
        wait_until(lambda: shown(slow) == newest(pair), within_s=60, what="the change")


def tools_call(node, token, **arguments):
    headers, body = modern("tools/call", {"name": "update_my_company", "arguments": arguments})
    given = {name: value for name, value in headers if name != "host"} | {"Authorization": f"Bearer {token}"}
    return node.request("POST", "/api/manage/mcp", given, body)


def stopped(pair, postgres, seconds, threads):
    """Stop the database under load; give the load after everything has recovered."""
    token = pair.command("user", "token", EMAIL, "--name", f"for {seconds} s").stdout.strip()
    slug = pair.slugs[0]
    assert tools_call(pair.each[0], token, slug=slug, changes={"website": "https://before.example"}).status == 200
    edition = newest(pair)
    pair.wait_level(edition)
    psycopg.connect(pair.settings["database_url"], autocommit=True).execute("CHECKPOINT").connection.close()
    paths = ("/api/v1/companies", f"/api/v1/companies/{slug}", "/api/v1/changes", "/", f"/companies/{slug}", "/people")
    with Load(pair.ports, paths=paths, threads=threads, pause_s=0.01) as load:
        wait_until(lambda: load.total > 50, within_s=30, what="load")
        postgres.stop()
        try:
            until = time.monotonic() + seconds
            for node in pair.each:
                written = tools_call(node, token, slug=slug, changes={"website": "https://meanwhile.example"})
                assert written.status == 503, written
                assert int(written.headers["retry-after"]) >= 1
                check_error(written, 503, "internal_error")
                registered = node.request("POST", "/oauth/register", {"Content-Type": "application/json"}, REGISTRATION)
                assert (registered.status, registered.json()["error"]) == (503, "temporarily_unavailable")
                assert int(registered.headers["retry-after"]) >= 1
                session = "sessionid=" + "a" * 32
                page = node.get("/manage", Cookie=session, Accept="text/html")
                assert page.status == 503, page
                assert int(page.headers["retry-after"]) >= 1
                assert node.get("/companies", Cookie=session).status == 200, "who is signed in reads on too"
                # It answers from what its probes know, which ask once per second.
                wait_until(
                    lambda node=node: node.get("/readyz").json()["status"].startswith("reads only"),
                    within_s=30,
                    what="the node to say that its database is away",
                )
                check_error(node.get("/readyz?writes"), 503, "internal_error")
                assert node.get("/healthz").status == 200
            while time.monotonic() < until:
                time.sleep(0.1)
        finally:
            postgres.start()
        wait_until(
            lambda: all(node.get("/readyz?writes").status == 200 for node in pair.each), within_s=60, what="all ready"
        )
        for number, node in enumerate(pair.each):
            website = f"https://after-{number}.example"
            written = tools_call(node, token, slug=slug, changes={"website": website})
            assert written.status == 200
            assert "data" in written.json()["result"]["structuredContent"], written
        pair.wait_level(newest(pair))
    assert newest(pair) == edition + len(pair.each), "what was refused was not done"
    assert load.failures == []
    for node in pair.each:
        assert node.data_of(f"/api/v1/companies/{slug}")["company"]["website"] == website
    return load


@pytest.mark.requirement("nodes.outage")
def test_reads_continue_while_the_database_is_down_and_writes_are_refused(pair, postgres):
    stopped(pair, postgres, 5, 2)


def test_a_node_that_starts_without_its_database_shows_what_it_has_and_recovers(pair, postgres):
    node = pair.each[1]
    pair.wait_level(newest(pair))
    truth = everything(node)
    assert node.stop() == 0
    psycopg.connect(pair.settings["database_url"], autocommit=True).execute("CHECKPOINT").connection.close()
    postgres.stop()
    try:
        node.start()
        assert everything(node) == truth
        wait_until(
            lambda: node.get("/readyz").status == 200, within_s=30, what="the node to say that its reads are good"
        )
        began = time.monotonic()
        refused = tools_call(node, "mun_pat_none", slug="quillmere", changes={})
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert node.get("/manage").status == 503
        assert time.monotonic() - began < 25, "what cannot be done is refused at once"
    finally:
        postgres.start()
    node.wait_ready("/readyz?writes", within_s=60)
    assert everything(node) == truth


@pytest.mark.proof
@pytest.mark.skipif(not Pooler.is_installed(), reason="pgbouncer is not installed: make services installs it as root")
def test_nodes_work_behind_a_pooler_that_gives_connections_by_transaction(postgres, tmp_path):
    postgres.drop("pooled")
    with Pooler(postgres.create("pooled")) as pooler, Nodes(tmp_path, pooler.url, 2) as nodes:
        token = nodes.command("user", "token", EMAIL, "--name", "pooled").stdout.strip()
        with Load(nodes.ports, threads=2, pause_s=0.01) as load:
            for writer in nodes.write(2, 25):
                assert writer.wait(90) == 0
            for number, node in enumerate(nodes.each * 3):
                website = f"https://pooled-{number}.example"
                written = tools_call(node, token, slug=nodes.slugs[0], changes={"website": website})
                assert "data" in written.json()["result"]["structuredContent"], written
            nodes.wait_level(newest(nodes))
        assert load.failures == []
        page = nodes.each[0].get("/accounts/login/")
        assert page.status == 200
        nodes.command("export", str(tmp_path / "out"))
        truth = everything(nodes.each[0])
        assert everything(nodes.each[1]) == truth
        assert json.loads(truth[f"companies/{nodes.slugs[0]}"])["data"]["company"]["website"] == website
        output = "".join(node.output() for node in nodes.each)
        assert "prepared statement" not in output
        assert "Traceback" not in output


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_with_the_database_away_for_a_minute_no_read_fails(pair, postgres):
    load = stopped(pair, postgres, 60, 4)
    print(f"\n{load.total} reads while PostgreSQL was away for 60 s: 0 failed")  # noqa: T201 - a proof says what it measured


@pytest.mark.proof
@pytest.mark.timeout(1500)
def test_five_thousand_changes_while_nodes_are_killed_at_random(postgres, tmp_path):
    postgres.drop("fleet")
    chance = random.Random(8)
    down, seen, done = [], Seen(), threading.Event()
    with Nodes(tmp_path, postgres.create("fleet"), 3) as nodes:

        def kill_at_random():
            while not done.wait(chance.uniform(4, 9)):
                node = chance.choice(nodes.each)
                began = time.time()
                node.kill()
                time.sleep(chance.uniform(0.2, 2))
                node.start(within_s=60)
                down.append((node.port, began, time.time()))

        killer = threading.Thread(target=kill_at_random)
        with Load(nodes.ports, threads=6, pause_s=0.02, observe=seen) as load:
            writers = nodes.write(8, 625)
            killer.start()
            try:
                for writer in writers:
                    assert writer.wait(1200) == 0
            finally:
                done.set()
                killer.join(120)
            nodes.wait_level(newest(nodes), within_s=60)
        notes = nodes.notes(8)
        assert len(notes) == 5_000
        check_all_is_there(nodes, notes)
    strangers = [
        failure
        for failure in load.failures
        if not any(port == failure[1] and begin - 0.1 <= failure[0] <= end + 0.5 for port, begin, end in down)
    ]
    assert strangers == [], "no read failed but at a node that was killed"
    lags = seen.lags(notes, down)
    p50, p99 = lags[len(lags) // 2], lags[int(len(lags) * 0.99)]
    print(f"\n{len(down)} kills, {load.total} reads, lag p50 {p50:.3f} s, p99 {p99:.3f} s, max {lags[-1]:.3f} s")  # noqa: T201 - a proof says what it measured
    assert len(down) >= 5
    assert p99 < 1


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_nodes_of_two_processes_are_rolled_under_load_without_a_failed_request(postgres, tmp_path):
    postgres.drop("rolled")
    with Nodes(tmp_path, postgres.create("rolled"), 2, "--workers", "2") as nodes:
        writers = nodes.write(2, 200)
        with Load(nodes.ports, threads=8, pause_s=0.005) as load:
            for node in nodes.each:
                os.kill(node.pid, signal.SIGHUP)
                wait_until(
                    lambda node=node: "every process has been replaced" in node.output(), within_s=200, what="the roll"
                )
            for writer in writers:
                assert writer.wait(200) == 0
            nodes.wait_level(newest(nodes))
        assert load.failures == []
        check_all_is_there(nodes, nodes.notes(2))
        print(f"\n{load.total} reads while two nodes of two processes were rolled: 0 failed")  # noqa: T201 - a proof says what it measured
