"""
Static files, served by the instance: addresses contain a digest of the content, so clients may cache them.

There is no build step and no folder to collect into: digests and compressed forms are made on first use.
"""

import hashlib
import mimetypes
import re
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.exceptions import SuspiciousFileOperation
from django.http import Http404, HttpRequest, HttpResponse

from muniment.kernel.http.public_pages import STAMP, PageStamp
from muniment.web.requests.conditional import Content

FOR_EVER = "public, max-age=31536000, immutable"
FOR_A_WHILE = "public, max-age=3600"
_TYPES = {".woff2": "font/woff2"}  # missing where the system has no list of types
_OWN_ADDRESS = re.compile(rb'url\("([^":]+)"\)')
_COMPRESSIBLE = re.compile(r"text/|application/(javascript|json|manifest\+json)|image/svg")
_DIGEST = re.compile(r"^(?P<stem>.+)\.(?P<digest>[0-9a-f]{12})(?P<suffix>\.[A-Za-z0-9]+)$")


@lru_cache(maxsize=512)
def asset(name: str) -> Content | None:
    """Read the static file *name*; its tag is the digest in its address. Return None when there is no such file."""
    try:
        found = finders.find(name)
    except SuspiciousFileOperation:
        return None
    if not found or not Path(found).is_file() or _is_private(name, Path(found)):
        return None
    body = Path(found).read_bytes()
    suffix = Path(str.__str__(name)).suffix  # from a template it is a SafeString, which pathlib cannot take alone
    content_type = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if suffix == ".css":
        body = _OWN_ADDRESS.sub(lambda match: _with_digest(name, match), body)
    tag = hashlib.sha256(body).hexdigest()[:12]
    if not _COMPRESSIBLE.match(content_type):
        return Content(body, tag, content_type, is_compressible=False)
    return Content(body, tag, f"{content_type}; charset=utf-8", is_immutable=True)


def _is_private(name: str, found: Path) -> bool:
    """Return whether a file is hidden, or a link that leaves the folder of an operator's own files."""
    if any(part.startswith(".") for part in name.split("/")):
        return True
    own = (Path(each) for each in settings.STATICFILES_DIRS)
    return any(found.is_relative_to(each) and not found.resolve().is_relative_to(each.resolve()) for each in own)


def _with_digest(name: str, match: re.Match[bytes]) -> bytes:
    """Return the ``url()`` of a file beside the style sheet *name* with the digest of that file in its address."""
    path = match[1].decode()
    found = asset(f"{name.rpartition('/')[0]}/{path}")
    stem, dot, suffix = path.rpartition(".")
    return f'url("{stem}.{found.tag}{dot}{suffix}")'.encode() if found and dot else match[0]


class HashedStorage(StaticFilesStorage):
    """Build addresses of static files with the digest of their content."""

    def url(self, name: str | None) -> str:
        """Return the address of *name*; an unknown name stays unchanged."""
        found = asset(name) if name else None
        if name is None or found is None:
            return super().url(name)
        stem, dot, suffix = name.rpartition(".")
        return super().url(f"{stem}.{found.tag}{dot}{suffix}" if dot else name)


def serve(request: HttpRequest, path: str) -> HttpResponse:
    """Serve ``/static/…``: cacheable for a year by its digest, for an hour by its plain name."""
    match = _DIGEST.match(path)
    found = asset(match["stem"] + match["suffix"]) if match else None
    kept = FOR_EVER if found and match and found.tag == match["digest"] else FOR_A_WHILE
    found = found or asset(path)
    if found is None:
        raise Http404(f"No static file is called {path}.")
    if not request.META.get("QUERY_STRING"):
        request.META.get("asgi.scope", {}).get("state", {})[STAMP] = PageStamp(
            found.tag.encode(), found.is_compressible
        )
    return found.respond(request, kept)
