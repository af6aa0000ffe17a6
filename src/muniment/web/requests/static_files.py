"""
Static files, served by the instance: addresses carry a digest of the content, so that they may be kept for ever.

No build step and no folder to collect into: the digest is made on the first use, the compressed form too.
"""

import gzip
import hashlib
import mimetypes
import re
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import brotli
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.exceptions import SuspiciousFileOperation
from django.http import Http404, HttpRequest, HttpResponse

FOR_EVER = "public, max-age=31536000, immutable"
FOR_A_WHILE = "public, max-age=3600"
_COMPRESSIBLE = re.compile(r"text/|application/(javascript|json|manifest\+json)|image/svg")
_DIGEST = re.compile(r"^(?P<stem>.+)\.(?P<digest>[0-9a-f]{12})(?P<suffix>\.[A-Za-z0-9]+)$")


class Asset(NamedTuple):
    """A static file with its compressed form, ready to be sent."""

    body: bytes
    digest: str
    content_type: str
    brotli: bytes
    gzip: bytes


@lru_cache(maxsize=512)
def asset(name: str) -> Asset | None:
    """Read the static file *name*, or None when nothing is called so."""
    try:
        found = finders.find(name)
    except SuspiciousFileOperation:
        return None
    if not found or not Path(found).is_file():
        return None
    body = Path(found).read_bytes()
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    compressible = bool(_COMPRESSIBLE.match(guessed))
    content_type = f"{guessed}; charset=utf-8" if compressible else guessed
    return Asset(
        body,
        hashlib.sha256(body).hexdigest()[:12],
        content_type,
        brotli.compress(body, quality=11) if compressible else b"",
        gzip.compress(body, 9, mtime=0) if compressible else b"",
    )


class HashedStorage(StaticFilesStorage):
    """Gives the address of a static file with the digest of its content."""

    def url(self, name: str | None) -> str:
        """Give the address of *name*; a name that no file has stays as it is."""
        found = asset(name) if name else None
        if name is None or found is None:
            return super().url(name)
        stem, dot, suffix = name.rpartition(".")
        return super().url(f"{stem}.{found.digest}{dot}{suffix}" if dot else name)


def serve(request: HttpRequest, path: str) -> HttpResponse:
    """Answer ``/static/…``: with its digest for ever, by its plain name for an hour."""
    match = _DIGEST.match(path)
    found = asset(match["stem"] + match["suffix"]) if match else None
    kept = FOR_EVER if found and match and found.digest == match["digest"] else FOR_A_WHILE
    found = found or asset(path)
    if found is None:
        raise Http404(f"No static file is called {path}.")
    accepts = request.headers.get("Accept-Encoding", "")
    tag = f'"{found.digest}"'
    if request.headers.get("If-None-Match") == tag:
        response = HttpResponse(status=HTTPStatus.NOT_MODIFIED)
    elif found.brotli and "br" in accepts:
        response = HttpResponse(found.brotli, content_type=found.content_type, headers={"Content-Encoding": "br"})
    elif found.gzip and "gzip" in accepts:
        response = HttpResponse(found.gzip, content_type=found.content_type, headers={"Content-Encoding": "gzip"})
    else:
        response = HttpResponse(found.body, content_type=found.content_type)
    response["ETag"], response["Cache-Control"], response["Vary"] = tag, kept, "Accept-Encoding"
    return response
