"""
Prove that every event reaches every receiver while receivers misbehave and the process that sends is killed.

    python bench/webhooks.py [--events 100000] [--listings 4000] [--kills 50] [--database postgresql]

A registry is imported again and again with another description of every listing: each import is an event a listing. Ten
receivers take them: two that work, and eight that fail, hang, answer 410, redirect, flood, are slow, close in the
middle of their answer, and do not work until the others have everything. The process that is killed serves and sends.
Meanwhile another client reads, and an owner updates a listing. In the end every receiver has had every event at least
once, in the order of its listing, and nothing else; the one that answered 410 lacks what was published while it was
ended. Pauses after failures take 2 s instead of hours, and a receiver has 1 s to answer.

Exits with 1 if an event is missing, invented or out of order, or if the p99 of others is 250 ms or more.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection
from functools import partial
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from listeners import memory_kb  # noqa: E402 - beside this file
from visibility import EMAIL, change  # noqa: E402 - beside this file

from services import webhook_server  # noqa: E402 - the tests' own
from services.ports import wait_until  # noqa: E402 - the tests' own
from services.postgres import Postgres  # noqa: E402 - the tests' own
from services.product import Product, environment, run  # noqa: E402 - the tests' own
from services.site import certificate_for  # noqa: E402 - the tests' own

MOST_MS = 250.0
GONE_AFTER = 500
"""Events after which one receiver answers 410."""
PAUSE_S = 0.005
"""What the slow receiver takes for each event."""
FLOOD = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2_000_000
OK = b"HTTP/1.1 204 No Content\r\n\r\n"
OWN = "quillmere"
NAMES = ("good", "fine", "fails", "hangs", "gone", "redirects", "floods", "slow", "closes", "back")
STEADY = tuple(name for name in NAMES if name not in {"gone", "back"})
STEADY_PART = len(STEADY) / len(NAMES)
ALWAYS_WAITING = 50
SHOWN_EVERY_S = 20.0


# ---------------------------------------------------------------- receivers, in a process of their own


class Inbox:
    """What a receiver was sent: versions in the order of their first arrival, by listing."""

    def __init__(self) -> None:
        self.requests = 0
        self.by_listing: dict[str, list[int]] = {}
        self.seen: set[int] = set()
        self.strange: list[bytes] = []

    def take(self, body: bytes) -> None:
        self.requests += 1
        event = json.loads(body)
        data = event["data"]
        if data["version"] in self.seen:
            return
        self.seen.add(data["version"])
        self.by_listing.setdefault(data["slug"], []).append(data["version"])
        if not event["type"].startswith("listing.") or len(event) != 4:
            self.strange.append(body)


class Receivers:
    """The ten receivers, by the first part of their name."""

    def __init__(self) -> None:
        self.inboxes = {name: Inbox() for name in NAMES}
        self.is_repaired = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                name = head.partition(b"\r\nhost: ")[2].partition(b".")[0].decode()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = await reader.readexactly(length)
                answer = await self.answer(name, body)
                writer.write(answer)
                await writer.drain()
                if answer is not OK or b"connection: close" in head:
                    break
        writer.close()

    async def answer(self, name: str, body: bytes) -> bytes:
        """Return what a receiver answers; those that misbehave sometimes do so before they take the event."""
        inbox, chance = self.inboxes[name], random.random()
        if name == "fails" and chance < 0.02:
            return b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        if name == "redirects" and chance < 0.02:
            return b"HTTP/1.1 307 No\r\nLocation: https://good.hooks.example/\r\nContent-Length: 0\r\n\r\n"
        if name == "hangs" and chance < 0.002:
            await asyncio.sleep(3)
        if name == "closes" and chance < 0.02:
            return b"HTTP/1.1 200 OK\r\nContent-Le"
        if name == "gone" and len(inbox.seen) >= GONE_AFTER and not self.is_repaired:
            return b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
        if name == "back" and not self.is_repaired:
            return b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
        inbox.take(body)
        if name == "slow":
            await asyncio.sleep(PAUSE_S)
        return FLOOD if name == "floods" and chance < 0.02 else OK


def receive(certificate: Path, commands: Pipe) -> None:
    """Run the receivers until they are told to end."""
    receivers = Receivers()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        server = await asyncio.start_server(receivers.serve, "127.0.0.1", 0, ssl=context)
        commands.send(server.sockets[0].getsockname()[1])
        ended = asyncio.Event()

        def obey() -> None:
            command = commands.recv()
            if command == "repair":
                receivers.is_repaired = True
            elif command == "counts":
                commands.send({name: len(inbox.seen) for name, inbox in receivers.inboxes.items()})
            elif command == "inboxes":
                commands.send(receivers.inboxes)
            else:
                ended.set()

        loop.add_reader(commands.fileno(), obey)
        await ended.wait()

    asyncio.run(main())


# ---------------------------------------------------------------- the server, and those who use it


class Server(Product):
    """The product, with a worker that reaches the receivers."""

    def __init__(self, data: Path, port: int, certificate: Path, **settings: str) -> None:
        super().__init__(data, **settings)
        self._own = (str(port), str(certificate))

    def start(self, *, within_s: float = 90) -> "Server":
        command = [sys.executable, webhook_server.__file__, *self._own, "--host", "127.0.0.1", "--port", str(self.port)]
        given = {**environment(self.data, **self._settings), "PYTHONPATH": os.pathsep.join(sys.path)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=given, stdout=log, stderr=log)
        wait_until(lambda: self._up("/readyz"), within_s=within_s, what="muniment serve answering")
        return self


class Others(threading.Thread):
    """A reader and an owner, whose requests are timed while the server runs."""

    def __init__(self, server: Server, token: str) -> None:
        super().__init__(daemon=True)
        self._server, self._token = server, token
        self.reads_ms: list[float] = []
        self.updates_ms: list[float] = []
        self.is_up, self.is_over = threading.Event(), False

    def run(self) -> None:
        number = 0
        while not self.is_over:
            self.is_up.wait()
            number += 1
            page = f"/api/v1/companies?pageSize=10&page={number % 50 + 1}"
            self._timed(self.reads_ms, partial(self._server.get, page))
            if not number % 5:
                self._timed(self.updates_ms, lambda: change(self._server, self._token, f"At {time.time_ns()}."))
            time.sleep(0.1)

    def _timed(self, times: list[float], work: Any) -> None:
        began = time.monotonic()
        try:
            work()
        except (OSError, SystemExit, ValueError):
            if self.is_up.is_set():
                raise
            return
        if self.is_up.is_set():
            times.append((time.monotonic() - began) * 1e3)


class Storm:
    """One proof: a registry, its receivers, and the server that is killed."""

    def __init__(self, folder: Path, given: argparse.Namespace, url: str) -> None:
        self.folder, self.given = folder, given
        self.data = folder / "data"
        self.settings = {"database_url": url}
        self.published = threading.Event()
        self.is_repaired = False
        self.kills = self.most_rows = self.most_kb = 0

    def prepare(self) -> None:
        """Make the registry, its owner and its webhooks, and start the receivers."""
        self._run("import", str(ROOT / "src/muniment/demo"))
        self._run("import", str(self._companies("At first.")))
        self._run("user", "create", EMAIL, "--no-password")
        self._run("own", EMAIL, OWN)
        made = self._run("user", "token", EMAIL, "--name", "bench")
        token = next(word for word in made.stdout.split() if word.startswith("mun_pat_"))
        os.environ.update(environment(self.data, **self.settings), DJANGO_SETTINGS_MODULE="muniment.settings")
        from muniment import cli  # the data folder is known only now

        cli.use_django()
        from muniment.accounts.models import Account
        from muniment.webhooks import endpoints, events

        self.operator = Account.objects.create_user("operator@example.org", role="operator").actor("web", "pages")
        self.endpoints = {}
        for name in NAMES:
            wanted = endpoints.Wanted(f"https://{name}.hooks.example/in", events.LISTING_KINDS)
            self.endpoints[name] = endpoints.create_endpoint(self.operator, wanted, of_registry=True)
        self.first, _ = events.feed.head()
        certificate = certificate_for("*.hooks.example", self.folder)
        self.receivers, theirs = multiprocessing.Pipe()
        spawned = multiprocessing.get_context("spawn")
        spawned.Process(target=receive, args=(certificate, theirs), daemon=True).start()
        self.server = Server(self.data, self.receivers.recv(), certificate, **self.settings)
        self.others = Others(self.server, token)

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return run(*arguments, data=self.data, timeout_s=1200, **self.settings)

    def _companies(self, text: str) -> Path:
        file = self.folder / "companies.jsonl"
        with file.open("w") as out:
            for number in range(self.given.listings):
                row = {"id": f"listing-{number}", "name": f"Listing {number}", "description": text}
                out.write(json.dumps({"company": row}) + "\n")
        return file

    def _publish(self) -> None:
        for number in range(self.given.events // self.given.listings):
            self._run("import", str(self._companies(f"In round {number}.")))
        self.published.set()

    def rage(self) -> float:
        """Publish, kill and repair until everything is delivered, and return how many seconds it took."""
        began, shown_at = time.monotonic(), 0.0
        self.server.start()
        self.others.start()
        self.others.is_up.set()
        threading.Thread(target=self._publish, daemon=True).start()
        try:
            while not (self.is_repaired and self._has_sent_all(NAMES)):
                time.sleep(0.5)
                taken = self.taken()
                self._measure()
                if time.monotonic() > shown_at + SHOWN_EVERY_S:
                    shown_at = time.monotonic()
                    print(f"{shown_at - began:6.0f} s  {taken.total():8} taken  {dict(taken)}", flush=True)
                # The owner's updates continue, so some events always wait until then.
                if not self.is_repaired and self._has_sent_all(STEADY, all_but=ALWAYS_WAITING):
                    self._repair()
                # Between the kills, a part of what there is to take.
                part = self.given.events * len(NAMES) / (self.given.kills + 1)
                if self.kills < self.given.kills and taken.total() > (self.kills + 1) * part * STEADY_PART:
                    self._kill()
        finally:
            self.others.is_over = True
            self.others.is_up.clear()
            self.server.kill()
        return time.monotonic() - began

    def taken(self) -> Counter[str]:
        """Return how many events each receiver has."""
        self.receivers.send("counts")
        return Counter(self.receivers.recv())

    def _has_sent_all(self, names: Collection[str], *, all_but: int = 0) -> bool:
        from muniment.webhooks import events
        from muniment.webhooks.models import Delivery, Endpoint

        if not self.published.is_set() or (events.are_new() and not all_but):
            return False
        ids = [self.endpoints[name].pk for name in names]
        if Endpoint.objects.filter(pk__in=ids, behind__gte=0).exists():
            return False
        return Delivery.objects.filter(endpoint__in=ids, state="waiting").count() <= all_but

    def _measure(self) -> None:
        from muniment.webhooks.models import Delivery

        self.most_rows = max(self.most_rows, Delivery.objects.count())
        self.most_kb = max(self.most_kb, memory_kb(self.server.pid))

    def _repair(self) -> None:
        from muniment.webhooks import endpoints
        from muniment.webhooks.models import Endpoint

        print("The receiver that answered 410 works again, and so does the one that failed all the time.", flush=True)
        self.receivers.send("repair")
        self.is_repaired = self.others.is_over = True
        Endpoint.objects.update(paused_until=None)
        endpoints.resume_endpoint(self.operator, self.endpoints["gone"].pk, of_registry=True)

    def _kill(self) -> None:
        from muniment.jobs.models import Job
        from muniment.kernel.ids import now

        self.kills += 1
        self.others.is_up.clear()
        self.server.kill()
        Job.objects.filter(state="running").update(run_at=now())  # the lease of the killed process need not pass
        self.server.start()
        self.others.is_up.set()

    def judge(self, took_s: float) -> bool:
        """Compare what was taken with what was published, show the figures, and return whether all is well."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT sequence, key FROM published_change WHERE sequence > %s ORDER BY sequence", [self.first]
            )
            published = cursor.fetchall()
        self.receivers.send("inboxes")
        inboxes: dict[str, Inbox] = self.receivers.recv()
        self.receivers.send("end")
        is_well = len(published) >= self.given.events and self.kills == self.given.kills
        for name, inbox in inboxes.items():
            fault = fault_of(name, inbox, published)
            is_well = is_well and not fault
            again = inbox.requests - len(inbox.seen)
            print(f"{name:10} {len(inbox.seen):8} events, {again:6} of them again  {fault or 'well'}")
        deliveries = sum(len(inbox.seen) for inbox in inboxes.values())
        reads, updates = p99(self.others.reads_ms), p99(self.others.updates_ms)
        print(f"{len(published)} events, {deliveries} deliveries in {took_s:.0f} s, {self.kills} kills")
        print(f"{self.most_rows} deliveries stored at most; the server took {self.most_kb >> 10} MB at most")
        print(f"reads of others: p99 {reads:.0f} ms of {len(self.others.reads_ms)}")
        print(f"updates of others: p99 {updates:.0f} ms of {len(self.others.updates_ms)}")
        return is_well and max(reads, updates) < MOST_MS


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)] if values else float("nan")


def fault_of(name: str, inbox: Inbox, published: list[tuple[int, str]]) -> str:
    """Return what is wrong with what a receiver was sent; "" if it is each event once or more, in order."""
    sequences = {sequence for sequence, _ in published}
    missing = sequences - inbox.seen
    if name == "gone" and missing and missing == sequences & set(range(min(missing), max(missing) + 1)):
        missing = set()  # what was published while it was ended
    invented = len(inbox.seen - sequences)
    if missing or invented or inbox.strange:
        return f"{len(missing)} missing, {invented} invented, {len(inbox.strange)} strange"
    expected: dict[str, list[int]] = {}
    for sequence, key in published:
        if sequence in inbox.seen:
            expected.setdefault(key, []).append(sequence)
    return "" if inbox.by_listing == expected else "out of order"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--listings", type=int, default=4_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = ""
        if given.database == "postgresql":
            url = stack.enter_context(contextlib.closing(Postgres())).create("webhooks")
        storm = Storm(folder, given, url)
        storm.prepare()
        return 0 if storm.judge(storm.rage()) else 1


if __name__ == "__main__":
    sys.exit(main())
