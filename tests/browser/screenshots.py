"""Pictures of every page in light, dark and phone width: ``make screenshots`` puts them into a folder."""

import re
import sys
import tempfile
from pathlib import Path

from browser.connecting import stations
from browser.tour import OWNER, OWNER_PATHS, REVIEWER, REVIEWER_PATHS, WIDTHS, origin, public_paths, sign_in, stand
from services.chromium import chromium


def main(folder: Path) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, stand(Path(place)) as product, chromium() as browser:
        rooms = (("", public_paths(product)), (OWNER, OWNER_PATHS), (REVIEWER, REVIEWER_PATHS))
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


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))
