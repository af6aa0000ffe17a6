"""Several processes on one port: they share the work, are replaced when they die, and are rolled unnoticed."""

import contextlib
import http.client
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.load import Load
from services.ports import wait_until
from services.prepared import demo_registry, new_instance
from services.product import Product, run


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Yield the demo registry, served by two processes."""
    data = demo_registry(tmp_path_factory.mktemp("pair") / "data")
    with Product(data, "--workers", "2") as product:
        wait_until(lambda: len(ready(product)) == 2, within_s=60, what="two processes ready")
        yield product


def children(product):
    """Return the process ids of those who serve."""
    return {int(pid) for pid in Path(f"/proc/{product.pid}/task/{product.pid}/children").read_text().split()}


def samples(product, name, **labels):
    """Return the samples of *name* with *labels*."""
    families = text_string_to_metric_families(product.get("/metrics").body.decode())
    found = [sample for family in families for sample in family.samples if sample.name == name]
    return [sample for sample in found if labels.items() <= sample.labels.items()]


def ready(product):
    """Return the numbers of the processes that have loaded the pages."""
    product.get("/")
    return {sample.labels["process"] for sample in samples(product, "muniment_ready") if sample.value == 1}


def processes(product):
    """Return the numbers of the processes with metrics, and how many API requests each has answered."""
    found = samples(product, "muniment_requests_total", surface="api", method="GET", status="200")
    return {int(sample.labels["process"]): sample.value for sample in found}


@pytest.mark.requirement("serve.workers")
def test_two_processes_share_one_port_and_each_reports_the_metrics_of_both(pair):
    with Load([pair.port], threads=24, pause_s=0.01) as load:
        wait_until(lambda: load.total > 500, within_s=30, what="load")
    assert load.failures == []
    wait_until(lambda: sum(processes(pair).values()) >= load.total, within_s=60, what="every answer to be counted")
    shares = processes(pair)
    assert len(shares) == 2
    assert min(shares.values()) > load.total / 10
    text = pair.get("/metrics").body.decode()
    assert text.count("# TYPE muniment_requests_total counter") == 1
    assert text.count("# TYPE muniment_edition gauge") == 1
    assert {sample.labels["process"] for sample in samples(pair, "process_resident_memory_bytes")} == {"1", "2"}


def test_counters_never_decrease_whichever_process_answers(pair):
    former = {}
    for _ in range(30):
        pair.get("/api/v1/stats")
        now = processes(pair)
        assert all(now[number] >= count for number, count in former.items())
        former = now


@pytest.mark.requirement("serve.workers")
def test_a_process_that_dies_is_replaced_while_the_other_keeps_serving(pair):
    before = children(pair)
    victim = min(before)
    with Load([pair.port], threads=8, pause_s=0.005) as load:
        wait_until(lambda: load.total > 100, within_s=30, what="load")
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(children(pair)) == 2 and victim not in children(pair), within_s=60, what="another")
        asked = load.total
        wait_until(lambda: load.total > asked + 300, within_s=30, what="load")
    # Each client of the killed process loses the request that it had under way, and no other.
    assert len(load.failures) <= 8
    assert len(children(pair) & before) == 1
    assert "another replaces it" in pair.output()
    wait_until(lambda: len(ready(pair)) == 2, within_s=60, what="two processes ready")


@pytest.mark.requirement("serve.rolling")
def test_a_roll_replaces_every_process_and_fails_no_request(pair):
    product = pair
    before = children(product)
    with Load([product.port], threads=6, pause_s=0.01) as load:
        wait_until(lambda: load.total > 100, within_s=30, what="load")
        os.kill(product.pid, signal.SIGHUP)
        wait_until(lambda: "every process has been replaced" in product.output(), within_s=90, what="the roll")
        wait_until(lambda: len(children(product)) == 2, within_s=30, what="the former ones to end")
        asked = load.total
        wait_until(lambda: load.total > asked + 100, within_s=30, what="load")
    assert load.failures == []
    assert not children(product) & before


def test_a_fresh_start_of_two_processes_loads_the_demo_once_and_none_is_ready_before_it(tmp_path):
    product = Product(tmp_path / "data", "--workers", "2", "--demo").start()
    seen = set()

    def both_are_ready():
        """Ask on kept connections: what answers the second request is the process that answered the first."""
        connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                connection.request("GET", "/api/v1/companies/quillmere")
                assert connection.getresponse().status == 200
                seen.add(answer.headers["x-request-id"][:-8])
        return len(seen) == 2

    wait_until(both_are_ready, within_s=60, what="two processes ready")
    for once in ("database migrations applied", "Demo registry loaded", "Sign in as owner"):
        assert product.output().count(once) == 1
    assert len(list((tmp_path / "data" / "keys").iterdir())) == 1
    output = product.output()
    assert "Traceback" not in output, output
    ours = children(product)
    assert product.stop() == 0
    assert not [pid for pid in ours if Path(f"/proc/{pid}").exists()]


def test_processes_end_when_their_supervisor_is_killed(tmp_path):
    product = Product(new_instance(tmp_path / "data"), "--workers", "2").start()
    wait_until(lambda: len(children(product)) == 2, within_s=60, what="two processes")
    ours = children(product)
    product.kill()

    def gone():
        try:
            socket.create_connection(("127.0.0.1", product.port), timeout=1).close()
        except ConnectionRefusedError:
            return not [pid for pid in ours if Path(f"/proc/{pid}/exe").exists()]
        return False

    wait_until(gone, within_s=30, what="the processes to end")


def test_a_port_that_several_processes_hold_is_taken(pair):
    def serve(*arguments):
        return run("serve", "--port", str(pair.port), *arguments, data=pair.data, check=False)

    with ThreadPoolExecutor() as both:  # each waits for the port for some seconds
        ends = [both.submit(serve), both.submit(serve, "--workers", "2")]
    for end in ends:
        done = end.result()
        assert done.returncode == 1
        assert "--port" in done.stderr
        assert "Traceback" not in done.stderr
