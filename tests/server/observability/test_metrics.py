"""/metrics: what it counts, that a real parser reads it, and that every name is explained."""

import http.client
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from muniment.kernel.signed_notes import WitnessKey
from services.ports import free_port, wait_until
from services.prepared import demo_registry
from services.product import Product, run
from services.uploads import Owner

DOCUMENT = (Path(__file__).parents[3] / "docs" / "OBSERVABILITY.md").read_text()
ON_NODES_ALONE = {
    "muniment_edition_lag_seconds",
    "muniment_replica_rebuilds_total",
    "muniment_standby_silent",
    "muniment_commits_unconfirmed_total",
}
"""Shown where a node follows PostgreSQL."""
WITNESS = WitnessKey("witness.example", bytes(range(32)))
"""Of which there are metrics; it does not answer."""


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    data = demo_registry(tmp_path_factory.mktemp("measured") / "data")
    with Product(data, witnesses=f"{WITNESS.text()} http://127.0.0.1:{free_port()}") as running:
        running.wait_ready()
        yield running


def families(product):
    """Read everything with the parser of Prometheus' own client."""
    assert product.get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(product.metrics())}


def value(product, name, **labels):
    """Return the sum of the samples of *name* that carry *labels*."""
    family = families(product)[name.removesuffix("_total")]
    return sum(
        sample.value for sample in family.samples if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_each_answer_is_counted_by_surface_method_and_status(product):
    def counted(**labels):
        return value(product, "muniment_requests_total", **labels)

    asked = (
        ("GET", "/api/v1/stats", {"surface": "api", "method": "GET", "status": "200"}),
        ("GET", "/api/v1/companies/missing", {"surface": "api", "method": "GET", "status": "404"}),
        ("HEAD", "/api/v1/stats", {"surface": "api", "method": "HEAD", "status": "200"}),
        ("PROPFIND", "/api/v1/stats", {"surface": "api", "method": "other", "status": "405"}),
        ("GET", "/companies", {"surface": "pages", "method": "GET", "status": "200"}),
        ("GET", "/accounts/login/", {"surface": "accounts", "method": "GET", "status": "200"}),
        ("GET", "/api/mcp", {"surface": "mcp", "method": "GET", "status": "405"}),
        ("GET", "/api/manage/mcp", {"surface": "manage_mcp", "method": "GET", "status": "401"}),
        ("PUT", "/uploads/nothing", {"surface": "files", "method": "PUT", "status": "404"}),
    )
    for method, path, labels in asked:
        before = counted(**labels)
        assert product.request(method, path).status == int(labels["status"])
        # A page's answer is out a moment before it is counted. The condition is asked in this round alone.
        wait_until(lambda: counted(**labels) == before + 1, within_s=60, what=f"the count of {method} {path}")  # noqa: B023


def test_the_times_of_a_surface_are_as_many_as_its_answers(product):
    product.get("/api/v1/companies?q=quill")
    text = families(product)

    def place(sample):
        return sample.labels.get("process", "alone"), sample.labels["surface"]

    counts = Counter()
    for sample in text["muniment_requests"].samples:
        counts[place(sample)] += sample.value
    times = text["muniment_request_duration_seconds"].samples
    timed = {place(sample): sample.value for sample in times if sample.name.endswith("_count")}
    assert timed == counts
    assert "api" in {surface for _, surface in timed}
    for each, count in timed.items():
        buckets = [sample.value for sample in times if sample.name.endswith("_bucket") and place(sample) == each]
        assert buckets == sorted(buckets)
        assert buckets[-1] == count


def test_the_cache_reports_its_hits(product):
    def counted(result):
        return value(product, "muniment_cache_requests_total", result=result)

    hits, misses = counted("hit"), counted("miss")
    with closing(http.client.HTTPConnection("127.0.0.1", product.port, timeout=30)) as kept:  # one process, one cache

        def ask(**headers):
            kept.request("GET", "/api/v1/companies?pageSize=7", headers=headers)
            answer = kept.getresponse()
            answer.read()
            return answer

        assert ask().status == 200
        assert (counted("hit"), counted("miss")) == (hits, misses + 1)
        for forwarded in ({}, {"Range": "bytes=0-1"}):  # on the fast path, and on the ordinary one
            assert ask(**forwarded, **{"If-None-Match": ask(**forwarded).headers["etag"]}).status == 304
        assert (counted("hit"), counted("miss")) == (hits + 4, misses + 1)


@pytest.mark.requirement("ops.metrics")
def test_every_metric_is_explained_with_its_type_and_none_other_is(product):
    explained = dict(re.findall(r"(?m)^\| `(\w+)` \| (\w+) \|", DOCUMENT))
    text = product.get("/metrics").body.decode()
    shown = dict(re.findall(r"(?m)^# TYPE (\w+) (\w+)$", text))
    assert {name: kind for name, kind in explained.items() if name not in ON_NODES_ALONE} == {
        name: kind for name, kind in shown.items() if name not in ON_NODES_ALONE
    }
    for name, kind in shown.items():
        assert re.fullmatch(r"(muniment|process)_[a-z_]+", name)
        assert name.endswith("_total") == (kind == "counter"), name


@pytest.mark.sqlite  # it writes into the database's file
def test_credits_jobs_and_files_are_counted_from_the_database(product):
    owner = Owner(product)
    run("credits", "grant", "owner@harbour.example", "25", data=product.data)
    content = b"the tides of the harbour"
    link = urlsplit(owner.begin("a.txt", len(content))["url"]).path
    before = value(product, "muniment_upload_bytes_total")
    assert product.request("PUT", link, body=content + b"!").status == 413
    assert product.request("PUT", link, body=content).status == 201
    assert value(product, "muniment_uploads_total", result="refused") >= 1
    assert value(product, "muniment_uploads_total", result="received") == 1
    assert value(product, "muniment_upload_bytes_total") == before + len(content)
    with sqlite3.connect(product.data / "muniment.sqlite3", timeout=60) as database:
        database.execute(
            "INSERT INTO jobs_job (id, kind, payload, state, priority, run_at, attempt, excused, worker, 'group',"
            " cancel_requested, progress, error, created_at)"
            " VALUES ('x', 'suite.without_handler', '{}', 'queued', 0, '2026-01-01', 0, 0, '', '', 0, '{}', '',"
            " '2026-01-01')".replace("'group'", '"group"')
        )
    database.close()
    product.stop()
    product.start()
    product.wait_ready()
    assert value(product, "muniment_database_up") == 1
    assert value(product, "muniment_ledger_balance_credits") == 125
    assert value(product, "muniment_ledger_held_credits") == 0
    assert value(product, "muniment_ledger_agrees") == 1
    assert value(product, "muniment_documents", state="uploaded") == 1
    assert value(product, "muniment_documents_bytes", state="uploaded") == len(content)
    assert value(product, "muniment_jobs", kind="suite.without_handler", state="queued") == 1
    assert value(product, "muniment_jobs_oldest_waiting_seconds", kind="suite.without_handler") > 3600
