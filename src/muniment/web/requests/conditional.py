"""Finished content, sent in the encoding that the client prefers, or not at all when the client has it."""

from http import HTTPStatus

import msgspec
from django.http import HttpRequest, HttpResponse

from muniment.kernel.http.content_negotiation import SMALLEST_ENCODED, encode, etag, is_known, negotiated


class Content(msgspec.Struct, gc=False):
    """One version of a page or a file, with each encoding that a client has asked for."""

    body: bytes
    tag: str
    """The opaque part of the ETag; each encoding adds its name."""
    content_type: str
    is_compressible: bool = True
    is_immutable: bool = False
    """Whether it is worth the smallest encoding."""
    _encoded: dict[bytes, bytes] = {}

    @property
    def size_bytes(self) -> int:
        return len(self.body) + sum(map(len, self._encoded.values()))

    def respond(self, request: HttpRequest, cache_control: str, *, status: int = HTTPStatus.OK) -> HttpResponse:
        """Return the content, or 304 when ``If-None-Match`` names any encoding of this version."""
        encoding = b""
        if self.is_compressible and len(self.body) >= SMALLEST_ENCODED:
            encoding = negotiated(request.headers.get("Accept-Encoding", "").encode())
        tag = self.tag.encode()
        if is_known(tag, request.headers.get("If-None-Match", "").encode()):
            response = HttpResponse(status=HTTPStatus.NOT_MODIFIED)
            del response["Content-Type"]
        else:
            response = HttpResponse(self._encode(encoding), status=status, content_type=self.content_type)
            if encoding:
                response["Content-Encoding"] = encoding.decode()
        response["ETag"] = etag(tag, encoding).decode()
        response["Cache-Control"] = cache_control
        response["Vary"] = "Accept-Encoding"
        return response

    def _encode(self, encoding: bytes) -> bytes:
        if not encoding:
            return self.body
        found = self._encoded.get(encoding)
        if found is None:
            found = self._encoded[encoding] = encode(self.body, encoding, smallest=self.is_immutable)
        return found
