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
        path = finders.find(name)
    except SuspiciousFileOperation:
        return None
    if not path or not Path(path).is_file() or _is_private(name, Path(path)):
        return None
    body = Path(path).read_bytes()
    suffix = Path(str.__str__(name)).suffix  # from a template it is a SafeString, which pathlib cannot take alone
    content_type = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if suffix == ".css":
        body = _OWN_ADDRESS.sub(lambda match: _with_digest(name, match), body)
    tag = hashlib.sha256(body).hexdigest()[:12]
    if not _COMPRESSIBLE.match(content_type):
        return Content(body, tag, content_type, is_compressible=False)
    return Content(body, tag, f"{content_type}; charset=utf-8", is_immutable=True)


def _is_private(name: str, path: Path) -> bool:
    """Return whether a file is hidden, or a link that leaves the folder of an operator's own files."""
    if any(part.startswith(".") for part in name.split("/")):
        return True
    for folder in map(Path, settings.STATICFILES_DIRS):
        if path.is_relative_to(folder) and not path.resolve().is_relative_to(folder.resolve()):
            return True
    return False


def _with_digest(name: str, match: re.Match[bytes]) -> bytes:
    """Return the ``url()`` of a file beside the style sheet *name* with the digest of that file in its address."""
    path = match[1].decode()
    content = asset(f"{name.rpartition('/')[0]}/{path}")
    stem, dot, suffix = path.rpartition(".")
    if content is None or not dot:
        return match[0]
    return f'url("{stem}.{content.tag}{dot}{suffix}")'.encode()


class HashedStorage(StaticFilesStorage):
    """Build addresses of static files with the digest of their content."""

    def url(self, name: str | None) -> str:
        """Return the address of *name*; an unknown name stays unchanged."""
        content = asset(name) if name else None
        if name is None or content is None:
            return super().url(name)
        stem, dot, suffix = name.rpartition(".")
        if dot:
            name = f"{stem}.{content.tag}.{suffix}"
        return super().url(name)


def serve(request: HttpRequest, path: str) -> HttpResponse:
    """Serve ``/static/…``: cacheable for a year by its digest, for an hour by its plain name."""
    match = _DIGEST.match(path)
    content, kept = None, FOR_A_WHILE
    if match:
        content = asset(match["stem"] + match["suffix"])
        # Another digest is that of an earlier or later version, whose address gets this one only for a while.
        if content and content.tag == match["digest"]:
            kept = FOR_EVER
    content = content or asset(path)
    if content is None:
        raise Http404(f"No static file is called {path}.")
    if not request.META.get("QUERY_STRING"):
        stamp = PageStamp(content.tag.encode(), content.is_compressible)
        request.META.get("asgi.scope", {}).get("state", {})[STAMP] = stamp
    return content.respond(request, kept)
