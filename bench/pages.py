"""
Measure the CPU time of public pages and the sign-in page, new and kept: `make bench-pages`.

Every address is asked of the application of the pages in this process: middleware, view, template and compression,
without the server in front. *New* is its first answer in an edition, from a sample with a fixed seed, so that texts are
new too; *kept* is the same answer again. Medians of CPU time of the thread. The registry is the import form that
MUNIMENT_SAMPLE_DATA names (or --data), or --instance, a data folder that holds one already.

Exits with 1 if a goal is missed. `--profile list` shows where the time of that page goes.
"""

import argparse
import cProfile
import gc
import json
import os
import pstats
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes, urlencode, urlsplit
from wsgiref.util import setup_testing_defaults

from sample import import_sample

GOALS_MS = {"list": 2.5, "company": 2.5, "sign-in": 2.0}
"""The most that a new page may cost."""
HEADERS = {
    "HTTP_ACCEPT_ENCODING": "gzip, deflate, br, zstd",
    "HTTP_HOST": "registry.example",
    "HTTP_ACCEPT": "text/html",
}
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
        return measure(given)


def measure(given: argparse.Namespace) -> int:
    """Measure the registry in MUNIMENT_DATA."""
    from muniment import cli  # the data folder is known only now

    cli.use_django()
    from django.core.wsgi import get_wsgi_application

    from muniment.web.requests.page_cache import pages

    application = get_wsgi_application()
    asked = addresses(given.each, random.Random(given.seed))
    if given.only:
        asked = {kind: asked[kind] for kind in given.only.split(",")}
    for each in asked.values():
        for address in each[-3:]:
            answer(application, address)  # load templates and views
    if given.profile:
        profile(application, asked[given.profile], pages.clear)
        return 0
    figures = {kind: figures_of(application, each, pages.clear) for kind, each in asked.items()}
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


def pss_mb() -> float:
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
