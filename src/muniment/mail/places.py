"""
Where a message leads: addresses of pages of this registry.

A command runs without a server, so it may not know the public address. It then uses the one that the server last
started with, and without one says which page is meant.
"""

from collections.abc import Callable

from django.conf import settings
from django.utils.translation import gettext

recorded: Callable[[], str] | None = None
"""Returns the base URL with which a server last started; the security log sets it when Django loads."""


def base_url() -> str:
    """Return the public base URL without a slash at its end; empty if no server has had one."""
    return settings.BASE_URL or (recorded() if recorded is not None else "")


def place(path: str) -> str:
    """Return the URL of a page, or words for it if the base URL is unknown."""
    base = base_url()
    return f"{base}{path}" if base else gettext("the page %(path)s of this registry") % {"path": path}


def link(label: str, path: str) -> str:
    """Return a line that leads to a page: HTML shows the label as the link, text the address behind it."""
    return f"{label}: {place(path)}"
