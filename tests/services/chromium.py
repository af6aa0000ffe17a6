"""The installed Chromium, driven through Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

SHELL = "chromium-headless-shell"
"""The same engine without the parts for a screen: it needs far less of the processor."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHORT_LIVED = ["--js-flags=--max-optimized-bytecode-size=0 --min-semi-space-size=32 --max-semi-space-size=64"]
"""A page of a test is left before optimized code of its scripts would be worth its compilation; axe is the largest."""

# Playwright's 5 s are too short where other work takes the processor; a page that is in time is not waited for longer.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium(*, whole: bool = False) -> Iterator[Browser]:
    """
    Start a headless Chromium for the context; *whole* is the browser that people use, for measurements and pictures.

    Playwright keeps an event loop in this thread, so Django would refuse the ORM; a test may use both, and Django is
    told so here.
    """
    path = next(filter(None, map(shutil.which, BROWSERS if whole else (SHELL, *BROWSERS))), None)
    if path is None:
        message = "Chromium is not installed: run `make test` as root, or `apt-get install chromium`"
        raise FileNotFoundError(message)
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            arguments = ARGUMENTS if whole else [*ARGUMENTS, *SHORT_LIVED]
            browser = playwright.chromium.launch(executable_path=path, headless=True, args=arguments)
            own = browser.new_context

            def new_context(**options: Any) -> BrowserContext:
                context = own(**options)
                context.set_default_timeout(PATIENCE_MS)
                return context

            browser.new_context = new_context  # type: ignore[method-assign]  # the limit is the context's
            try:
                yield browser
            finally:
                browser.close()
    finally:
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before
