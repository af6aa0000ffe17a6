"""
Pages on the fast path: responses of public pages, static files and server cards, as the ordinary path sent them.

A page that is the same for every visitor (decision 55) says so by a stamp. Its response is kept as it was sent, by
request target, and sent again while its edition lasts. Nothing else is ever kept.
"""

import time
from typing import Final

import msgspec

from muniment.api.responses import Response, status_line
from muniment.kernel.asgi import Header
from muniment.kernel.http.public_pages import PageStamp
from muniment.kernel.http.representations import ENCODINGS, SMALLEST_ENCODED, etag, is_known, negotiated
from muniment.languages.offered import MAX_REMEMBERED_BYTES, chosen
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
    """
    The responses of one target: by encoding, in full and as 304.

    *spoken* has the page in each language, itself among them; None if it is the same in every language.
    """

    stamp: PageStamp
    surface: str
    is_encoded: bool
    size_bytes: int = 0
    full: dict[bytes, Response] = {}
    unchanged: dict[bytes, Response] = {}
    spoken: dict[str, "KeptPage"] | None = None


class PageAnswers:
    """Kept responses by request target, and by language. Only the event loop uses them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._pages: dict[bytes, KeptPage] = {}
        """One page of each target, in whichever language came first."""
        self.size_bytes = 0
        self._version = -1
        self._languages: tuple[str, ...] = ()
        self._codes: dict[bytes, str] = {}
        """Languages by their values of the cookie."""
        self._preferred: dict[bytes, str] = {}
        """The language of each value of ``Accept-Language``, while these languages are offered."""

    def __contains__(self, target: bytes) -> bool:
        return target in self._pages

    def get(
        self,
        target: bytes,
        accept_encoding: bytes,
        if_none_match: bytes,
        accept_language: bytes = b"",
        cookie: bytes = b"",
    ) -> tuple[KeptPage, Response] | None:
        """Return the page at *target* and its response to these headers, or None if it is not kept or has ended."""
        page = self._pages.get(target)
        if page is not None and page.spoken is not None:
            language = self._preferred.get(accept_language)
            # A language that the visitor has chosen comes before those of the browser.
            if language is None or LANGUAGE_COOKIE in cookie:
                language = self._language(accept_language, cookie, page.stamp.languages)
            page = page.spoken.get(language)
        if page is None:
            return None
        stamp = page.stamp
        if self._has_ended(stamp):
            self._drop(target)
            return None
        encoding = negotiated(accept_encoding) if page.is_encoded and accept_encoding else b""
        responses = page.unchanged if if_none_match and is_known(stamp.tag, if_none_match) else page.full
        response = responses.get(encoding)
        return None if response is None else (page, response)

    def _has_ended(self, stamp: PageStamp) -> bool:
        """Return whether a page shows an earlier version of the published file, or its time is over."""
        is_outdated = stamp.version is not None and stamp.version != self._reader.version
        return is_outdated or 0 < stamp.until <= time.time()

    def _language(self, accept_language: bytes, cookie: bytes, languages: tuple[str, ...]) -> str:
        """Return the language of a visitor: the chosen one, which a cookie names, else the preferred one."""
        if LANGUAGE_COOKIE not in cookie:
            return self._preference(accept_language, languages)
        before, _, rest = cookie.partition(LANGUAGE_COOKIE)
        is_usual = not before or before.endswith(b"; ")
        code = self._codes.get(rest.partition(b";")[0]) if is_usual else None
        return code or chosen(accept_language, cookie, languages)

    def _preference(self, accept_language: bytes, languages: tuple[str, ...]) -> str:
        """Return the language that a header prefers, and remember what a common header means."""
        code = chosen(accept_language, b"", languages)
        if languages == self._languages and len(accept_language) <= MAX_REMEMBERED_BYTES:
            if len(self._preferred) >= MAX_PREFERENCES:
                self._preferred.clear()
            self._preferred[accept_language] = code
        return code

    def keep(
        self, target: bytes, stamp: PageStamp, surface: str, *, status: int, headers: list[Header], body: bytes
    ) -> None:
        """Keep a response that the ordinary path has sent, if all of it says that it is for everyone."""
        named = dict(headers)
        encoding = _encoding(stamp.tag, named.get(b"etag", b""))
        is_repeated = len(named) != len(headers)
        if encoding is None or is_repeated or not _is_plain(target) or not _is_for_everyone(named, stamp):
            return
        if status == 200 and not _is_whole(named, body):
            return
        page = self._page(target, stamp, surface, bool(encoding) or len(body) >= SMALLEST_ENCODED, status)
        if page is None:
            return
        responses = page.full if status == 200 else page.unchanged
        if encoding not in responses:
            head = _head(status, headers)
            responses[encoding] = Response(status, head, body)
            grown_bytes = len(head) + len(body) + OVERHEAD_BYTES
            page.size_bytes += grown_bytes
            self.size_bytes += grown_bytes
        while self.size_bytes > LIMIT_BYTES:
            self._drop(next(iter(self._pages)))

    def _page(self, target: bytes, stamp: PageStamp, surface: str, is_long: bool, status: int) -> KeptPage | None:  # noqa: FBT001 - private
        """Return the page that a response belongs to; None for a 304 of a page whose size is not known."""
        page = self._pages.get(target)
        if page is not None and page.spoken is not None:
            page = page.spoken.get(stamp.language)
        if page is not None and page.stamp == stamp:
            return page
        if status == 304:
            return None  # its size, which decides whether it is encoded, is not known
        self._forget_others(stamp.version)
        if stamp.languages != self._languages and stamp.languages:
            self._languages, self._preferred = stamp.languages, {}
            self._codes = {each.encode(): each for each in stamp.languages}
        page = KeptPage(stamp, surface, stamp.is_compressible and is_long)
        self._add(target, page)
        return page

    def _add(self, target: bytes, page: KeptPage) -> None:
        """Add a page to its translations, or in the place of a page that it does not go with."""
        first = self._pages.get(target)
        if first is not None and not _is_translation(page.stamp, first):
            self._drop(target)
            first = None
        if page.stamp.language:
            page.spoken = first.spoken if first is not None and first.spoken is not None else {}
            page.spoken[page.stamp.language] = page
        self._pages.setdefault(target, page)

    def _forget_others(self, version: int | None) -> None:
        """Drop the pages of other versions of the file, which are not sent again."""
        if version is None or version == self._version:
            return
        self._version = version
        outdated = [target for target, page in self._pages.items() if page.stamp.version not in {None, version}]
        for target in outdated:
            self._drop(target)

    def _drop(self, target: bytes) -> None:
        """Drop a page in every language."""
        page = self._pages.pop(target, None)
        if page is None:
            return
        in_languages = (page,) if page.spoken is None else tuple(page.spoken.values())
        for translation in in_languages:
            self.size_bytes -= translation.size_bytes
            translation.spoken = None  # they refer to each other, and are not collected otherwise


def _is_plain(target: bytes) -> bool:
    """Return whether a target may be kept: each of its bytes stands for itself, and it is short."""
    return len(target) <= MAX_TARGET_BYTES and b"%" not in target and b"//" not in target


def _is_whole(headers: dict[bytes, bytes], body: bytes) -> bool:
    """Return whether a body is all of its response, and small enough to be kept."""
    return len(body) <= LARGEST_BYTES and headers.get(b"content-length") == b"%d" % len(body)


def _head(status: int, headers: list[Header]) -> bytes:
    return status_line(status) + b"".join(b"%s: %s\r\n" % line for line in headers)


def _is_for_everyone(headers: dict[bytes, bytes], stamp: PageStamp) -> bool:
    """Return whether a response with *headers* may be sent to another visitor, chosen as the stamp says."""
    if not _FORBIDDEN.isdisjoint(headers) or not headers.get(b"cache-control", b"").startswith(b"public"):
        return False
    vary = VARY_SPOKEN if stamp.language else VARY
    # What has several encodings must name the header that chooses one; what has one need not.
    varies_by = headers.get(b"vary", b"" if stamp.is_compressible else vary)
    return varies_by == vary


def _is_translation(stamp: PageStamp, first: KeptPage) -> bool:
    """Return whether a page is a kept one in another language: of the same edition, for the same visitors."""
    if first.spoken is None or stamp.language in first.spoken:
        return False
    return stamp.version == first.stamp.version and stamp.languages == first.stamp.languages


def _encoding(tag: bytes, shown: bytes) -> bytes | None:
    """Return the encoding that an ETag names; None if it is of another version."""
    return next((each for each in (b"", *ENCODINGS) if etag(tag, each) == shown), None)
