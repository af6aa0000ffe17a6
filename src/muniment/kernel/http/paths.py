"""Paths of requests: the forms that mean the same."""

import re
import unicodedata
from typing import Final
from urllib.parse import quote, unquote

_SLASHES: Final = re.compile(rb"//+")
_KEPT: Final = "-._~!$&'()*+,;=:@"
"""Characters of a segment that need no encoding (RFC 3986, pchar)."""


def canonical_path(raw_path: bytes, path: str) -> tuple[bytes, str]:
    """
    Return a path, as received and decoded, in its one form: with single slashes, and in Unicode normalization form C.

    A base URL that ends with a slash doubles one, and file systems and some keyboards write accents as characters of
    their own. An encoded slash stays one.
    """
    if b"//" in raw_path:
        raw_path = _SLASHES.sub(b"/", raw_path)
        path = unquote(raw_path.decode("latin-1"))
    if not path.isascii() and not unicodedata.is_normalized("NFC", path):
        segments = []
        for segment in raw_path.split(b"/"):
            text = unicodedata.normalize("NFC", unquote(segment.decode("latin-1"), errors="surrogateescape"))
            segments.append(quote(text, safe=_KEPT, errors="surrogateescape"))
        raw_path = "/".join(segments).encode("ascii")
        path = unquote(raw_path.decode("ascii"))
    return raw_path, path
