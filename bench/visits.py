"""
Visit pages of a real registry in Chromium over slow networks: `make bench-visits`.

Each page is a first visit with an empty cache, over the networks that Chrome's developer tools call Fast 4G and Slow
4G. Reported are all bytes received, the largest paint, the layout shift, the height at 1,280 px, the bytes of the page
itself without compression, and requests to other hosts. The registry is the import form that MUNIMENT_SAMPLE_DATA names
(or --data), or --instance, a data folder that holds one already; the largest companies are among the pages.

Exits with 1 if a goal is missed.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from sample import import_sample

from muniment.store.reader import Reader
from services.chromium import chromium
from services.product import Product


class Network(NamedTuple):
    """A network, with the latest moment of the largest paint."""

    latency_ms: float
    megabits: float
    paint_ms: float


NETWORKS: Final = {"Fast 4G": Network(165, 8.1, 800), "Slow 4G": Network(562, 1.4, 2000)}
MAX_KB: Final = 150.0
MAX_PAGE_KB: Final = 150.0
MAX_HEIGHT: Final = 12_000
MAX_SHIFT: Final = 0.02
LARGEST: Final = 10
PAGES: Final = (
    "/",
    "/companies",
    "/companies?type=DAO",
    "/people",
    "/frameworks",
    "/search?q=solar",
    "/connect",
    "/docs",
)
OBSERVE: Final = """
window.seen = {paint: 0, shift: 0};
const observe = (type, see) =>
  new PerformanceObserver(list => list.getEntries().forEach(see)).observe({type, buffered: true});
observe("largest-contentful-paint", each => { seen.paint = each.startTime; });
observe("layout-shift", each => { if (!each.hadRecentInput) seen.shift += each.value; });
"""


class Visit(NamedTuple):
    """What a visit to a page cost."""

    kb: float
    paint_ms: float
    shift: float
    height: int
    page_kb: float
    foreign: tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUNIMENT_SAMPLE_DATA") or None)
    parser.add_argument("--instance", type=Path, help="a data folder that holds a registry")
    parser.add_argument("--rounds", type=int, default=3, help="visits to each page; the median counts")
    parser.add_argument("--page", action="append", help="visit this page instead")
    given = parser.parse_args()
    if given.instance is None and given.data is None:
        print("MUNIMENT_SAMPLE_DATA is not set: there is no registry to visit.")
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = given.instance or Path(made) / "data"
        if given.instance is None:
            import_sample(given.data, folder)
        with Product(folder) as product, chromium(whole=True) as browser:
            return measure(product, browser, given.page or pages(product), given.rounds)


def pages(product: Any) -> list[str]:
    """Return the pages to visit: one of each kind, and the companies and people with the longest documents."""
    reader = Reader(product.data / "muniment.sqlite3")
    try:
        largest = {kind: [quote(key) for key in _largest(reader, kind)] for kind in ("company", "person")}
    finally:
        reader.close()
    framework = product.data_of("/api/v1/frameworks")[0]["frameworkId"]
    return [
        *PAGES,
        *(f"/companies/{key}" for key in largest["company"]),
        *(f"/people/{key}" for key in largest["person"][:2]),
        f"/frameworks/{quote(framework)}",
    ]


def _largest(reader: Reader, kind: str) -> list[str]:
    sizes = {key: len(found.body) for key in reader.keys(kind, "", 100_000) if (found := reader.document(kind, key))}
    return sorted(sizes, key=sizes.__getitem__, reverse=True)[:LARGEST]


def measure(product: Any, browser: Any, paths: list[str], rounds: int) -> int:
    """Visit *paths*, print the figures, and return 1 if a goal is missed."""
    base = f"http://127.0.0.1:{product.port}"
    missed = []
    print(f"{'page':44}{'network':9}{'KB':>7}{'paint':>8}{'shift':>8}{'height':>8}{'page KB':>9}")
    for path in paths:
        for name, network in NETWORKS.items():
            found = [visit(browser, base + path, network) for _ in range(rounds)]
            middle = sorted(found, key=lambda each: each.paint_ms)[len(found) // 2]
            paint_ms = statistics.median(each.paint_ms for each in found)
            print(
                f"{path[:43]:44}{name:9}{middle.kb:7.1f}{paint_ms:8.0f}{middle.shift:8.3f}"
                f"{middle.height:8}{middle.page_kb:9.1f}"
            )
            missed += [f"{path} on {name}: {fault}" for fault in faults(middle, paint_ms, network)]
    for fault in missed:
        print("FAIL", fault)
    return int(bool(missed))


def faults(found: Visit, paint_ms: float, network: Network) -> list[str]:
    """Return the goals that a visit misses."""
    goals = {
        f"{found.kb:.0f} KB received": found.kb <= MAX_KB,
        f"the largest paint comes after {paint_ms:.0f} ms": paint_ms <= network.paint_ms,
        f"the layout shifts by {found.shift:.3f}": found.shift <= MAX_SHIFT,
        f"{found.height} px high": found.height <= MAX_HEIGHT,
        f"the page has {found.page_kb:.0f} KB": found.page_kb <= MAX_PAGE_KB,
        f"asks {', '.join(found.foreign)}": not found.foreign,
    }
    return [fault for fault, holds in goals.items() if not holds]


def visit(browser: Any, address: str, network: Network) -> Visit:
    """Visit a page for the first time."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        page.add_init_script(OBSERVE)
        client = context.new_cdp_session(page)
        received: list[float] = []
        hosts: set[str] = set()
        client.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
        client.on("Network.requestWillBeSent", lambda event: hosts.add(urlsplit(event["request"]["url"]).netloc))
        client.send("Network.enable")
        rate = network.megabits * 1e6 / 8
        limits = {"offline": False, "latency": network.latency_ms, "downloadThroughput": rate, "uploadThroughput": rate}
        client.send("Network.emulateNetworkConditions", limits)
        answer = page.goto(address, wait_until="networkidle")
        seen = page.evaluate("seen")
        height = page.evaluate("document.documentElement.scrollHeight")
        foreign = tuple(sorted(host for host in hosts if host and host != urlsplit(address).netloc))
        return Visit(sum(received) / 1e3, seen["paint"], seen["shift"], height, len(answer.body()) / 1e3, foreign)
    finally:
        context.close()


if __name__ == "__main__":
    sys.exit(main())
