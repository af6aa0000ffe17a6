"""Traces, sent to a collector over HTTP: what is followed, as part of which trace, and what stands in none."""

import json
import subprocess
import sys
import time

import pytest

from services.otlp import Collector
from services.ports import free_port
from services.prepared import demo_registry, new_instance
from services.product import Product, environment
from services.uploads import Owner

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = f"00-{TRACE}-{PARENT}-01"
UNSAMPLED = f"00-{TRACE[::-1]}-{PARENT}-00"
SERVER = 2


@pytest.fixture(scope="module")
def collector():
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def product(tmp_path_factory, collector):
    data = demo_registry(tmp_path_factory.mktemp("traced") / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=suite")
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-of-the-collector=known")
        with Product(data, otlp_url=collector.url) as running:
            running.wait_ready()
            yield running


@pytest.mark.requirement("ops.traces")
def test_a_request_is_a_span_with_the_words_of_the_standard(product, collector):
    answer = product.get("/companies?q=harbour")
    span = collector.wait_for("GET pages", muniment__request_id=answer.headers["x-request-id"])
    assert span.kind == SERVER
    assert span.parent == ""
    assert not span.failed
    assert span.attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "url.path": "/companies",
        "muniment.surface": "pages",
        "muniment.request_id": answer.headers["x-request-id"],
    }
    assert span.resource["service.name"] == "muniment"
    assert span.resource["deployment.environment.name"] == "suite"
    assert collector.headers[-1]["x-of-the-collector"] == "known"


def test_a_trace_continues_the_one_of_the_caller(product, collector):
    answer = product.request("GET", "/people", {"traceparent": SAMPLED})
    span = collector.wait_for("GET pages", muniment__request_id=answer.headers["x-request-id"])
    assert (span.trace, span.parent) == (TRACE, PARENT)


def test_a_ready_read_is_followed_only_as_part_of_a_recorded_trace(product, collector):
    path = "/api/v1/companies?pageSize=3"
    for _ in range(2):
        product.get_of_each(path)
    ids = {
        kind: product.request("GET", path, headers).headers["x-request-id"]
        for kind, headers in {
            "plain": {},
            "unsampled": {"traceparent": UNSAMPLED},
            "broken": {"traceparent": "00-zz"},
            "sampled": {"traceparent": SAMPLED},
        }.items()
    }
    span = collector.wait_for("GET api", muniment__request_id=ids["sampled"])
    assert (span.trace, span.parent) == (TRACE, PARENT)
    followed = {each.attributes.get("muniment.request_id") for each in collector.spans}
    assert not followed & {ids["plain"], ids["unsampled"], ids["broken"]}


def test_health_checks_are_not_traced(product, collector):
    for path in ("/healthz", "/readyz", "/metrics"):
        product.request("GET", path, {"traceparent": SAMPLED})
    product.get("/frameworks")
    collector.wait_for("GET pages", url__path="/frameworks")
    assert not [each for each in collector.spans if each.attributes.get("muniment.surface") == "health"]


def test_tools_and_jobs_are_spans_and_no_secret_is_sent(product, collector):
    owner = Owner(product)
    content = b"the tides of the harbour"
    begun = owner.begin("tides.txt", len(content))
    tool = collector.wait_for("tool create_document_upload")
    request = next(each for each in collector.spans if each.span == tool.parent)
    assert request.name == "POST manage_mcp"
    link = begun["url"].partition(product.host)[2]
    assert product.request("PUT", link, body=content).status == 201
    assert product.request("PUT", f"{link}?token=harbour-secret", {"Cookie": "sessionid=harbour-secret"}).status == 404
    upload = collector.wait_for("PUT files", http__response__status_code=404)
    assert upload.attributes["url.path"] == "/uploads/***"
    owner.call("complete_document_upload", uploadId=begun["uploadId"])
    owner.call("get_my_company", slug="missing")
    missed = collector.wait_for("tool get_my_company")
    assert missed.attributes["error.type"] == "NotFound"
    assert collector.wait_for("job documents.completed").attributes["muniment.job.attempt"] == 1
    sent = b"".join(collector.bodies)
    for secret in (owner.token, link.rpartition("/")[2], "harbour-secret", "harbour.example", "tides.txt"):
        assert secret.encode() not in sent


def test_a_worker_sends_its_jobs(product, collector, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with subprocess.Popen(
        [sys.executable, "-m", "muniment", "worker"],
        env=environment(new_instance(tmp_path / "other"), otlp_url=collector.url),
        stderr=subprocess.DEVNULL,
    ) as worker:
        try:
            before = len(collector.spans)
            deadline = time.monotonic() + 90
            ours = f":{worker.pid}"
            while not any(each.resource["service.instance.id"].endswith(ours) for each in collector.spans[before:]):
                assert time.monotonic() < deadline, "the worker sent nothing"
                time.sleep(0.1)
        finally:
            worker.terminate()
            worker.wait(30)


def test_an_unreachable_collector_delays_neither_answers_nor_the_shutdown(tmp_path):
    with Product(new_instance(tmp_path / "data"), otlp_url=f"http://127.0.0.1:{free_port()}") as product:
        product.wait_ready()
        assert {product.get("/companies").status for _ in range(5)} == {200}
        began = time.monotonic()
        assert product.stop() == 0
        assert time.monotonic() - began < 30, "it waited for the collector"


@pytest.mark.requirement("ops.traces")
def test_nothing_of_it_is_imported_where_no_collector_is_named(tmp_path):
    asked = (
        "import sys, muniment.server.process.server_process, muniment.server.app.app;"
        "import muniment.jobs.worker, muniment.mcp.tools.owner.server;"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(); {asked}"],
        env={**environment(tmp_path), "DJANGO_SETTINGS_MODULE": "muniment.settings"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout.replace("'", '"')) == []
