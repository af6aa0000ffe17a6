"""Two nodes that share a store: whatever one lists, the other serves, while the registry changes."""

import hashlib

import pytest

from services.nodes import Nodes
from services.ports import wait_until
from services.s3 import S3

pytestmark = [pytest.mark.proof, pytest.mark.postgresql, pytest.mark.timeout(400)]


def test_what_one_node_lists_the_other_serves_also_without_the_store(postgres, tmp_path):
    postgres.drop("exported")
    url = postgres.create("exported")
    settings = {"base_url": "https://registry.example", "exports_interval_s": "1"}
    with (
        S3(tmp_path / "store") as store,
        Nodes(tmp_path, url, 2, storage_url=store.url(), **settings) as nodes,
    ):
        one, other = nodes.each
        assert len(one.data_of("/api/v1/exports")) == len(other.data_of("/api/v1/exports")) > 6
        writers = nodes.write(2, 60)
        editions, served = set(), 0
        while len(editions) < 3 or any(writer.poll() is None for writer in writers):
            lister, server = (one, other) if served % 4 else (other, one)
            for file in lister.data_of("/api/v1/exports"):
                editions.add(file["edition"])
                answer = server.get(f"/exports/{file['name']}")
                assert answer.status == 200, (file, answer)
                assert hashlib.sha256(answer.body).hexdigest() == file["sha256"]
                served += 1
        for writer in writers:
            assert writer.wait(120) == 0
        wait_until(
            lambda: one.data_of("/api/v1/exports") == other.data_of("/api/v1/exports"), within_s=60, what="one list"
        )
        store.stop()
        for node in nodes.each:
            for file in node.data_of("/api/v1/exports"):
                path = file["latestUrl"].removeprefix("https://registry.example")
                assert hashlib.sha256(node.get(path).body).hexdigest() == file["sha256"]
    print(f"\n{served} files listed by one node and served by the other, of {len(editions)} editions: 0 failed")  # noqa: T201 - the figures, for who runs it with -s
