"""Check the Host and Origin of a request before it is read."""

import re
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from muniment.kernel.problems import Forbidden, Problem

_MAX_CACHED = 1_000
_MAX_CACHED_BYTES = 256
_AUTHORITY = re.compile(r"(\[[0-9a-f:.%]+\]|[^:\[\]@/\\]*)(?::[0-9]{0,5})?")


class Misdirected(Problem):
    """The Host is not one of this server's: DNS rebinding, or a missing setting."""

    status = HTTPStatus.MISDIRECTED_REQUEST


def _host_of(authority: str) -> str:
    """Return the host of ``host[:port]`` in lower case, with the brackets of an IPv6 address; "" for anything else."""
    found = _AUTHORITY.fullmatch(authority.strip().lower())
    return found[1] if found else ""


def _is_loopback(host: str) -> bool:
    parts = host.split(".")
    return host in {"localhost", "[::1]"} or (
        len(parts) == 4 and parts[0] == "127" and all(part.isdigit() and int(part) < 256 for part in parts)
    )


class OriginPolicy:
    """
    The rules for Host and Origin.

    Args:
        base_url: the public URL; "" if the instance has none.
        hosts: additional Host names; one without a port allows every port.
        origins: additional Origins that may call a loopback Host.

    Source: decisions, section 3; MCP specification, Streamable HTTP, security warning.
    """

    def __init__(self, base_url: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        parts = urlsplit(base_url)
        self._hosts = {host.lower() for host in hosts}
        self._base = {parts.netloc.lower()} if parts.netloc else set()
        if parts.hostname and parts.port is None:
            # A proxy may add the default port.
            self._base.add(f"{_host_of(parts.netloc)}:{443 if parts.scheme == 'https' else 80}")
        self._origins = {origin.rstrip("/").lower() for origin in origins}
        self._admitted: set[tuple[bytes, bytes]] = set()

    def admit(self, host: bytes, origin: bytes) -> None:
        """
        Check a request's Host and Origin.

        Raises:
            Misdirected: 421, the Host is unknown.
            Forbidden: a page of another Origin calls a server on this machine.
        """
        pair = (host, origin)
        if pair in self._admitted:
            return
        self._check(host.decode("latin-1"), origin.decode("latin-1"))
        if len(self._admitted) < _MAX_CACHED and len(host) + len(origin) <= _MAX_CACHED_BYTES:
            self._admitted.add(pair)

    def _check(self, host: str, origin: str) -> None:
        name = _host_of(host)
        if _is_loopback(name):
            if origin and not self._is_local(origin):
                raise Forbidden(
                    f"The Origin {origin[:100]} is not allowed to call this server at the Host {host[:100]}.",
                    "Use the public URL, or add the origin to MUNIMENT_ALLOWED_ORIGINS.",
                )
        elif host.lower() not in self._base and host.lower() not in self._hosts and name not in self._hosts:
            raise Misdirected(
                f"This server does not serve the Host {host[:100] or '(none)'}.",
                "Use the public URL (MUNIMENT_BASE_URL), or add the host to MUNIMENT_ALLOWED_HOSTS.",
            )

    def _is_local(self, origin: str) -> bool:
        if origin.rstrip("/").lower() in self._origins:
            return True
        scheme, _, authority = origin.partition("://")
        return scheme in {"http", "https"} and _is_loopback(_host_of(authority)) and "/" not in authority
