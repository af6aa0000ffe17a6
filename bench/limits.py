"""
Visit a real registry's pages in Chromium at 1,280 px and check their size: `make bench-limits`.

Visited are the companies, people and frameworks with the longest documents, each with all its parts, the lists, and a
sample of what the sitemap names, with a fixed seed. No page may be taller than 12,000 px, larger than 150 KB without
compression, or wider than the screen. The registry is the import form that MUNIMENT_SAMPLE_DATA names (or --data), or
--instance, a data folder that holds one already.

Exits with 1 if a page exceeds a limit.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from sample import import_sample
from visits import MAX_HEIGHT, MAX_PAGE_KB

from muniment.store.reader import Reader
from services.chromium import chromium
from services.product import Product

WIDTH: Final = 1280
LARGEST: Final = 15
ROOMS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
PARTS: Final = {
    "company": (
        "about",
        "team",
        "team?by=role",
        "proposals",
        "cap-table",
        "funding",
        "history",
        "network",
        "assessments",
    ),
    "person": ("positions",),
    "framework": ("scores",),
}
LISTS: Final = (
    "/",
    "/companies",
    "/companies?type=DAO",
    "/people",
    "/frameworks",
    "/search?q=open",
    "/map",
    "/compare",
)
SHOWN: Final = 8


class Size(NamedTuple):
    """The size of a page."""

    path: str
    height: int
    kb: float
    width: int

    @property
    def is_over(self) -> bool:
        """Whether it exceeds a limit."""
        return self.height > MAX_HEIGHT or self.kb > MAX_PAGE_KB or self.width > WIDTH


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUNIMENT_SAMPLE_DATA") or None)
    parser.add_argument("--instance", type=Path, help="a data folder that holds a registry")
    parser.add_argument("--sample", type=int, default=150, help="further pages, at random")
    parser.add_argument("--seed", type=int, default=22)
    given = parser.parse_args()
    if given.instance is None and given.data is None:
        print("MUNIMENT_SAMPLE_DATA is not set: there is no registry to visit.")
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = given.instance or Path(made) / "data"
        if given.instance is None:
            import_sample(given.data, folder)
        paths = [*LISTS, *addresses(folder, given.sample, random.Random(given.seed))]
        with Product(folder, rate_limit="off") as product, chromium(whole=True) as browser:
            product.wait_ready()
            return measure(product, browser, paths)


def addresses(folder: Path, sample: int, chance: random.Random) -> list[str]:
    """Return the pages of the longest documents, and a sample of the others."""
    reader = Reader(folder / "muniment.sqlite3")
    try:
        keys = {kind: reader.keys(kind, "", 1_000_000) for kind in ROOMS}
        sizes = {
            (kind, key): len(found.body)
            for kind, every in keys.items()
            for key in every
            if (found := reader.document(kind, key))
        }
    finally:
        reader.close()
    paths = []
    for kind in ROOMS:
        mine = sorted((each for each in sizes if each[0] == kind), key=sizes.__getitem__, reverse=True)
        for _, key in mine[:LARGEST]:
            home = f"/{ROOMS[kind]}/{quote(key, safe='')}"
            paths += [home, *(f"{home}/{part}" for part in PARTS[kind])]
    others = sorted(sizes)
    return paths + [
        f"/{ROOMS[kind]}/{quote(key, safe='')}" for kind, key in chance.sample(others, min(sample, len(others)))
    ]


def measure(product: Any, browser: Any, paths: list[str]) -> int:
    """Visit *paths*, print the largest pages, and return 1 if one exceeds a limit."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 900})
    page = context.new_page()
    found = []
    for path in paths:
        answer = page.goto(f"http://127.0.0.1:{product.port}{path}")
        assert answer.status == 200, (path, answer.status)
        height, width = page.evaluate("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")
        found.append(Size(path, height, len(answer.body()) / 1e3, width))
    context.close()
    print(f"{len(found)} pages, at most {MAX_HEIGHT:,} px and {MAX_PAGE_KB:g} KB")
    for title, size in (("tallest", lambda each: each.height), ("largest", lambda each: each.kb)):
        print(f"\n{title:52}{'px':>8}{'KB':>8}")
        for each in sorted(found, key=size, reverse=True)[:SHOWN]:
            print(f"{each.path[:51]:52}{each.height:8,}{each.kb:8.1f}")
    over = [each for each in found if each.is_over]
    for each in over:
        print(f"FAIL {each.path}: {each.height:,} px, {each.kb:.1f} KB, {each.width:,} px wide")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
