"""Few open files: reads and writes continue while idle connections take the rest."""

import socket
from contextlib import ExitStack

import pytest

from services import product as products
from services.prepared import demo_registry
from services.product import COMMAND, Product
from services.uploads import Owner

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]
PATHS = ("/api/v1/companies", "/api/v1/companies?q=tidal", "/companies", "/")


@pytest.mark.parametrize("files", [64, 256])
@pytest.mark.usefixtures("new_interpreters")
def test_twice_as_many_idle_connections_as_files_leave_room_for_requests(tmp_path, monkeypatch, files):
    monkeypatch.setattr(products, "COMMAND", ("prlimit", f"--nofile={files}:{files}", *COMMAND))
    with Product(demo_registry(tmp_path / "data"), "--workers", "1") as product, ExitStack() as idle:
        product.wait_ready("/readyz?writes")
        owner = Owner(product)
        for _ in range(2 * files):
            idle.enter_context(socket.create_connection(("127.0.0.1", product.port), timeout=10))
        for path in PATHS * 5:
            assert product.get(path).status == 200
        for number in range(5):
            found = owner.call("update_my_company", slug=owner.slug, changes={"description": f"No. {number}"})
            assert "data" in found, found
        assert product.get("/readyz?writes").status == 200
        assert "fewer connections than usual" in product.output()
        assert "Traceback" not in product.output()
