"""Finished content, sent in the encoding that the client prefers, or not at all when the client has it."""

from http import HTTPStatus

import msgspec
from django.http import HttpRequest, HttpResponse

from muniment.kernel.http.representations import (
    SMALLEST_ENCODED,
    encode,
    etag,
    http_date,
    is_known,
    negotiated,
    proves,
    shown,
)


class Content(msgspec.Struct, gc=False):
    """One version of a page or a file, with each encoding that a client has asked for."""

    body: bytes
    tag: str
    """The opaque part of the ETag; each encoding adds its name."""
    content_type: str
    is_compressible: bool = True
    modified_at: str = ""
    """The stamp of its last change (:mod:`muniment.kernel.http.representations`), or another time; "" if unknown."""
    is_immutable: bool = False
    """Whether it is worth the smallest encoding."""
    _encoded: dict[bytes, bytes] = {}

    @property
    def size_bytes(self) -> int:
        return len(self.body) + sum(map(len, self._encoded.values()))

    def respond(self, request: HttpRequest, cache_control: str, *, status: int = HTTPStatus.OK) -> HttpResponse:
        """
        Return the content, or 304 when the client has it.

        ``If-None-Match`` names any encoding of this version; without it, ``If-Modified-Since`` is its stamp.
        """
        encoding = b""
        if self.is_compressible and len(self.body) >= SMALLEST_ENCODED:
            encoding = negotiated(request.headers.get("Accept-Encoding", "").encode())
        tag = self.tag.encode()
        if self._is_known(tag, request):
            response = HttpResponse(status=HTTPStatus.NOT_MODIFIED)
            del response["Content-Type"]
        else:
            response = HttpResponse(self._encode(encoding), status=status, content_type=self.content_type)
            if encoding:
                response["Content-Encoding"] = encoding.decode()
        response["ETag"] = etag(tag, encoding).decode()
        response["Cache-Control"] = cache_control
        response["Vary"] = "Accept-Encoding"
        if self.modified_at:
            response["Last-Modified"] = http_date(shown(self.modified_at)).decode()
        return response

    def _is_known(self, tag: bytes, request: HttpRequest) -> bool:
        match, since = request.headers.get("If-None-Match", ""), request.headers.get("If-Modified-Since", "")
        return is_known(tag, match.encode()) if match else proves(since.encode(), self.modified_at)

    def _encode(self, encoding: bytes) -> bytes:
        if not encoding:
            return self.body
        found = self._encoded.get(encoding)
        if found is None:
            found = self._encoded[encoding] = encode(self.body, encoding, smallest=self.is_immutable)
        return found
