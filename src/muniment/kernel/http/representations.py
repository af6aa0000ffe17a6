"""
Representations of a resource: their encodings, their ETags and ``Last-Modified``, and conditional requests.

Every HTTP surface shares them. ``Last-Modified`` is proof that a client has the present version, although it counts
whole seconds. A *stamp* is an even second that belongs to one version of a resource alone: later versions of the same
two seconds get the following even ones, so that stamps only rise, also if the clock was set back or the transaction
took long. While a stamp is still ahead, and where none is known, an odd second is shown, which never answers a
conditional request. A state that was lost by a failover or restored from a backup never has the date of another one.

Documents carry the stamp of their last change; lists, statistics and pages that of the edition, and at least the time
from which this server composed them.

Source: RFC 9110, sections 8.8.2, 8.8.3, 12.5.3 and 13.1.
"""

import hashlib
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from gzip import compress as gzip_compress
from typing import Final

import brotli

from muniment.kernel.zstandard import zstd

ENCODINGS: Final = (b"zstd", b"br", b"gzip")
"""The offered encodings, in order of preference."""
SMALLEST_ENCODED: Final = 256
"""Smaller bodies do not shrink, including the additional headers."""
KEPT: Final = "kept"
"""The key in a scope's state of a 304 that a kept answer gave without further work: such a 304 is free."""
MAX_REMEMBERED_BYTES: Final = 256
"""Longer header values are not kept in memory; no common client sends them."""
_ENTITY_TAG = re.compile(rb'(?:W/)?"([^"]*)"')
_threads = threading.local()
_STAMP_CHARACTERS: Final = len("2026-11-22T10:00:04Z")
_SLOT_S: Final = 2
_seen = ""
"""The present second when the clock was read last: most stamps are older, and need no look at it."""


def negotiated(accepted: bytes) -> bytes:
    """Return the encoding that an ``Accept-Encoding`` value prefers (RFC 9110, section 12.5.3); empty for none."""
    return _remembered(accepted) if len(accepted) <= MAX_REMEMBERED_BYTES else _negotiated(accepted)


def _negotiated(accepted: bytes) -> bytes:
    weights: dict[bytes, float] = {}
    for part in accepted.lower().split(b","):
        name, _, parameter = part.partition(b";")
        key, _, value = parameter.strip().partition(b"=")
        try:
            weight = float(value) if key.strip() == b"q" else 1.0
        except ValueError:
            weight = 0.0
        weights[name.strip()] = weight
    if b"x-gzip" in weights:
        weights.setdefault(b"gzip", weights[b"x-gzip"])
    others = weights.get(b"*", 0.0)
    best, best_weight = b"", weights.get(b"identity", 0.0)
    for name in reversed(ENCODINGS):
        weight = weights.get(name, others)
        if weight > 0 and weight >= best_weight:
            best, best_weight = name, weight
    return best


_remembered: Final = lru_cache(maxsize=1024)(_negotiated)


def encode(body: bytes, encoding: bytes, *, smallest: bool = False) -> bytes:
    """Compress *body*, harder with *smallest*; an empty *encoding* returns it unchanged."""
    if not encoding:
        return body
    if encoding == b"gzip":
        return gzip_compress(body, 9 if smallest else 6, mtime=0)
    if encoding == b"br":
        return bytes(brotli.compress(body, quality=11 if smallest else 4))
    if smallest:
        return zstd.compress(body, level=19)
    try:
        compressor = _threads.compressor
    except AttributeError:
        compressor = _threads.compressor = zstd.ZstdCompressor(level=3)
    return bytes(compressor.compress(body, zstd.ZstdCompressor.FLUSH_FRAME))


def digest(content: bytes) -> str:
    """Return a short digest of *content*, which names this version of it in ETags and caches."""
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def etag(tag: bytes, encoding: bytes) -> bytes:
    """Return the strong ETag, quoted, of the version *tag* in *encoding* (RFC 9110, section 8.8.3)."""
    return b'"%s-%s"' % (tag, encoding) if encoding else b'"%s"' % tag


def is_known(tag: bytes, if_none_match: bytes) -> bool:
    """
    Return whether an ``If-None-Match`` names the version *tag* in any of its encodings, or any version.

    Source: RFC 9110, section 13.1.2: a list, compared weakly.
    """
    is_short = len(if_none_match) <= MAX_REMEMBERED_BYTES
    return _is_known_remembered(tag, if_none_match) if is_short else _is_known(tag, if_none_match)


def _is_known(tag: bytes, if_none_match: bytes) -> bool:
    if tag not in if_none_match:
        return if_none_match.strip() == b"*"
    for opaque in _ENTITY_TAG.findall(if_none_match):
        if opaque == tag or (opaque.startswith(tag + b"-") and opaque[len(tag) + 1 :] in ENCODINGS):
            return True
    return False


_is_known_remembered: Final = lru_cache(maxsize=1024)(_is_known)


def http_date(moment: str) -> bytes:
    """Return an RFC 3339 UTC timestamp as an HTTP date."""
    return b"%s %s GMT" % (_http_day(moment[:10]), moment[11:19].encode())


@lru_cache(maxsize=1024)
def _http_day(day: str) -> bytes:
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return format_datetime(midnight, usegmt=True).removesuffix(" 00:00:00 GMT").encode()


def is_stamp(moment: str) -> bool:
    """Return whether *moment* is a stamp; other times have microseconds."""
    return len(moment) == _STAMP_CHARACTERS


def stamp_after(moment: str, former: str = "") -> str:
    """Return the stamp of a change at *moment* to a resource whose last stamp is *former*."""
    wanted = _even(moment)
    return max(wanted, _moved(former, _SLOT_S)) if former else wanted


def stamp_from(moment: str) -> str:
    """Return the first stamp that is not before *moment*."""
    return _moved(_even(moment), _SLOT_S)


def proves(if_modified_since: bytes, moment: str) -> bool:
    """
    Return whether an ``If-Modified-Since`` value proves that the client has the version of *moment*.

    A later date proves nothing: the copy may be from a node that lagged, or of a history that was lost.
    """
    return bool(if_modified_since) and is_stamp(moment) and if_modified_since.strip() == http_date(moment)


def shown(moment: str) -> str:
    """Return the second to show of a stamp, or of another time, which is never a stamp."""
    if len(moment) == _STAMP_CHARACTERS and (moment <= _seen or moment <= present()):
        return moment
    return _odd(min(moment, present())[: _STAMP_CHARACTERS - 1])


def prefers_csv(accept: bytes) -> bool:
    """Return whether an ``Accept`` names CSV first, so that a list is not answered as JSON."""
    return accept[:8].lower() == b"text/csv"


def is_ahead(moment: str) -> bool:
    return is_stamp(moment) and moment > present()


def present() -> str:
    global _seen  # noqa: PLW0603 - the clock of the process
    _seen = second(int(time.time()))
    return _seen


@lru_cache(maxsize=4)
def second(since_1970: int) -> str:
    return f"{datetime.fromtimestamp(since_1970, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _even(moment: str) -> str:
    return _moved(moment, -(int(moment[18]) % _SLOT_S))


@lru_cache(maxsize=256)
def _odd(moment: str) -> str:
    return _moved(moment, int(moment[18]) % _SLOT_S - 1)


@lru_cache(maxsize=256)
def _moved(moment: str, by_s: int) -> str:
    moved = datetime.fromisoformat(moment[: _STAMP_CHARACTERS - 1]) + timedelta(seconds=by_s)
    return f"{moved.isoformat(timespec='seconds')}Z"
