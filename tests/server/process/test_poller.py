"""How often a process looks around: often while somebody asks, seldom while nobody does, and at a first question."""

import asyncio
import contextlib
import re
from pathlib import Path

import pytest

from make.published import Publisher, company
from muniment.config import Config
from muniment.server.app.app import App
from muniment.server.process.poller import Poller
from services.ports import wait_until
from services.product import Product, Served


class Stand:
    """A clock over a registry of numbers: what is asked, what is shown, how often it looked."""

    def __init__(self, tmp_path):
        self.front = App(Config({}, data=tmp_path))
        self.answered = self.looks = self.seconds = 0
        self.may_rest = True
        self.clock = Poller(
            self.front,
            look=self.look,
            each_second=self.each_second,
            answered=lambda: self.answered,
            may_rest=lambda: self.may_rest,
        )

    @property
    def is_at_rest(self):
        return self.front.end_rest is not None

    def look(self):
        self.looks += 1
        if self.looks == 1:
            message = "the first look fails"
            raise ValueError(message)

    def each_second(self, _now):
        self.seconds += 1

    def until(self, holds):
        """Wait, as a client that asks nothing."""

        async def wait():
            while not holds():  # noqa: ASYNC110 - what is looked at tells nobody
                await asyncio.sleep(0.005)

        return asyncio.wait_for(wait(), 10)


def test_an_idle_poller_rests_and_looks_before_the_first_request_is_answered(tmp_path, caplog):
    async def walk():
        stand = Stand(tmp_path)
        await stand.until(lambda: stand.is_at_rest)
        assert stand.seconds == 1, "the second's work is done whatever fails beside it"
        looks = stand.looks
        await asyncio.sleep(0.2)
        assert stand.looks == looks
        assert stand.clock.quiet_s > 0.2
        stand.front.end_rest()
        assert stand.clock.quiet_s < 0.2
        assert stand.looks == looks + 1
        assert not stand.is_at_rest
        for _ in range(4):  # answers keep it awake
            stand.answered += 1
            looks = stand.looks
            await stand.until(lambda looks=looks: stand.looks > looks)
            assert not stand.is_at_rest
        await stand.until(lambda: stand.is_at_rest)
        await stand.until(lambda: stand.seconds == 2)
        stand.clock.stop()
        assert stand.front.end_rest is None

    asyncio.run(walk())
    assert caplog.text.count("the clock's work failed") == 1


def test_a_clock_does_not_rest_before_everything_has_started(tmp_path):
    async def walk():
        stand = Stand(tmp_path)
        stand.may_rest = False
        await stand.until(lambda: stand.looks > 4)
        assert not stand.is_at_rest
        stand.clock.stop()

    asyncio.run(walk())


def wakeups(pid):
    """Give how often the threads of a process, and of its children, have gone to sleep."""
    count = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        told = dict(line.split(":\t") for line in (task / "status").read_text().splitlines() if ":\t" in line)
        count += int(told["voluntary_ctxt_switches"])
        count += sum(wakeups(child) for child in (task / "children").read_text().split())
    return count


def code_in_memory_mb(pid):
    """Give how much of its files, most of them libraries, a process has in memory."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssFile:\s+(\d+) kB", told)[1]) / 1000


def rest(product):
    """Wait for a second in which the product is hardly ever awake."""
    seen = [0]

    def is_calm():
        seen.append(wakeups(product.pid))
        return seen[-1] - seen[-2] < 12

    wait_until(is_calm, within_s=20, every_s=1, what="a second with less than twelve wake-ups")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel tells it on Linux alone")
@pytest.mark.skipif(Served.cluster is not None, reason="the test is the other process, and writes the file itself")
def test_an_idle_process_uses_almost_no_cpu_and_answers_the_first_request_with_current_data(tmp_path):
    with Product(tmp_path / "data", exports_interval_s="0") as product:
        product.wait_ready()
        with contextlib.closing(Publisher(tmp_path / "data" / "muniment.sqlite3")) as publisher:
            for number in range(2):
                rest(product)
                edition = publisher.publish(company(number))
                shown = product.get("/api/v1/companies")
                assert [item["id"] for item in shown.json()["data"]] == [f"company-{n}" for n in range(number, -1, -1)]
                assert shown.headers["x-muniment-edition"] == str(edition)
        assert code_in_memory_mb(product.pid) < 18, "what starting needed of the libraries was let go"
