"""Polling: what other processes publish is shown, and a failure does not end it."""

import asyncio
import contextlib

import pytest

from make.published import Publisher, company
from muniment.server.process.poller import poll
from services.ports import wait_until
from services.product import Product, Served


def test_polling_continues_after_a_failure_and_runs_the_periodic_work_once_a_second(caplog):
    looks, seconds = [], []

    def look():
        looks.append(asyncio.get_running_loop().time())
        if len(looks) == 1:
            message = "the first look fails"
            raise ValueError(message)

    async def walk():
        polling = asyncio.create_task(poll(look, seconds.append))
        async with asyncio.timeout(60):
            while len(seconds) < 2:  # noqa: ASYNC110 - a counter sends no event
                await asyncio.sleep(0.005)
        polling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await polling

    asyncio.run(walk())
    assert caplog.text.count("polling failed; retrying") == 1
    assert seconds[1] - seconds[0] > 0.9
    assert len([at for at in looks if seconds[0] <= at <= seconds[1]]) > 2


@pytest.mark.skipif(Served.cluster is not None, reason="the test is the other process, and writes the file itself")
def test_what_another_process_publishes_is_shown(tmp_path):
    with Product(tmp_path / "data", exports_interval_s="0") as product:
        product.wait_ready()
        with contextlib.closing(Publisher(tmp_path / "data" / "muniment.sqlite3")) as publisher:
            for number in range(2):
                edition = publisher.publish(company(number))

                def is_shown(edition=edition):
                    return product.get("/api/v1/companies").headers["x-muniment-edition"] == str(edition)

                wait_until(is_shown, within_s=60, what="the new edition")
                shown = product.get("/api/v1/companies").json()["data"]
                assert [item["id"] for item in shown] == [f"company-{n}" for n in range(number, -1, -1)]
