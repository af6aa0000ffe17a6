"""
Pictures of every page in light, dark and phone width: ``make screenshots`` puts them into a folder.

If MUNIMENT_SAMPLE_DATA names a registry, its lists and its largest and emptiest pages are among them, and the forms of
who owns and reviews its largest companies.
"""

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from browser.connecting import stations
from browser.importing import stages
from browser.tour import (
    FURTHER_OWNER_PATHS,
    FURTHER_PUBLIC_PATHS,
    FURTHER_REVIEWER_PATHS,
    OPERATOR,
    OPERATOR_PATHS,
    OWNER,
    OWNER_PATHS,
    PASSWORD,
    PUBLIC_PATHS,
    REVIEWER,
    REVIEWER_PATHS,
    origin,
    sign_in,
    stand,
)
from browser.waiting import a_days_work, in_the_queue
from browser.wrongly import refusals
from muniment.store.reader import Reader
from services.chromium import chromium
from services.product import Product, run

MODES = {
    "light": (1280, 900, "light"),
    "dark": (1280, 900, "dark"),
    "phone": (390, 844, "light"),
    "phone-dark": (390, 844, "dark"),
}
LARGEST, EMPTIEST = 10, 2
REAL_PATHS = [
    "/",
    "/companies",
    "/companies?type=DAO&sort=treasury",
    "/companies?q=zzzzqq",
    "/people",
    "/people?q=maintainer",
    "/frameworks",
    "/search?q=solar",
    "/search?q=which+DAOs+are+active",
    "/map",
]
OWNED = 2
"""Of the largest companies, those whose forms are shown."""


class Room(NamedTuple):
    """
    The pages of one visitor.

    Args:
        who: the address of the account; empty for a visitor.
        walk: leads a page from one to the next, and gives the name of each.
    """

    who: str
    paths: list[str]
    walk: Callable[[Any, Product], Iterable[str]] = lambda _page, _product: ()


def main() -> None:
    """Take them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("screenshots"))
    parser.add_argument("--of", choices=("demo", "real", "empty"), action="append", help="only these registries")
    parser.add_argument("--mode", choices=MODES, action="append", help="only these widths and colors")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    registries, modes = given.of or ["demo", "real", "empty"], given.mode or list(MODES)
    with chromium(whole=True) as browser, tempfile.TemporaryDirectory() as place:
        if "demo" in registries:
            with stand(Path(place) / "demo") as product:
                _take(browser, product, given.folder, modes, _demo(browser, product))
                _mails(browser, product, given.folder, modes)
        if "empty" in registries:
            with Product(Path(place) / "empty") as product:
                product.wait_ready()
                paths = ["/", "/companies", "/people", "/frameworks", "/search?q=a", "/map", "/compare"]
                _take(browser, product, given.folder, modes, [Room("", paths)], "empty-")
        if "real" in registries and (source := os.environ.get("MUNIMENT_SAMPLE_DATA")):
            data = Path(place) / "real"
            run("import", source, data=data, check=False)  # invalid values are left out, and the command says so
            with Product(data) as product:
                product.wait_ready()
                _take(browser, product, given.folder, modes, _real(data), "real-")
    print(f"{len(list(given.folder.glob('*.png')))} pictures in {given.folder}")  # noqa: T201 - a command speaks on its output


def _take(browser: Any, product: Product, folder: Path, modes: list[str], rooms: list[Room], prefix: str = "") -> None:  # noqa: PLR0917 - what to show, and how
    for mode in modes:
        width, height, scheme = MODES[mode]
        taken: set[str] = set()
        for room in rooms:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = sign_in(context, product, room.who) if room.who else context.new_page()
            for path in room.paths:
                page.goto(origin(product) + path)
                page.wait_for_load_state()
                name = re.sub(r"[^\w]+", "-", path.strip("/"))[:100] or "home"
                if name in taken:  # the same address as another visitor sees it
                    name += f"-{room.who.partition('@')[0]}"
                taken.add(name)
                page.screenshot(path=folder / f"{prefix}{name}-{mode}.png", full_page=True)
            for name in room.walk(page, product):
                page.screenshot(path=folder / f"{prefix}{name}-{mode}.png", full_page=True)
            context.close()


def _demo(browser: Any, product: Product) -> list[Room]:
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
        Room("", [*PUBLIC_PATHS, *FURTHER_PUBLIC_PATHS, *waiting.public]),
        Room(OWNER, [*OWNER_PATHS, *FURTHER_OWNER_PATHS, *waiting.owner], _of_an_owner),
        Room(REVIEWER, [*REVIEWER_PATHS, *FURTHER_REVIEWER_PATHS, *waiting.reviewer, *asked]),
        Room(OPERATOR, OPERATOR_PATHS, _of_an_operator),
    ]


def _of_an_owner(page: Any, product: Product) -> Iterator[str]:
    yield from (f"oauth-{name}" for name in stations(page, product))
    yield from (f"refused-{name}" for name in refusals(page, product))


def _of_an_operator(page: Any, product: Product) -> Iterator[str]:
    return (f"import-{name}" for name in stages(page, product))


def _mails(browser: Any, product: Product, folder: Path, modes: list[str]) -> None:
    """Show the mails that the stand has sent, each subject once."""
    messages = [
        message_from_bytes(mail.read_bytes(), policy=policy.default) for mail in (product.data / "mail").iterdir()
    ]
    for mode in modes:
        width, height, scheme = MODES[mode]
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        for subject, message in {str(each["Subject"]): each for each in messages}.items():
            if part := message.get_body(("html",)):
                page.set_content(part.get_content())
                name = re.sub(r"[^\w]+", "-", subject)[:60].strip("-")
                page.screenshot(path=folder / f"mail-{name}-{mode}.png", full_page=True)
        context.close()


def _real(data: Path) -> list[Room]:
    """Return the lists of a registry, and its largest and emptiest documents, as everyone and its people see them."""
    reader = Reader(data / "muniment.sqlite3")
    try:
        sizes = {
            (kind, key): len(found.body)
            for kind in ("company", "person", "framework")
            for key in reader.keys(kind, "", 100_000)
            if (found := reader.document(kind, key))
        }
    finally:
        reader.close()
    ranked = sorted(sizes, key=sizes.__getitem__, reverse=True)
    by_kind = {kind: [key for each, key in ranked if each == kind] for kind in ("company", "person", "framework")}
    largest = {kind: [quote(key) for key in keys[:LARGEST]] for kind, keys in by_kind.items()}
    emptiest = {kind: [quote(key) for key in keys[-EMPTIEST:]] for kind, keys in by_kind.items()}
    owned = by_kind["company"][:OWNED]
    for email, role in ((OWNER, "owner"), (REVIEWER, "reviewer")):
        run("user", "create", email, "--role", role, "--password-stdin", data=data, stdin=PASSWORD + "\n")
    for slug in owned:
        run("own", OWNER, slug, data=data)
    many = [key for key in by_kind["framework"] if key.startswith("best-practices")] or by_kind["framework"][:1]
    parts = ("about", "team", "proposals", "cap-table", "network", "history")
    return [
        Room(
            "",
            [
                *REAL_PATHS,
                *(f"/companies/{key}" for key in (*largest["company"], *emptiest["company"])),
                *(f"/companies/{quote(slug)}/{part}" for slug in owned for part in parts),
                f"/compare?{'&'.join(f'c={key}' for key in largest['company'][:3])}",
                *(f"/people/{key}" for key in (*largest["person"], *emptiest["person"])),
                f"/people/{largest['person'][0]}/positions",
                *(f"/frameworks/{key}" for key in (*largest["framework"][:3], *emptiest["framework"])),
            ],
        ),
        Room(
            OWNER,
            [
                "/manage",
                *(
                    f"/manage/companies/{quote(slug)}/edit/{step}"
                    for slug in owned
                    for step in ("about", "team", "token")
                ),
                *(f"/manage/companies/{quote(slug)}/{page}" for slug in owned for page in ("check", "preview")),
            ],
        ),
        Room(
            REVIEWER,
            [
                "/review",
                *(
                    f"/review/frameworks/{quote(key)}/specification{part}"
                    for key in many
                    for part in ("", "?section=0")
                ),
                *(f"/review/companies/{quote(slug)}" for slug in owned),
                "/review/people",
            ],
        ),
    ]


if __name__ == "__main__":
    main()
