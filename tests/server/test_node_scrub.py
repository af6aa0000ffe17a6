"""What a node has for itself, its copy and its exports, is verified by the node and made again."""

import json
import sqlite3
from contextlib import closing

import pytest

from make.published import Publisher, company
from muniment.config import Config
from muniment.schema.objects import registry_schema
from muniment.server import node_scrub
from muniment.server.node_scrub import STATE, NodeScrub
from muniment.server.observability.metrics import Metrics
from muniment.store.exports.exports import Exports

BEGAN = 1_800_000_000.0


@pytest.fixture
def config(tmp_path):
    return Config({}, data=tmp_path)


@pytest.fixture
def exports(config):
    publisher = Publisher(config.published_file)
    publisher.publish(*(company(number) for number in range(1, 9)))
    publisher.close()
    made = Exports(config.data / "exports", config.published_file, registry_schema("USD"))
    made.make()
    yield made
    made.close()


def damages(config, *, mend=False):
    return [
        damage for check in node_scrub.node_checks(config) for part in check.whole(mend=mend) for damage in part.damages
    ]


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_whole_exports_have_no_damage_and_none_at_all_neither(config, exports):
    assert damages(config) == []
    assert damages(Config({}, data=config.data / "elsewhere")) == []


def test_a_damaged_export_is_found_and_made_again(config, exports):
    file = config.data / "exports" / exports.files()[0].name
    before = file.read_bytes()
    flip(file)
    (damage,) = damages(config)
    assert (damage.subject, damage.is_mended) == (file.name, False)
    assert f"delete {file}" in damage.remedy
    assert damages(config, mend=True)[0].is_mended
    assert exports.files() == [], "nothing damaged is offered"
    exports.make()
    assert file.read_bytes() == before
    file.unlink()
    assert len(damages(config)) == 1


def test_a_node_continues_its_pass_and_reports_what_is_left(config, exports, monkeypatch):
    times = iter([BEGAN, BEGAN + 3_601, BEGAN + 8 * 86_400.0])
    metrics = Metrics()
    scrub = NodeScrub(config, metrics, clock=lambda: next(times))
    flip(config.data / "exports" / exports.files()[0].name)
    for _ in range(3):
        scrub.take_turn()
    stored = json.loads((config.data / STATE).read_bytes())
    assert (stored["mended"], stored["former"]) == (1, [])
    assert "muniment_scrub_node_damaged" in str(list(metrics.families()))
    (config.data / STATE).write_bytes(b"torn")
    monkeypatch.setattr(scrub, "_clock", lambda: BEGAN)
    scrub.take_turn()
    stored = json.loads((config.data / STATE).read_bytes())
    assert stored["beganAt"] < BEGAN, "a torn state begins again"


@pytest.mark.postgresql
def test_a_damaged_copy_is_found_and_built_again_while_it_is_served(postgres, tmp_path):
    import psycopg

    from muniment.store import postgres_feed
    from muniment.store.published_document import PublishedEntry
    from muniment.store.replica import Replica

    url = postgres.create("node_checks")
    with psycopg.connect(url) as source:
        postgres_feed.create(source)
        first = postgres_feed.reserve(source, 8)
        entries = [
            PublishedEntry(
                sequence=n, kind="company", key=f"company-{n}", change="published", at="x", document=company(n)
            )
            for n in range(first, first + 8)
        ]
        postgres_feed.apply(source, entries)
    config = Config({"MUNIMENT_DATABASE_URL": url, "MUNIMENT_SECRET_KEY": "x" * 50}, data=tmp_path)
    replica = Replica(url, config.published_file)
    replica.catch_up()
    assert damages(config) == []
    with closing(sqlite3.connect(config.published_file)) as copy, copy:
        copy.execute("UPDATE published_item_company SET item = x'00' WHERE position = 3")
        copy.execute("DELETE FROM published_document WHERE key = 'company-5'")
    found = [damage.subject for damage in damages(config)]
    assert {"company company-3", "company company-5", "documents"} <= set(found)
    assert all(damage.is_mended for damage in damages(config, mend=True))
    assert replica.catch_up(), "it notices by itself"
    assert damages(config) == []
    replica.close()
