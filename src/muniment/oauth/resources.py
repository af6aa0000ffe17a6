"""Resource indicators: a token is valid only for the owner-scoped tool server."""

from typing import Final
from urllib.parse import urlsplit

from muniment.oauth.errors import Refusal

PATH: Final = "/api/manage/mcp"


def manage_server(base: str) -> str:
    """Return the URL of the owner-scoped tool server, as displayed and as bound to tokens."""
    return base + PATH


def requested(asked: list[str], base: str) -> str | None:
    """
    Return the resource of a request's ``resource`` parameters, or None; refuse others, and several, as invalid_target.

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
