"""
Pages on the fast path: responses of public pages, static files and server cards, as the ordinary path sent them.

A page that is the same for every visitor (decision 55) says so by a stamp. Its response is kept as it was sent, by
request target, and sent again until a publication changes something that it shows. Nothing else is ever kept.
"""

import time
from collections.abc import Hashable
from typing import Final

import msgspec

from muniment.api.responses import Response, status_line
from muniment.kernel.asgi import Header
from muniment.kernel.http.public_pages import PageStamp
from muniment.kernel.http.representations import ENCODINGS, SMALLEST_ENCODED, etag, is_known, negotiated
from muniment.languages.offered import MAX_REMEMBERED_BYTES, chosen
from muniment.store.cache import ResponseCache
from muniment.store.reader import Reader

LIMIT_BYTES: Final = 12_000_000
"""The limit of all kept responses. Most of their bodies are those of the page cache itself."""
LARGEST_BYTES: Final = LIMIT_BYTES // 8
MAX_TARGET_BYTES: Final = 1024
OVERHEAD_BYTES: Final = 600
VARY: Final = b"Accept-Encoding"
"""The only header by which kept responses may vary; those with one encoding need not name it."""
VARY_SPOKEN: Final = b"Accept-Encoding, Accept-Language, Cookie"
"""The headers by which a page varies that is in the visitor's language."""
LANGUAGE_COOKIE: Final = b"language="
MAX_PREFERENCES: Final = 1024
"""Values of ``Accept-Language`` whose meaning is remembered."""
_FORBIDDEN: Final = frozenset({b"set-cookie", b"www-authenticate", b"connection", b"transfer-encoding"})


class KeptPage(msgspec.Struct, gc=False):
    """The responses of one page in one language: by encoding, in full and as 304."""

    stamp: PageStamp
    surface: str
    is_encoded: bool
    full: dict[bytes, Response] = {}
    unchanged: dict[bytes, Response] = {}


class PageAnswers:
    """Kept responses by request target, and by language. Only the event loop uses them; any thread may end them."""

    def __init__(self, reader: Reader) -> None:
        self._cache = ResponseCache(LIMIT_BYTES)
        """By target, the pages by language; a page that is the same in every language has none."""
        self._pages: dict[Hashable, dict[str, KeptPage]] = self._cache.ready
        self._languages: tuple[str, ...] = ()
        self._codes: dict[bytes, str] = {}
        """Languages by their values of the cookie."""
        self._preferred: dict[bytes, str] = {}
        """The language of each value of ``Accept-Language``, while these languages are offered."""
        reader.keep_current(self._cache)

    def __contains__(self, target: bytes) -> bool:
        return target in self._pages

    @property
    def size_bytes(self) -> int:
        return int(self._cache.currsize)

    def get(
        self,
        target: bytes,
        accept_encoding: bytes,
        if_none_match: bytes,
        accept_language: bytes = b"",
        cookie: bytes = b"",
    ) -> tuple[KeptPage, Response] | None:
        """Return the page at *target* and its response to these headers, or None if it is not kept or has ended."""
        spoken = self._pages.get(target)
        if spoken is None:
            return None
        page = spoken.get("")
        if page is None:
            language = self._preferred.get(accept_language)
            # A language that the visitor has chosen comes before those of the browser.
            if language is None or LANGUAGE_COOKIE in cookie:
                language = self._language(accept_language, cookie)
            page = spoken.get(language)
        if page is None:
            return None
        stamp = page.stamp
        if 0 < stamp.until <= time.time():
            self._cache.drop(target)
            return None
        encoding = b""
        if page.is_encoded and accept_encoding:
            encoding = negotiated(accept_encoding)
        responses = page.full
        if if_none_match and is_known(stamp.tag, if_none_match):
            responses = page.unchanged
        response = responses.get(encoding)
        return None if response is None else (page, response)

    def _language(self, accept_language: bytes, cookie: bytes) -> str:
        """Return the language of a visitor: the chosen one, which a cookie names, else the preferred one."""
        if LANGUAGE_COOKIE not in cookie:
            return self._preference(accept_language)
        before, _, rest = cookie.partition(LANGUAGE_COOKIE)
        code = None
        if not before or before.endswith(b"; "):  # else the name is the end of another one
            code = self._codes.get(rest.partition(b";")[0])
        return code or chosen(accept_language, cookie, self._languages)

    def _preference(self, accept_language: bytes) -> str:
        """Return the language that a header prefers, and remember what a common header means."""
        code = chosen(accept_language, b"", self._languages)
        if len(accept_language) <= MAX_REMEMBERED_BYTES:
            if len(self._preferred) >= MAX_PREFERENCES:
                self._preferred.clear()
            self._preferred[accept_language] = code
        return code

    def keep(
        self, target: bytes, stamp: PageStamp, surface: str, *, status: int, headers: list[Header], body: bytes
    ) -> None:
        """Keep a response that the ordinary path has sent, if all of it says that it is for everyone."""
        named = dict(headers)
        is_cut = status == 200 and not _is_whole(named, body)
        if is_cut or not _is_plain(target) or not _is_for_everyone(headers, stamp):
            return
        encoding = _encoding(stamp.tag, named.get(b"etag", b""))
        if encoding is None:
            return
        version = self._cache.version
        if stamp.version not in {None, version}:
            return  # what it shows may have changed since
        # Later versions have the same page, as long as what it depends on is the same.
        stamp = stamp._replace(version=None)
        spoken = self._spoken(target, stamp)
        page = spoken.get(stamp.language)
        if page is None and status == 304:
            return  # its size, which decides whether it is encoded, is not known
        if page is None:
            is_long = bool(encoding) or len(body) >= SMALLEST_ENCODED
            page = spoken[stamp.language] = KeptPage(stamp, surface, stamp.is_compressible and is_long)
        responses = page.full if status == 200 else page.unchanged
        if encoding not in responses:
            head = _head(status, headers)
            responses[encoding] = Response(status, head, body)
            self._grow(target, spoken, len(head) + len(body) + OVERHEAD_BYTES, stamp, version)

    def _grow(
        self, target: bytes, spoken: dict[str, KeptPage], size_bytes: int, stamp: PageStamp, version: int
    ) -> None:
        """Count a response of the pages at *target*, and keep these if they are new and still of *version*."""
        if self._pages.get(target) is spoken:
            self._cache.grow(target, spoken, size_bytes)
        else:
            self._cache.put(target, spoken, size_bytes=size_bytes, version=version, depends=stamp.depends)

    def _spoken(self, target: bytes, stamp: PageStamp) -> dict[str, KeptPage]:
        """Return the pages at *target* that a page goes with: those that show the same, for the same visitors."""
        if stamp.languages != self._languages and stamp.languages:
            self._languages, self._preferred = stamp.languages, {}
            self._codes = {code.encode(): code for code in stamp.languages}
        spoken = self._pages.get(target, {})
        for page in spoken.values():
            is_other = page.stamp.language == stamp.language and page.stamp != stamp
            is_for_others = page.stamp.languages != stamp.languages or page.stamp.depends != stamp.depends
            if is_other or is_for_others:
                self._cache.drop(target)
                return {}
        return spoken


def _is_plain(target: bytes) -> bool:
    """Return whether a target may be kept: each of its bytes stands for itself, and it is short."""
    return len(target) <= MAX_TARGET_BYTES and b"%" not in target and b"//" not in target


def _is_whole(headers: dict[bytes, bytes], body: bytes) -> bool:
    """Return whether a body is all of its response, and small enough to be kept."""
    return len(body) <= LARGEST_BYTES and headers.get(b"content-length") == b"%d" % len(body)


def _head(status: int, headers: list[Header]) -> bytes:
    return status_line(status) + b"".join(b"%s: %s\r\n" % line for line in headers)


def _is_for_everyone(headers: list[Header], stamp: PageStamp) -> bool:
    """Return whether a response with *headers* may be sent to another visitor, chosen as the stamp says."""
    named = dict(headers)
    if len(named) != len(headers):
        return False  # of a repeated header, only one value would be looked at
    if not _FORBIDDEN.isdisjoint(named) or not named.get(b"cache-control", b"").startswith(b"public"):
        return False
    vary = VARY_SPOKEN if stamp.language else VARY
    # What has several encodings must name the header that chooses one; what has one need not.
    if b"vary" not in named and not stamp.is_compressible:
        return True
    return named.get(b"vary") == vary


def _encoding(tag: bytes, shown: bytes) -> bytes | None:
    """Return the encoding that an ETag names; None if it is of another version."""
    for encoding in (b"", *ENCODINGS):
        if etag(tag, encoding) == shown:
            return encoding
    return None
