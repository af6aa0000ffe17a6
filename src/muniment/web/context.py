"""What every page knows of the registry: name, address, settings. Nothing of who is looking, so that pages are kept."""

import re

from django.http import HttpRequest

from muniment import config

_OURS = re.compile(r"(?:https?://[^/]+)?(?P<path>/pictures/[0-9a-f]{32}-(?:144|512)\.webp)")


def site(request: HttpRequest) -> dict[str, object]:
    """Give what the frame of a page shows."""
    settings = config.current()
    return {"registry_name": settings.registry_name, "base_url": address(request), "signup_open": settings.signup}


def address(request: HttpRequest) -> str:
    """Give the public address of the instance: the configured one, else the one asked for."""
    return config.current().base_url or f"{request.scheme}://{request.get_host()}"


def own_address(icon: str | None) -> str:
    """
    Give a picture's path when the instance serves it, else nothing.

    A page makes no request to others, so an address that an import gave is shown as a monogram.

    The API keeps the address that was given.
    """
    return match["path"] if icon and (match := _OURS.fullmatch(icon)) else ""
