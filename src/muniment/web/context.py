"""Template context of every page: the registry's name, address and settings. None of it depends on the visitor."""

import re

from django.http import HttpRequest

from muniment import config

_OURS = re.compile(r"(?:https?://[^/]+)?(?P<path>/pictures/[0-9a-f]{32}-(?:144|512)\.webp)")


def site(request: HttpRequest) -> dict[str, object]:
    """Return the context that the base template needs."""
    settings = config.current()
    return {"registry_name": settings.registry_name, "base_url": address(request), "signup_open": settings.signup}


def address(request: HttpRequest) -> str:
    """Return the public address of the instance: the configured one, else that of the request."""
    return config.current().base_url or f"{request.scheme}://{request.get_host()}"


def own_address(icon: str | None) -> str:
    """
    Return a picture's path if this instance serves it, else an empty string.

    Pages load nothing from other hosts, so an imported address shows as a monogram. The API keeps that address.
    """
    return match["path"] if icon and (match := _OURS.fullmatch(icon)) else ""
