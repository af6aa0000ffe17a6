"""What a token is for: the owner-scoped tool server, and nothing else."""

from typing import Final
from urllib.parse import urlsplit

from muniment.oauth.errors import Refusal

PATH: Final = "/api/manage/mcp"


def manage_server(base: str) -> str:
    """Give the address of the owner-scoped tool server, as people type it and as tokens are bound to it."""
    return base + PATH


def requested(asked: list[str], base: str) -> str | None:
    """
    Read the ``resource`` parameters of a request.

    Args:
        base: the public address of this instance.

    Returns:
        The resource, or None when none was named.

    Raises:
        Refusal: invalid_target, another resource, or several.

    Source: RFC 8707, section 2; clients send a trailing slash and other cases of the host.
    """
    own = manage_server(base)
    found = {_plain(each) for each in asked if each}
    if not found:
        return None
    if found != {_plain(own)}:
        raise Refusal("invalid_target", f"resource must be {own}")
    return own


def _plain(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return address
    if parts.query or parts.fragment or "@" in parts.netloc or "#" in address or "?" in address:
        return address
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return f"{parts.scheme}://{host}:{port or default}{parts.path.removesuffix('/')}"
