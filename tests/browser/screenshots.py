"""
Pictures of every page in light, dark and phone width: ``make screenshots`` puts them into a folder.

If MUNIMENT_SAMPLE_DATA names a registry, its lists and its largest companies and people are among them.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from browser.connecting import stations
from browser.tour import (
    FURTHER_OWNER_PATHS,
    FURTHER_PUBLIC_PATHS,
    FURTHER_REVIEWER_PATHS,
    OWNER,
    OWNER_PATHS,
    REVIEWER,
    REVIEWER_PATHS,
    origin,
    public_paths,
    sign_in,
    stand,
)
from browser.waiting import a_days_work, in_the_queue
from muniment.store.reader import Reader
from services.chromium import chromium
from services.product import Product, run

MODES = {
    "light": (1280, 900, "light"),
    "dark": (1280, 900, "dark"),
    "phone": (390, 844, "light"),
    "phone-dark": (390, 844, "dark"),
}
LARGEST = 10
REAL_PATHS = ["/", "/companies", "/people", "/frameworks", "/search?q=solar", "/map"]


def main(folder: Path) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, stand(Path(place)) as product, chromium(whole=True) as browser:
        rooms = _rooms(browser, product)
        for mode in MODES:
            for who, paths in rooms:
                _take(browser, product, folder, mode, paths, who)
    if source := os.environ.get("MUNIMENT_SAMPLE_DATA"):
        with tempfile.TemporaryDirectory() as place, chromium(whole=True) as browser:
            data = Path(place) / "data"
            run("import", source, data=data, check=False)  # invalid values are left out, and the command says so
            with Product(data) as product:
                product.wait_ready()
                paths = _real_paths(data)
                for mode in MODES:
                    _take(browser, product, folder, mode, paths, prefix="real-")
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")  # noqa: T201 - a command speaks on its output


def _take(  # noqa: PLR0917 - what to show, and how
    browser: Any, product: Product, folder: Path, mode: str, paths: list[str], who: str = "", prefix: str = ""
) -> None:
    width, height, scheme = MODES[mode]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = sign_in(context, product, who) if who else context.new_page()
    for path in paths:
        page.goto(origin(product) + path)
        page.wait_for_load_state()
        name = re.sub(r"[^\w]+", "-", path.strip("/"))[:100] or "home"
        page.screenshot(path=folder / f"{prefix}{name}-{mode}.png", full_page=True)
    if who == OWNER:
        for name in stations(page, product):
            page.screenshot(path=folder / f"oauth-{name}-{mode}.png", full_page=True)
    context.close()


def _real_paths(data: Path) -> list[str]:
    """Return the lists of a registry, and the companies and people with the longest documents."""
    reader = Reader(data / "muniment.sqlite3")
    try:
        sizes = {
            (kind, key): len(found.body)
            for kind in ("company", "person")
            for key in reader.keys(kind, "", 100_000)
            if (found := reader.document(kind, key))
        }
    finally:
        reader.close()
    ranked = sorted(sizes, key=sizes.__getitem__, reverse=True)
    largest = {kind: [quote(key) for each, key in ranked if each == kind][:LARGEST] for kind in ("company", "person")}
    return [
        *REAL_PATHS,
        *(f"/companies/{key}" for key in largest["company"]),
        *(f"/companies/{largest['company'][0]}/{part}" for part in ("team", "proposals", "cap-table", "network")),
        f"/compare?{'&'.join(f'c={key}' for key in largest['company'][:3])}",
        *(f"/people/{key}" for key in largest["person"]),
    ]


def _rooms(browser: Any, product: Product) -> list[tuple[str, list[str]]]:
    """Return who sees which pages, after the owner's day of work."""

    def letter(email: str) -> str:
        mails = (mail.read_text() for mail in (product.data / "mail").iterdir())
        return next(text for text in mails if email in text and "invites you" in text)

    framework = product.data_of("/api/v1/frameworks")[0]["frameworkId"]
    context = browser.new_context()
    waiting = a_days_work(sign_in(context, product, OWNER), product, framework, letter)
    context.close()
    context = browser.new_context()
    asked = in_the_queue(sign_in(context, product, REVIEWER), product)
    context.close()
    return [
        ("", [*public_paths(product), *FURTHER_PUBLIC_PATHS, *waiting.public]),
        (OWNER, [*OWNER_PATHS, *FURTHER_OWNER_PATHS, *waiting.owner]),
        (REVIEWER, [*REVIEWER_PATHS, *FURTHER_REVIEWER_PATHS, *waiting.reviewer, *asked]),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))
