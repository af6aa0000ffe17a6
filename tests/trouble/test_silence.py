"""
What a node needs says nothing: PostgreSQL is stopped, or holds the lock that every change needs; the store is silent.

Reads continue, health checks answer at once, and each change ends in a limited time. A service that refuses is the
subject of test_outages.
"""

import json
import re
import time
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest

from contract.shapes import check_error
from services.load import Load
from services.mcp import modern
from services.nodes import EMAIL, Nodes
from services.ports import wait_until
from services.postgres import Postgres
from services.product import Product
from services.s3 import BUCKET, KEY, S3, SECRET
from services.silent import Silent, stopped
from services.uploads import Owner, tool
from services.visitor import Visitor

pytestmark = [pytest.mark.sqlite, pytest.mark.timeout(600)]  # it has a PostgreSQL of its own
AT_ONCE_S = 2.0
"""Health checks take 0.1 s; on a busy machine more."""
BOUNDED_S = 30.0
"""A change waits for at most 10 s, and a silent server is left after one more; on a busy machine later."""
IMPATIENT = {"muniment.server.app.readiness.MAX_LAG_S": 4}
"""Longer than a database is silent before it counts as that, as the limit of the product is."""
PATHS = ("/api/v1/companies", "/api/v1/changes", "/", "/companies", "/people")
COOKIE = "sessionid=" + "a" * 32


@pytest.fixture(scope="module")
def cluster():
    cluster = Postgres()
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def nodes(cluster, tmp_path_factory):
    """Yield two nodes, the second of which is not ready as soon as it is four seconds behind."""
    folder = tmp_path_factory.mktemp("silence")
    with (
        Nodes(folder, cluster.create("silence"), 1) as nodes,
        Product(folder / "impatient", constants=IMPATIENT, **nodes.settings) as impatient,
    ):
        nodes.each.append(impatient)
        for node in nodes.each:
            node.wait_ready("/readyz?writes")
        yield nodes
        nodes.each.remove(impatient)


def test_a_node_that_says_that_it_is_ready_answers_also_before_it_looks_again(nodes, tmp_path):
    seldom = {"muniment.server.process.poller.POLL_S": 20.0}
    with Product(tmp_path / "new", constants=seldom, **nodes.settings) as node:
        node.wait_ready(within_s=15)
        assert node.get("/api/v1/companies").status == 200


@pytest.fixture(scope="module")
def token(nodes):
    return nodes.command("user", "token", EMAIL, "--name", "silence").stdout.split()[-1]


def change(nodes, node, token, website):
    arguments = {"slug": nodes.slugs[0], "changes": {"website": website}}
    headers, body = modern("tools/call", {"name": "update_my_company", "arguments": arguments})
    given = {name: value for name, value in headers if name != "host"} | {"Authorization": f"Bearer {token}"}
    return node.request("POST", "/api/manage/mcp", given, body)


def timed(function, *arguments, **options):
    began = time.monotonic()
    answer = function(*arguments, **options)
    return answer, time.monotonic() - began


def check_refused(answer):
    assert answer.status == 503, answer
    assert int(answer.headers["retry-after"]) >= 1
    check_error(answer, 503, "internal_error")


@pytest.mark.whole(keeps=0)
@pytest.mark.requirement("nodes.outage")
def test_while_the_database_is_stopped_nodes_are_ready_and_serve_reads(nodes, cluster, token):
    slowest_s = 0.0
    with Load(nodes.ports, paths=PATHS, threads=2, pause_s=0.02) as load:
        wait_until(lambda: load.total > 50, within_s=60, what="load")
        with stopped(cluster.pid):
            impatient = nodes.each[-1]

            def is_told():
                nonlocal slowest_s
                answer, seconds = timed(impatient.get, "/readyz")
                slowest_s = max(slowest_s, seconds)
                assert answer.status == 200, answer
                return answer.json()["status"] == "reads only: the database does not answer"

            wait_until(is_told, within_s=30, what="the node to say that the database is silent", every_s=0.2)
            lag = r"\nmuniment_edition_lag_seconds(?:\{.*\})? ([5-9]|\d\d)"
            wait_until(lambda: re.search(lag, impatient.metrics()), within_s=60, what="a lag beyond the limit")
            assert is_told(), "however far behind"
            for node in nodes.each:
                refused, seconds = timed(change, nodes, node, token, "https://meanwhile.example")
                check_refused(refused)
                assert seconds < BOUNDED_S
                unready, seconds = timed(node.get, "/readyz?writes")
                check_error(unready, 503, "internal_error")
                assert seconds < AT_ONCE_S
                for path in PATHS:
                    assert node.get(path, Cookie=COOKIE).status == 200
                ahead = node.get("/api/v1/changes?after=1000000")
                assert ahead.status in {200, 503}, "what the database may have is not refused as unknown"
        began = time.monotonic()
        wait_until(
            lambda: all(change(nodes, node, token, "https://after.example").status == 200 for node in nodes.each),
            within_s=30,
            what="changes",
        )
        changed_s = time.monotonic() - began
        wait_until(
            lambda: all(node.get("/readyz?writes").status == 200 for node in nodes.each), within_s=30, what="readiness"
        )
    assert load.failures == []
    assert slowest_s < AT_ONCE_S
    print(f"\n{load.total} reads, 0 failed; slowest /readyz {slowest_s:.3f} s; changed after {changed_s:.1f} s")  # noqa: T201 - a test of limits says what it measured


def test_a_change_that_waits_for_the_edition_is_refused_in_time_and_health_checks_say_why(nodes, token):
    node = nodes.each[0]
    with closing(psycopg.connect(nodes.settings["database_url"])) as other:
        other.execute("SELECT value FROM published_edition FOR UPDATE")
        refused, seconds = timed(change, nodes, node, token, "https://stuck.example")
        assert refused.json()["result"]["isError"], refused
        assert "Another change is in progress; nothing was saved." in refused.body.decode()
        assert seconds < BOUNDED_S

        def is_told():
            answer = node.get("/readyz?writes")
            return answer.status == 503 and "another session has held the edition" in answer.body.decode()

        wait_until(is_told, within_s=60, what="the health check to say so")
        assert node.get("/readyz").status == 200
        wait_until(
            lambda: re.search(r"\nmuniment_lock_wait_oldest_seconds [1-9]", node.metrics()),
            within_s=60,
            what="the age of the wait",
        )
        assert re.search(r"\nmuniment_changes_given_up_total(?:\{.*\})? [1-9]", node.metrics())
    assert "data" in change(nodes, node, token, "https://free.example").json()["result"]["structuredContent"]
    wait_until(lambda: node.get("/readyz?writes").status == 200, within_s=30, what="readiness")


BRIEF = {
    "muniment.documents.storage.ANSWER_S": 3,
    "muniment.documents.storage.CONNECT_S": 2,
}
"""Seconds that requests wait for the store, 30 in the product."""


def silent_settings(address):
    """Return the settings of a product whose services are all at *address*."""
    provider = {"key": "sso", "name": "Harbour login", "issuer": f"http://{address}", "client_id": "registry"}
    return {
        "storage_url": f"s3://{KEY}:{SECRET}@{BUCKET}/kept/here?region=us-east-1&endpoint=http://{address}",
        "mail_url": f"smtp://{address}",
        "clamd": address,
        "oidc_providers": json.dumps([{**provider, "client_secret": "between both"}]),
    }


def test_with_silent_services_everything_else_works_and_what_needs_them_ends_and_can_be_repeated(tmp_path):
    with Silent() as silent:
        settings = silent_settings(silent.address)
        with Product(tmp_path / "data", constants=BRIEF, database_url="", **settings) as node:

            def is_told():
                answer, seconds = timed(node.get, "/readyz")
                assert seconds < AT_ONCE_S
                return answer.status == 200 and answer.json()["status"] == (
                    "reads only: the document store does not answer"
                )

            wait_until(is_told, within_s=60, what="the node to say that the store is silent")
            owner = Owner(node, database_url="", **settings)
            refused, seconds = timed(
                tool, node, owner.token, "upload_document", companySlug=owner.slug, filename="a.txt", text="The tide."
            )
            assert refused["error"]["message"].startswith("The document store does not answer"), refused
            assert seconds < BOUNDED_S
            link = tool(
                node, owner.token, "create_document_upload", companySlug=owner.slug, filename="b.txt", sizeBytes=9
            )["data"]
            path = urlsplit(link["url"]).path
            refused, seconds = timed(node.request, "PUT", path, {"Content-Type": "text/plain"}, b"The tide.")
            check_refused(refused)
            assert seconds < BOUNDED_S
            with Visitor(node.url, {}) as person:
                answer, seconds = timed(person.send, "/accounts/oidc/sso/login/?process=login", follow=False)
            assert answer.status_code == 503, answer
            assert seconds < BOUNDED_S
            assert all(node.get(path).status == 200 for path in ("/", "/companies", "/accounts/login/"))
            silent.close()
            store = S3(tmp_path / "served")
            store.port = silent.port
            with store:
                sent = node.request("PUT", path, {"Content-Type": "text/plain"}, b"The tide.")
                assert sent.status == 201, sent
                wait_until(lambda: node.get("/readyz?writes").status == 200, within_s=60, what="readiness")


def test_a_question_without_an_answer_does_not_keep_a_process_from_ending(tmp_path):
    with Silent() as silent:
        settings = silent_settings(silent.address)
        with Product(tmp_path / "data", database_url="", **settings) as node:
            wait_until(lambda: b"reads only" in node.get("/readyz").body, within_s=60, what="the silence to be told")
            assert node.stop() == 0
