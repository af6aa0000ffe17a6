"""
Measure the CPU time of public pages and the sign-in page, new and kept: `make bench-pages`.

Every address is asked of the application of the pages in this process: middleware, view, template and compression,
without the server in front. *New* is its first answer in an edition, from a sample with a fixed seed, so that texts are
new too; *kept* is the same answer again. Medians of CPU time of the thread. The registry is the import form that
MUNIMENT_SAMPLE_DATA names (or --data), or --instance, a data folder that holds one already.

Then `muniment serve` and nginx are asked by the same client, one request after another, and their processes' CPU time
is compared: *first visit* is a listing that nobody has asked for since the start; *again* is what the page cache
answers, *kept* what the parser answers while another process publishes one listing a second.

Exits with 1 if a goal is missed. `--profile list` shows where the time of that page goes.
"""

import argparse
import cProfile
import gc
import http.client
import json
import os
import pstats
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes, urlencode, urlsplit
from wsgiref.util import setup_testing_defaults

import psutil
from sample import import_sample

GOALS_MS = {"list": 2.5, "company": 2.5, "sign-in": 2.0}
"""The most that a new page may cost."""
HEADERS = {
    "HTTP_ACCEPT_ENCODING": "gzip, deflate, br, zstd",
    "HTTP_HOST": "registry.example",
    "HTTP_ACCEPT": "text/html",
}
MOST_TIMES_NGINX: Final = 100
"""The most that a first visit may cost, in static answers of nginx."""
MOST_KEPT_US: Final = 90
"""The most that a kept page may cost while other listings are published."""
FIRST_VISITS, BATCHES = 100, 5
KEPT_ROUNDS = 3
WARMING = 40
SECONDS = 8
"""How long kept pages are asked for while there are publications, and how long nothing is."""
NGINX = """
daemon off; worker_processes 1; {user} pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000; etag on;
  open_file_cache max=100 inactive=600s; open_file_cache_valid 600s; default_type text/html;
  server {{ listen 127.0.0.1:{port}; root {folder}; add_header Content-Encoding zstd; }}
}}
"""
LARGEST = 3
"""Companies with the longest documents, each of which is measured for itself."""


class Figures(NamedTuple):
    """CPU milliseconds of a page: the median and the ninth tenth of new ones, the median of kept ones; its size."""

    new: float
    slow: float
    kept: float
    kb: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUNIMENT_SAMPLE_DATA") or None)
    parser.add_argument("--instance", type=Path, help="a data folder that holds a registry")
    parser.add_argument("--each", type=int, default=150, help="addresses of each kind of page")
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--profile", metavar="PAGE", help="profile new pages of one kind")
    parser.add_argument("--only", metavar="PAGES", help="kinds of page, separated by commas")
    parser.add_argument("--served", action="store_true", help="measure the servers only")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    if given.instance is None and given.data is None:
        print("MUNIMENT_SAMPLE_DATA is not set: there is no registry to measure.")
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = given.instance or Path(made)
        os.environ["MUNIMENT_DATA"] = str(folder)
        if given.instance is None:
            import_sample(given.data, folder)
        is_missed = 0 if given.served else measure(given)
        if given.profile or given.json or given.only:
            return is_missed
        return measure_servers(folder, random.Random(given.seed)) or is_missed


def measure(given: argparse.Namespace) -> int:
    """Measure the registry in MUNIMENT_DATA."""
    from muniment import cli  # the data folder is known only now

    cli.use_django()
    from django.core.wsgi import get_wsgi_application

    from muniment.web.requests import page_cache

    def forget() -> None:
        page_cache.pages.clear()

    application = get_wsgi_application()
    asked = addresses(given.each, random.Random(given.seed))
    if given.only:
        asked = {kind: asked[kind] for kind in given.only.split(",")}
    for each in asked.values():
        for address in each[-3:]:
            answer(application, address)  # load templates and views
    if given.profile:
        profile(application, asked[given.profile], forget)
        return 0
    figures = {kind: figures_of(application, each, forget) for kind, each in asked.items()}
    memory_mb = pss_mb()
    if given.json:
        print(json.dumps({"memory_mb": memory_mb, **{kind: each._asdict() for kind, each in figures.items()}}))
        return 0
    print(f"{'CPU ms':12}{'new':>8}{'9/10':>8}{'kept':>8}{'KB':>8}")
    for kind, each in figures.items():
        print(f"{kind:12}{each.new:8.2f}{each.slow:8.2f}{each.kept:8.3f}{each.kb:8.1f}")
    print(f"memory (PSS) {memory_mb:.1f} MB")
    missed = [kind for kind, goal in GOALS_MS.items() if kind in figures and figures[kind].new > goal]
    for kind in missed:
        print(f"FAIL {kind}: a new page costs more than {GOALS_MS[kind]} ms")
    return int(bool(missed))


def addresses(count: int, chance: random.Random) -> dict[str, list[str]]:
    """Return addresses of each kind of page; those that have only one are asked again and again."""
    from muniment.store.queries import ListQuery
    from muniment.web.requests.page_cache import reader

    def keys(kind: str) -> list[str]:
        return [quote(each) for each in reader().keys(kind, "", 100_000)]

    def some(found: Sequence[Any]) -> list[Any]:
        return chance.sample(found, min(count, len(found)))

    def pages_of(kind: str) -> list[str]:
        last = getattr(reader(), kind)(ListQuery(page=1, page_size=25)).page_count
        return [f"/{kind}?page={number}" for number in some(range(2, last + 1))]

    def size(key: str) -> int:
        found = reader().document("company", key)
        return len(found.body) if found else 0

    companies = keys("company")
    largest = sorted(companies, key=size, reverse=True)[:LARGEST]
    themes = reader().values("company", "theme", 200)
    words = [each.partition("-")[0] for each in some(companies)]
    return {
        "home": ["/"] * 30,
        "list": pages_of("companies"),
        "filtered": [f"/companies?{urlencode({'theme': each})}" for each in some(themes)],
        "people": pages_of("people"),
        "company": [f"/companies/{each}" for each in some(companies)],
        **{each: [f"/companies/{each}"] * 8 for each in largest},
        "person": [f"/people/{each}" for each in some(keys("person"))],
        "framework": [f"/frameworks/{each}" for each in some(keys("framework"))],
        "search": [f"/search?{urlencode({'q': word})}" for word in words],
        "sign-in": ["/accounts/login/"] * 100,
    }


def answer(application: Any, address: str) -> int:
    """Ask for a page, and return the bytes of the answer."""
    parts = urlsplit(address)
    path = unquote_to_bytes(parts.path).decode("latin-1")  # as WSGI has it
    environ = {"PATH_INFO": path, "QUERY_STRING": parts.query, "REMOTE_ADDR": "127.0.0.1", **HEADERS}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    with closing(application(environ, lambda status, *_: statuses.append(status))) as sent:
        size = sum(map(len, sent))
    assert statuses[0].startswith("200"), (address, statuses)
    return size


def figures_of(application: Any, asked: Sequence[str], forget: Callable[[], None]) -> Figures:
    new, sizes, kept = [], [], []
    gc.collect()
    for address in asked:
        forget()
        began = time.thread_time_ns()
        sizes.append(answer(application, address))
        new.append((time.thread_time_ns() - began) / 1e6)
    for _ in range(max(3, 300 // len(asked))):
        for address in asked[:50]:
            answer(application, address)
            began = time.thread_time_ns()
            answer(application, address)
            kept.append((time.thread_time_ns() - began) / 1e6)
    slow = statistics.quantiles(new, n=10)[-1] if len(new) > 1 else new[0]
    return Figures(statistics.median(new), slow, statistics.median(kept), statistics.median(sizes) / 1e3)


def profile(application: Any, asked: Sequence[str], forget: Callable[[], None]) -> None:
    """Print where the time of new pages goes."""
    found = cProfile.Profile(time.thread_time)  # others share the machine
    for address in asked:
        forget()
        found.enable()
        answer(application, address)
        found.disable()
    stats = pstats.Stats(found)
    print(f"{len(asked)} pages")
    stats.sort_stats("cumulative").print_stats(75)
    stats.sort_stats("tottime").print_stats(40)


class Served:
    """A server process, one connection to it, and the CPU time that its answers take."""

    def __init__(self, process: int, port: int) -> None:
        self._process = psutil.Process(process)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._idle = 0.0

    def ask(self, address: str) -> bytes:
        headers = {"Host": HEADERS["HTTP_HOST"], "Accept": HEADERS["HTTP_ACCEPT"], "Accept-Encoding": "zstd"}
        self._connection.request("GET", address, headers=headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{address}: {response.status}")
        return body

    def is_ready(self, address: str) -> bool:
        try:
            self.ask(address)
        except (OSError, RuntimeError, http.client.HTTPException):
            self._connection.close()
            return False
        return True

    def cpu_s(self) -> float:
        times = [each.cpu_times() for each in (self._process, *self._process.children(recursive=True))]
        return sum(each.user + each.system for each in times)

    def rest(self) -> None:
        """Measure what the process uses without requests, which is not the cost of any."""
        began_s = self.cpu_s()
        time.sleep(SECONDS)
        self._idle = (self.cpu_s() - began_s) / SECONDS

    def cost_us(self, addresses: Sequence[str], seconds: float = 0, *, pause_s: float = 0) -> float:
        """Return the CPU microseconds of an answer: of each address once, or of all again and again for *seconds*."""
        asked, began, began_s = 0, time.monotonic(), self.cpu_s()
        while not asked or time.monotonic() < began + seconds:
            for address in addresses:
                self.ask(address)
            asked += len(addresses)
            time.sleep(pause_s)
        used_s = self.cpu_s() - began_s - self._idle * (time.monotonic() - began)
        return used_s / asked * 1e6


@contextmanager
def serving(command: Sequence[str], port: int, ready: str, environment: dict[str, str]) -> Iterator[Served]:
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        served = Served(process.pid, port)
        deadline = time.monotonic() + 120
        while not served.is_ready(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not answer")
            time.sleep(0.2)
        yield served
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure_servers(folder: Path, chance: random.Random) -> int:
    """Compare first visits with nginx, and measure kept pages beside publications; return 1 if a goal is missed."""
    from muniment.store.reader import Reader

    reader = Reader(folder / "muniment.sqlite3")
    slugs = chance.sample(reader.keys("company", "", 100_000), WARMING + FIRST_VISITS * BATCHES)
    reader.close()
    addresses = [f"/companies/{quote(each)}" for each in slugs]
    warming, visited = addresses[:WARMING], addresses[WARMING:]
    port = free_port()
    settings = {
        "MUNIMENT_DATA": str(folder),
        "MUNIMENT_BASE_URL": "http://registry.example",
        "MUNIMENT_RATE_LIMIT": "off",
        "MUNIMENT_EXPORTS_INTERVAL_S": "0",
    }
    command = [sys.executable, "-m", "muniment", "serve", "--port", str(port)]
    with ExitStack() as stack:
        served = stack.enter_context(serving(command, port, "/readyz", settings))
        served.cost_us(warming)
        time.sleep(SECONDS)  # what a process does once after its start is the cost of no request either
        served.rest()
        first_us = [
            served.cost_us(visited[start : start + FIRST_VISITS]) for start in range(0, len(visited), FIRST_VISITS)
        ]
        # Parameters that the page ignores: the parser does not answer these.
        again_us = served.cost_us([f"{each}?utm_source=x" for each in visited[:FIRST_VISITS]], SECONDS / 2)
        stack.enter_context(publishing(folder, slugs[0]))
        served.cost_us(visited[:FIRST_VISITS], 1)
        rounds_us = []
        for _ in range(KEPT_ROUNDS):  # each with its own rest, for others share the machine
            served.rest()
            # Each page twice between two publications: one that is rendered again after each would be noticed.
            rounds_us.append(served.cost_us(visited[:FIRST_VISITS], SECONDS, pause_s=0.5))
        kept_us = statistics.median(rounds_us)
        nginx_us = nginx_cost_us(served.ask(visited[0]))
    first = statistics.median(first_us)
    print(f"{'CPU µs':40}{'median':>10}")
    print(f"{'first visit of a listing':40}{first:10.0f}   {min(first_us):.0f} to {max(first_us):.0f}")
    print(f"{'again, from the page cache':40}{again_us:10.0f}")
    print(f"{'kept, with one publication a second':40}{kept_us:10.1f}")
    is_missed = kept_us > MOST_KEPT_US
    if nginx_us:
        print(
            f"{'nginx, the same page as a file':40}{nginx_us:10.1f}   a first visit is {first / nginx_us:.0f} of these"
        )
        is_missed |= first > MOST_TIMES_NGINX * nginx_us
    if is_missed:
        print(
            f"FAIL a first visit costs more than {MOST_TIMES_NGINX} answers of nginx, or a kept page {MOST_KEPT_US} µs"
        )
    return int(is_missed)


def nginx_cost_us(body: bytes) -> float:
    """Return what nginx needs for the same body as a file; 0 if there is no nginx."""
    if shutil.which("nginx") is None:
        return 0
    with tempfile.TemporaryDirectory() as made:
        port = free_port()
        Path(made, "page").write_bytes(body)
        user = "user root;" if os.geteuid() == 0 else ""
        Path(made, "nginx.conf").write_text(NGINX.format(user=user, folder=made, port=port))
        with serving(["nginx", "-p", made, "-c", f"{made}/nginx.conf"], port, "/page", {}) as nginx:
            nginx.cost_us(["/page"] * 200)
            return statistics.median(nginx.cost_us(["/page"], SECONDS / 4) for _ in range(3))


@contextmanager
def publishing(folder: Path, slug: str) -> Iterator[None]:
    """Publish another text of a listing once a second, in this process."""
    os.environ["MUNIMENT_DATA"] = str(folder)
    from muniment import cli

    cli.use_django()
    from muniment.registry.exchange.importer import import_registry

    over = threading.Event()

    def publish() -> None:
        with tempfile.TemporaryDirectory() as made:
            file = Path(made, "companies.jsonl")
            number = 0
            while not over.wait(1):
                number += 1
                text = f"Text {number} of this listing, at {time.time():.0f}."
                row = {"company": {"id": slug, "name": slug, "description": text}}
                file.write_text(json.dumps(row) + "\n")
                if import_registry(file).counts["companies"].changed != 1:
                    raise RuntimeError("nothing was published")

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def pss_mb() -> float:
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
