"""Content negotiation: encodings, their strong ETags, and conditional requests. Shared by every HTTP surface."""

import re
import threading
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from gzip import compress as gzip_compress
from typing import Final

import brotli
import zstandard

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
        return zstandard.ZstdCompressor(level=19).compress(body)
    try:
        compressor = _threads.compressor
    except AttributeError:
        compressor = _threads.compressor = zstandard.ZstdCompressor(level=3)
    return bytes(compressor.compress(body))


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
