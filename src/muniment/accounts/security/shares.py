"""
Shares: how much of what all visitors together may leave behind one site may take, so that none keeps others out.

A site may have an IPv6 network of 48 bits, with 65,536 networks that each count as a client. An IPv4 client needs an
address for each, so nothing is counted for it here.

Source: decision 87.
"""

from typing import Final

from django.core.cache import cache

from muniment.accounts.security import origin
from muniment.kernel.http.addresses import site_key
from muniment.kernel.ids import digest, now

PART: Final = 10
"""A site may take a tenth."""


def take_share(kind: str, *, in_all: int, least: int, hours: int) -> bool:
    """
    Count one more *kind* for the site that the current request comes from; return False if it has its share.

    Args:
        in_all: how many all visitors together may have.
        least: how many one client may cause in an hour; a site may always do so too.
        hours: how many hours of the clock one of them counts in, the first and the last included.
    """
    site = site_key(origin.current().address)
    if site is None:
        return True
    most = max(least, in_all // PART // hours)
    key = f"share:{kind}:{digest(site.encode())}:{now():%Y%m%d%H}"
    # A flood that is refused only reads.
    if cache.get(key, 0) >= most:
        return False
    cache.add(key, 0, timeout=3_700)
    return cache.incr(key) <= most
