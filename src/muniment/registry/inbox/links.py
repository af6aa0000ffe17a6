"""
Find dead links of an item: a job asks each website for its first line.

Only public addresses are connected to, on the ports of websites; redirects are not followed. A website that answers
with a redirect, or refuses programs, is alive.
"""

import http.client
import logging
import ssl
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from django.utils.translation import gettext

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.outbound import fetching
from muniment.outbound.fetching import Connection
from muniment.outbound.following import plain_address
from muniment.registry.verification import checks

MAX_LINKS: Final = 6
_DEAD: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)

connection: Connection = {}
"""How websites are connected to; empty in production."""
log = logging.getLogger(__name__)


class Finding(NamedTuple):
    """A link and what is wrong with it; "" if it answers. ``is_checked`` is False if this instance cannot tell."""

    url: str
    fault: str
    is_checked: bool = True

    def to_wire(self) -> JSONObject:
        return self._asdict()


def links_in(facts: JSONMapping) -> list[str]:
    """Return the websites among the values of a company, at most `MAX_LINKS`."""
    values: list[Any] = [facts.get("website"), facts.get("dao_website"), *(facts.get("socials") or {}).values()]
    found = [value.strip() for value in values if isinstance(value, str) and value.startswith(("http://", "https://"))]
    return list(dict.fromkeys(found))[:MAX_LINKS]


def look(url: str) -> Finding:
    """Ask a website whether *url* is there. Takes up to `fetching.DEADLINE_S`."""
    address = _requestable(url)
    if not address:
        return Finding(url, "", is_checked=False)
    try:
        how: Connection = {"resolve": checks.addresses_of, **connection}
        status = fetching.answered_status(address, **how)
    except (OSError, ValueError, http.client.HTTPException) as error:
        log.debug("a link of an item under review is dead: %s", type(error).__name__)
        return Finding(url, _fault(error))
    is_dead = status in _DEAD or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return Finding(url, gettext("responds with %(status)d") % {"status": status} if is_dead else "")


def _requestable(url: str) -> str:
    """Return *url* as it is sent, in ASCII; "" if it names a port, a user or a host that is no name."""
    try:
        address = plain_address(url)
    except ValueError:
        return ""
    host = urlsplit(address).hostname or ""
    return "" if ":" in host or "." not in host else address


def _fault(error: Exception) -> str:
    """Return why a website did not answer, without telling anything of the network around this instance."""
    match error:
        case ssl.SSLCertVerificationError():
            return gettext("its certificate is not valid")
        case ssl.SSLError() | http.client.HTTPException():
            return gettext("gives no valid response")
        case TimeoutError():
            return gettext("takes too long to respond")
        case ValueError():
            return gettext("leads to an address that is not public")
        case _:
            return gettext("can't be reached")
