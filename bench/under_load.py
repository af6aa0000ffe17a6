"""
Measure reads while the registry is written: latencies, the time until changes are visible, and memory.

    python bench/under_load.py SOURCE                     reads beside an import, owners' updates and report runs
    python bench/under_load.py SOURCE --no-import --minutes 30     memory under mixed load

SOURCE is a folder in the import form. The registry is imported into a folder of its own, unless --data names one that
is kept. The server has the first core. The import, and a worker beside the server's own, have the second one at low
priority, with this load generator. Times are of the wall clock, because latency is what is asked. On a busy machine
they also hold what other programs took: the delays of the generator itself and the server's wait for a core are told
beside them, and root may raise the priority of everything measured, as in --priority -10.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

from sample import import_sample

SERVER_CORE, OTHER_CORE = "0", "1"
MUNIMENT = (sys.executable, "-m", "muniment")
UPDATES_A_SECOND = 20
OWNED = 50
REPORTS = 4
VERSION = "2026-07-28"
SEARCHES = ("water", "open source software", "foundation", "climate", "data")
COPY = "second-"
"""Begins the slugs of the companies that are imported meanwhile."""
STALL_S = 0.1
BEAT_S = 0.01
LAST = 10
"""Minutes over which memory should no longer grow."""
LOW = 15
"""What import and worker have more in niceness than the server."""


def owner(data: Path) -> tuple[str, list[str], list[tuple[str, str]]]:
    """Make an owner of some listings with credits; return a token, the slugs, and what reports can be run on."""
    os.environ["MUNIMENT_DATA"] = str(data)
    from muniment import cli  # the data folder is known only now

    cli.use_django()
    from muniment.accounts.models import Account
    from muniment.accounts.operations import create_account
    from muniment.accounts.tokens import create_token
    from muniment.credits.operations import grant
    from muniment.kernel.actor import COMMAND, SCOPES
    from muniment.registry.company.listings import make_owner
    from muniment.registry.models import Company, FrameworkSpecification, Ownership

    email = "bench@load.example"
    account = Account.objects.filter(email=email).first() or create_account(COMMAND, email)
    actor = account.actor("web")
    if not Ownership.objects.filter(account=account).exists():
        for company in Company.objects.filter(state="published").order_by("pk")[:OWNED]:
            make_owner(COMMAND, company, account.pk)
    with contextlib.suppress(Exception):  # a registry without credits
        grant(COMMAND, email, 1_000_000)
    token = create_token(actor, f"load {time.time_ns()}", permitted=SCOPES).text
    slugs = list(Ownership.objects.filter(account=account).order_by("pk").values_list("company__slug", flat=True))
    open_ones = FrameworkSpecification.objects.filter(framework__closed=False, framework__published=True)
    frameworks = list(dict.fromkeys(open_ones.values_list("framework__slug", flat=True)))[:REPORTS]
    return token, slugs, list(zip(slugs, frameworks, strict=False))


def copy_of(source: Path, folder: Path) -> Path:
    """Write the companies of *source* once more, under other slugs and without their people."""
    with (source / "companies.jsonl").open() as lines, (folder / "companies.jsonl").open("w") as out:
        for line in lines:
            row = json.loads(line)
            for key in ("id", "slug"):
                if row["company"].get(key):
                    row["company"][key] = COPY + row["company"][key]
            row["company"]["name"] = f"{row['company']['name']} II"
            out.write(json.dumps({**row, "positions": []}) + "\n")
    return folder / "companies.jsonl"


_numbers = itertools.count()


class Client:
    """A connection that is kept alive and sends one request after another."""

    def __init__(self, port: int) -> None:
        self._port = port
        # An address may have 256 connections, so each 200 of them come from another one.
        self._source = f"127.0.1.{1 + next(_numbers) // 200}", 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self) -> "Client":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=self._source)
        return self

    async def send(self, head: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and return the status and the body of its response."""
        if self._reader is None or self._writer is None:
            await self.connect()
        assert self._reader is not None
        assert self._writer is not None
        length = f"content-length: {len(body)}\r\n" if body else ""
        self._writer.write(f"{head}\r\nhost: 127.0.0.1:{self._port}\r\n{length}\r\n".encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        fields = dict(line.split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
        if b"content-length" in fields:
            content = await self._reader.readexactly(int(fields[b"content-length"]))
        else:
            content = b""
            while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
                content += (await self._reader.readexactly(size + 2))[:-2]
            await self._reader.readexactly(2)
        if fields.get(b"connection") == b"close":
            self._writer.close()
            self._reader = self._writer = None
        return int(answer[9:12]), content

    async def get(self, path: str) -> tuple[int, bytes]:
        return await self.send(f"GET {path} HTTP/1.1")

    async def call(self, token: str, tool: str, arguments: dict[str, object]) -> dict[str, object]:
        """Call a tool of the owner's server and return its structured result."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        head = (
            f"POST /api/manage/mcp HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\nmcp-protocol-version: {VERSION}\r\n"
            f"mcp-method: tools/call\r\nmcp-name: {tool}"
        )
        status, content = await self.send(head, body)
        if status != 200:
            message = f"{tool}: {status} {content[:300]!r}"
            raise RuntimeError(message)
        result = json.loads(content)["result"]
        if result.get("isError"):
            message = f"{tool}: {str(result)[:300]}"
            raise RuntimeError(message)
        return dict(result["structuredContent"])


class Load:
    """What is asked of one server, and how long it took."""

    def __init__(self, port: int, token: str, slugs: list[str], known: list[str]) -> None:
        self.port, self.token, self.slugs, self.known = port, token, slugs, known
        self.reads: list[tuple[float, float, str]] = []
        """Of each read: when it was sent, its seconds, and its path."""
        self.updates: list[float] = []
        self.visible: list[float] = []
        self.own: list[float] = []
        """How late this program's own timers were, which is in every other figure too."""
        self.failed: dict[str, int] = {}
        self.is_over = False

    def fail(self, reason: object) -> None:
        self.failed[str(reason)] = self.failed.get(str(reason), 0) + 1

    def paths(self, number: int) -> str:
        """Return one of the paths of a mixed load."""
        slug = self.known[number * 7919 % len(self.known)]
        match number % 20:
            case 0 | 1:
                return f"/api/v1/companies?page={number % 400 + 1}"
            case 2:
                return f"/api/v1/companies?q={SEARCHES[number // 20 % len(SEARCHES)].replace(' ', '+')}"
            case 3:
                return "/api/v1/stats"
            case _:
                return f"/api/v1/companies/{slug}"

    async def beat(self) -> None:
        """Measure how late this program is itself."""
        loop = asyncio.get_running_loop()
        while not self.is_over:
            due = loop.time() + BEAT_S
            await asyncio.sleep(BEAT_S)
            self.own.append(max(0.0, loop.time() - due))

    async def read(self, first: int, every_s: float, *, pages: bool = False) -> None:
        """Read on one connection, every *every_s* seconds."""
        client, number, loop = await Client(self.port).connect(), first, asyncio.get_running_loop()
        due = loop.time() + every_s * (first % 997 / 997)
        while not self.is_over:
            await asyncio.sleep(max(0.0, due - loop.time()))
            path = f"/companies/{self.known[number * 7919 % len(self.known)]}" if pages else self.paths(number)
            began = loop.time()
            try:
                status, _ = await client.get(path)
                if status != 200:
                    self.fail(f"{status} {path.partition('?')[0]}")
            except (OSError, asyncio.IncompleteReadError) as error:
                self.fail(type(error).__name__)
                client = Client(self.port)
            self.reads.append((began, loop.time() - began, "page" if pages else path.partition("?")[0]))
            number += 1
            due = max(due + every_s, loop.time())

    async def write(self, first: int, every_s: float) -> None:
        """Update one listing after another, and read each until it shows."""
        client, loop, number = Client(self.port), asyncio.get_running_loop(), first
        due = loop.time() + every_s * (first / 4)
        while not self.is_over:
            await asyncio.sleep(max(0.0, due - loop.time()))
            due = max(due + every_s, loop.time())
            slug = self.slugs[number % len(self.slugs)]
            text = f"Told in round {number} of this run, at {time.time_ns()}."
            began = loop.time()
            try:
                await client.call(self.token, "update_my_company", {"slug": slug, "changes": {"description": text}})
                done = loop.time()
                self.updates.append(done - began)
                while text.encode() not in (await client.get(f"/api/v1/companies/{slug}"))[1]:
                    pass
                self.visible.append(loop.time() - done)
            except (OSError, RuntimeError, asyncio.IncompleteReadError) as error:
                self.fail(f"update: {error}")
                client = Client(self.port)
            number += 4

    async def report(self, slug: str, framework: str) -> None:
        """Run one report after another."""
        client = Client(self.port)
        while not self.is_over:
            try:
                chosen: dict[str, object] = {"companySlug": slug, "frameworkId": framework}
                run = await client.call(self.token, "start_report_run", chosen)
                await client.call(self.token, "execute_report_run", {"runId": run["data"]["runId"]})  # type: ignore[index]  # an object
                await asyncio.sleep(2)
            except (OSError, RuntimeError, KeyError, asyncio.IncompleteReadError) as error:
                self.fail(f"report: {str(error)[:160]}")
                client = Client(self.port)
                await asyncio.sleep(5)


def at_share(values: list[float], share: float) -> float:
    """Return the value in milliseconds that *share* of *values* do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1e3 if values else float("nan")


def told(name: str, values: list[float]) -> str:
    shares = "  ".join(f"p{share * 100:g} {at_share(values, share):8.2f}" for share in (0.5, 0.99, 0.999))
    return f"{name:26}{len(values):9,}  {shares}  max {max(values, default=0) * 1e3:8.2f} ms"


def pss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024


def waited_s(pid: int) -> float:
    """Return how long the main thread of a process has waited for a core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


@contextlib.contextmanager
def process(core: str, niceness: int, *command: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of Muniment on one core; end it afterwards."""
    whole = ["taskset", "-c", core, "nice", "-n", str(niceness), *MUNIMENT, *command]
    found = subprocess.Popen(whole, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield found
    finally:
        if found.poll() is None:
            found.send_signal(signal.SIGTERM)
        found.wait()


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


def wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if urlopen(f"http://127.0.0.1:{port}/readyz").status == 200:
                return
        time.sleep(0.2)
    message = "the server did not become ready"
    raise SystemExit(message)


async def measure(given: argparse.Namespace, load: Load, pid: int, folder: Path, runs: list[tuple[str, str]]) -> None:
    """Put the load on the server, and print what was measured."""
    loop = asyncio.get_running_loop()
    path = None if given.no_import else copy_of(Path(given.source), folder)
    tasks = [
        asyncio.create_task(load.read(number, given.connections / given.reads)) for number in range(given.connections)
    ]
    tasks += [asyncio.create_task(load.write(number, 4 / UPDATES_A_SECOND * given.calm)) for number in range(4)]
    tasks += [asyncio.create_task(load.report(*each)) for each in runs]
    tasks.append(asyncio.create_task(load.beat()))
    if given.minutes:
        tasks.append(asyncio.create_task(load.read(1, 0.25, pages=True)))
    await asyncio.sleep(5)  # connections and caches
    load.reads.clear()
    load.updates.clear()
    load.visible.clear()
    load.own.clear()
    began, import_s, waited = loop.time(), 0.0, waited_s(pid)
    print(f"{0:5.1f} min  {pss_mb(pid):6.1f} MB", flush=True)
    if path is not None:
        log = (folder / "import.log").open("wb")
        command = ["taskset", "-c", OTHER_CORE, "nice", "-n", str(LOW), *MUNIMENT, "import"]
        env = {**os.environ, "MUNIMENT_DATA": given.data}
        done = await asyncio.create_subprocess_exec(*command, str(path), env=env, stdout=log, stderr=log)
        await done.wait()
        import_s = loop.time() - began
        log.close()
    await watch_memory(pid, began, given.minutes)
    load.is_over = True
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    spent = loop.time() - began
    reads = [seconds for _, seconds, path in load.reads if path != "page"]
    pages = [seconds for _, seconds, path in load.reads if path == "page"]
    print(f"{spent:.1f} s, {len(reads) / spent:,.0f} reads a second on {given.connections} connections")
    if import_s:
        print(f"the import took          {import_s:9.1f} s")
    kinds = {"reads": reads, "updates": load.updates, "visible after the answer": load.visible, "pages": pages}
    for name, values in {**kinds, "this program's own delay": load.own}.items():
        if values:
            print(told(name, values))
    print(f"the server waited for a core for {(waited_s(pid) - waited) / spent:.1%} of the time")
    print(f"memory at the end        {pss_mb(pid):9.1f} MB PSS")
    slow = sorted((when - began, seconds, path) for when, seconds, path in load.reads if seconds > STALL_S)
    moments = sorted({round(when + seconds, 1) for when, seconds, _ in slow})
    print(f"reads of more than {STALL_S * 1e3:.0f} ms: {len(slow)}, which ended at {moments[:40]} s")
    for reason, times in load.failed.items():
        print(f"failed {times} times: {reason}")
    print(f"mean of reads            {statistics.fmean(reads) * 1e3:9.2f} ms")


async def watch_memory(pid: int, began: float, minutes: float) -> None:
    """Print the memory of the server each minute, and whether it still grows at the end."""
    loop = asyncio.get_running_loop()
    last, found = began, [pss_mb(pid)]
    while loop.time() - began < minutes * 60:
        await asyncio.sleep(1)
        if loop.time() - last >= 60:
            last = loop.time()
            found.append(pss_mb(pid))
            print(f"{(last - began) / 60:5.1f} min  {found[-1]:6.1f} MB", flush=True)
    if len(found) > 2 * LAST:
        former, latest = (statistics.fmean(each) for each in (found[-2 * LAST : -LAST], found[-LAST:]))
        print(f"memory at most           {max(found):9.1f} MB PSS")
        print(f"mean of {LAST} minutes       {latest:9.1f} MB PSS, of those before {former:.1f} MB")


def raise_priority(niceness: int) -> None:
    """Raise the priority of this program and all that it starts, also among the sessions of the machine."""
    with contextlib.suppress(PermissionError):  # it leads its session already
        os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    with contextlib.suppress(FileNotFoundError):  # Linux groups tasks by session; niceness counts within each
        Path("/proc/self/autogroup").write_text(str(niceness))


def main() -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--data", default="", help="a data folder to use and keep")
    parser.add_argument("--connections", type=int, default=2_000)
    parser.add_argument("--reads", type=float, default=1_000, help="reads a second, on all connections together")
    parser.add_argument("--calm", type=float, default=1, help="divides the rate of updates")
    parser.add_argument("--minutes", type=float, default=0, help="at least that long; memory is shown each minute")
    parser.add_argument("--no-import", action="store_true")
    parser.add_argument("--priority", type=int, default=0, help="niceness of the server and of this program")
    given = parser.parse_args()
    if given.priority:
        raise_priority(given.priority)
    os.sched_setaffinity(0, {int(OTHER_CORE)})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        given.data = given.data or str(folder / "data")
        if not (Path(given.data) / "muniment.sqlite3").exists():
            import_sample(Path(given.source), Path(given.data))
        token, slugs, runs = owner(Path(given.data))
        lines = (Path(given.source) / "companies.jsonl").read_text().splitlines()
        known = [json.loads(line)["company"]["id"] for line in lines]
        port = free_port()
        env = {**os.environ, "MUNIMENT_DATA": given.data}
        for name in ("RATE_LIMIT", "ACCOUNT_WRITES", "ACCOUNT_CPU_MS"):
            env[f"MUNIMENT_{name}"] = "off"
        server = process(SERVER_CORE, 0, "serve", "--port", str(port), env=env)
        with server as serving, process(OTHER_CORE, LOW, "worker", env=env):
            wait_until_ready(port)
            time.sleep(10)  # the exports
            print(f"memory after the start   {pss_mb(serving.pid):9.1f} MB PSS")
            load = Load(port, token, slugs, known)
            asyncio.run(measure(given, load, serving.pid, folder, runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
