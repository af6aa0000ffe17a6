"""What the metrics show of the database: asked seldom, never waited for long, and gone when it does not answer."""

import asyncio
import threading
import time

import msgspec
import pytest
from django.db import connections

from muniment.server.observability import database_metrics as module
from muniment.server.observability import metrics as metrics_module
from muniment.server.observability.database_metrics import DatabaseMetrics
from muniment.server.observability.exposition import text
from muniment.server.observability.metrics import Metrics
from muniment.server.observability.outages import Outages

pytestmark = pytest.mark.django_db


def shown(database_metrics):
    """Return the values without labels, by name."""
    return {
        family.name: next((each.value for each in family.samples if not each.labels), None)
        for family in database_metrics.families()
    }


def run(*steps, call):
    """Run steps over one instance in a loop of its own."""

    async def all_of_them():
        database_metrics = DatabaseMetrics(call, Outages())
        for step in steps:
            await step(database_metrics)

    asyncio.run(all_of_them())


def alone(operation):
    """Return the result of *operation*, in a thread that keeps no connection."""
    try:
        return operation()
    finally:
        connections.close_all()


def test_requests_share_one_query_at_once_and_one_after_the_other():
    asked = []

    async def call(operation):
        asked.append(operation.__name__)
        await asyncio.sleep(0.01)
        return []

    async def many(database_metrics):
        await asyncio.gather(*(database_metrics.refresh() for _ in range(20)))
        for _ in range(20):
            await database_metrics.refresh()
        assert shown(database_metrics) == {"muniment_database_up": 1}

    run(many, call=call)
    assert asked == ["_of_the_queue", "_of_sums"]


@pytest.mark.django_db(transaction=True)
def test_old_numbers_are_not_shown_when_the_database_is_away(monkeypatch):
    monkeypatch.setattr(module, "QUEUE_EVERY_S", 0)
    is_away = False

    async def call(operation):
        if is_away:
            raise ConnectionError("the database is away")
        return await asyncio.to_thread(alone, operation)

    async def there(database_metrics):
        await database_metrics.refresh()
        assert shown(database_metrics)["muniment_ledger_agrees"] == 1

    async def away(database_metrics):
        nonlocal is_away
        is_away = True
        await database_metrics.refresh()
        assert shown(database_metrics) == {"muniment_database_up": 0}

    async def back(database_metrics):
        nonlocal is_away
        is_away = False
        await database_metrics.refresh()
        assert shown(database_metrics)["muniment_ledger_agrees"] == 1
        assert shown(database_metrics)["muniment_database_up"] == 1

    run(there, away, back, call=call)


def test_a_database_that_hangs_delays_no_metrics(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    released = threading.Event()

    async def call(_operation):
        await asyncio.to_thread(released.wait, 20)
        return []

    async def hangs(database_metrics):
        began = time.monotonic()
        for _ in range(3):
            await database_metrics.refresh()
        assert time.monotonic() - began < 15, "it waited for the database"
        metrics = Metrics()
        metrics.source_of_instance(database_metrics.families)
        assert b"\nmuniment_database_up 0.0\n" in text(metrics.families())
        released.set()
        await database_metrics.refresh()

    run(hangs, call=call)


def test_a_flag_is_a_number_that_the_other_processes_of_a_port_can_read():
    metrics = Metrics()
    metrics.gauge("muniment_flag", "A flag.", lambda: True)
    shared = msgspec.json.encode(list(metrics._own()))
    found = {family.name: family.samples for family in metrics_module._decode(shared)}
    assert [sample.value for sample in found["muniment_flag"]] == [1.0]
