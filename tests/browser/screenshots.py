"""Pictures of every page in light, dark and phone width: ``make screenshots`` puts them into a folder."""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from browser.connecting import stations
from browser.tour import OWNER, OWNER_PATHS, REVIEWER, REVIEWER_PATHS, WIDTHS, origin, public_paths, sign_in, stand
from browser.waiting import a_days_work, in_the_queue
from services.chromium import chromium
from services.product import Product


def main(folder: Path) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, stand(Path(place)) as product, chromium() as browser:
        rooms = _rooms(browser, product)
        for mode, (width, height, scheme) in WIDTHS.items():
            for who, paths in rooms:
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                page = sign_in(context, product, who) if who else context.new_page()
                for path in paths:
                    page.goto(origin(product) + path)
                    page.wait_for_load_state()
                    name = re.sub(r"[^\w]+", "-", path.strip("/")) or "home"
                    page.screenshot(path=folder / f"{name}-{mode}.png", full_page=True)
                if who == OWNER:
                    for name in stations(page, product):
                        page.screenshot(path=folder / f"oauth-{name}-{mode}.png", full_page=True)
                context.close()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")  # noqa: T201 - a command speaks on its output


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
        ("", [*public_paths(product), *waiting.public]),
        (OWNER, [*OWNER_PATHS, *waiting.owner]),
        (REVIEWER, [*REVIEWER_PATHS, *waiting.reviewer, *asked]),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))
