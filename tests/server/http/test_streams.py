"""The stream of changes from a real server: another process publishes, and the server ends."""

import contextlib
import http.client
import json

import pytest

from services.product import Product, run

pytestmark = pytest.mark.timeout(120)


def events(response):
    """Yield the data of each event until the stream ends."""
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def test_a_change_of_another_process_is_sent_and_the_stream_ends_with_the_server(tmp_path):
    with contextlib.ExitStack() as stack:
        product = stack.enter_context(Product(tmp_path / "data", "--demo"))
        product.wait_ready()
        connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=60)
        connection.request("GET", "/api/v1/changes/stream?kind=company")
        stack.callback(connection.close)
        response = connection.getresponse()
        assert (response.status, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert b"muniment_listeners 1.0" in product.get("/metrics").body
        file = tmp_path / "companies.jsonl"
        file.write_text(json.dumps({"company": {"id": "new-harbour", "name": "New Harbour"}}) + "\n")
        assert run("import", str(file), data=product.data).returncode == 0
        received = events(response)
        change = next(received)
        assert (change["id"], change["change"]) == ("new-harbour", "published")
        product.stop()
        assert list(received) == []  # a complete response: a chunk was not cut off
