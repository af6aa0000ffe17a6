"""Fields that are declared while a server serves: in use in every process within seconds, without a failed request."""

import json

import pytest

from services.declaring import declare
from services.load import Load
from services.nodes import Nodes
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import Product

TOML = '[[fields]]\nkey = "berths"\nlabel = "Berths"\nkind = "number"\nhelp = "At the quay."\n'
READ = (
    "/api/v1/companies?pageSize=3",
    "/api/v1/companies/quillmere",
    "/api/v1/companies?q=tide",
    "/companies",
    "/companies/quillmere",
    "/openapi.json",
)


def tools(product: Product) -> list[bytes]:
    """Return the answer to tools/list of each process."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    found: dict[str, bytes] = {}
    while len(found) < product.workers:
        answer = product.request("POST", "/api/mcp", headers, body)
        found.setdefault(answer.process, answer.body)
    return list(found.values())


def is_in_use(product: Product) -> bool:
    described = (answer.body for answer in product.get_of_each("/openapi.json"))
    listed = product.get_of_each("/api/v1/companies?hasBerths=false&pageSize=1")
    return (
        all(b'"berthsMin"' in body for body in (*described, *tools(product)))
        and all(answer.status == 200 and answer.json()["data"] for answer in listed)
        and all(b"berthsMin" in answer.body for answer in product.get_of_each("/companies"))
    )


def is_gone(product: Product) -> bool:
    described = (answer.body for answer in product.get_of_each("/openapi.json"))
    return not any(b'"berthsMin"' in body for body in (*described, *tools(product)))


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_declared_field_comes_into_use_while_every_request_is_answered(workers, tmp_path):
    data = demo_registry(tmp_path / "data")
    with Product(data, "--workers", workers) as product:
        product.wait_ready()
        for answer in product.get_of_each("/companies"):
            assert b"berthsMin" not in answer.body
        with Load([product.port], paths=READ, threads=4, pause_s=0.01) as load:
            wait_until(lambda: load.total > 20, within_s=30, what="load")
            declare(data, TOML)
            wait_until(lambda: is_in_use(product), within_s=20, what="the field in every process")
            declare(data, "")
            wait_until(lambda: is_gone(product), within_s=20, what="the end of the field")
        assert load.failures == []
        assert "Traceback" not in product.output()


@pytest.mark.whole(keeps=0)
def test_every_node_uses_a_declared_field_while_every_request_is_answered(postgres, tmp_path):
    url = postgres.create("declaring")
    with Nodes(tmp_path, url, 2, "--workers", "2", rate_limit="off") as nodes:
        with Load(nodes.ports, paths=READ, threads=4, pause_s=0.01) as load:
            wait_until(lambda: load.total > 20, within_s=30, what="load")
            declare(tmp_path / "maker", TOML, **nodes.settings)
            wait_until(lambda: all(map(is_in_use, nodes.each)), within_s=40, what="the field on every node")
        assert load.failures == []
        assert not any("Traceback" in node.output() for node in nodes.each)
