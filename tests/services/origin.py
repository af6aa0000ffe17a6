"""A registry on loopback as a mirror sees it: its exports and changes, honest until a test replaces an answer."""

import gzip
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

NAMES = {"company": "companies", "person": "people", "framework": "frameworks"}
AT = "2026-11-01T00:00:00.000000Z"


class Given(NamedTuple):
    """An answer: its status, headers and body."""

    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


def company(slug: str, name: str = "", **members: Any) -> dict[str, Any]:
    described = {"id": slug, "name": name or slug.title(), "raising": False, "updatedAt": AT, **members}
    lists: dict[str, Any] = {name: [] for name in ("positions", "proposals", "capTable", "fundingRounds")}
    return {"company": described, "distribution": None, **lists}


def person(slug: str, name: str = "") -> dict[str, Any]:
    return {"slug": slug, "name": name or slug.title(), "bio": "", "positions": [], "updatedAt": AT}


def framework(slug: str) -> dict[str, Any]:
    named = {"frameworkId": slug, "frameworkName": slug.title(), "description": "", "kind": "score", "isOpen": False}
    return {**named, "company": None, "updatedAt": AT}


class OriginSite:
    """
    The registry, in a context.

    Attributes:
        answers: by path, a function of the request and the honest answer that returns another one, or answers itself.
        asked: the path and query of each request.
        feed_id, salt: what the feed is called, and what its chain begins with.
    """

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], bytes] = {}
        self.changes: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[Any, Given], Given | None]] = {}
        self.asked: list[str] = []
        self.feed_id, self.salt = "cafe", "one"
        self.oldest = 1
        self._exports: dict[str, bytes] = {}
        self._listed: list[dict[str, Any]] = []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are written apart

            def do_GET(self) -> None:
                site.asked.append(self.path)
                path = urlsplit(self.path).path
                given: Given | None = site._answer(self)
                if path in site.answers:
                    given = site.answers[path](self, given or Given(404, b"{}"))
                if given is None:
                    return
                try:
                    self.send_response(given.status)
                    for name, value in {"Content-Length": str(len(given.body)), **given.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(given.body)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def edition(self) -> int:
        return len(self.changes)

    def publish(self, kind: str, key: str, document: Any, *, at: str = AT) -> None:
        """Publish a document: an object, or its bytes."""
        change = "updated" if (kind, key) in self.documents else "published"
        self.documents[kind, key] = document if isinstance(document, bytes) else json.dumps(document).encode()
        self._record(kind, key, change, at)

    def unlist(self, kind: str, key: str, *, at: str = AT) -> None:
        self.documents.pop((kind, key), None)
        self._record(kind, key, "unlisted", at)

    def _record(self, kind: str, key: str, change: str, at: str) -> None:
        sequence = len(self.changes) + 1
        self.changes.append({"sequence": sequence, "kind": kind, "id": key, "change": change, "at": at})

    def chain(self, sequence: int) -> str:
        return hashlib.sha256(f"{self.salt} {sequence}".encode()).hexdigest()

    def export(self) -> None:
        """Make the export files of the present edition."""
        self._listed = []
        for kind, name in NAMES.items():
            documents = [document for (each, _), document in self.documents.items() if each == kind]
            if kind == "framework":
                documents = [b'{"framework":%b}' % document for document in documents]
            self.put_export(name, b"".join(line + b"\n" for line in documents), len(documents))

    def put_export(self, name: str, content: bytes, rows: int, *, packed: bytes | None = None) -> None:
        body = gzip.compress(content, mtime=0) if packed is None else packed
        sha256 = hashlib.sha256(body).hexdigest()
        file = f"{name}-{self.edition}-{sha256[:8]}.jsonl.gz"
        self._exports[f"/exports/{file}"] = body
        self._listed = [each for each in self._listed if not each["name"].startswith(f"{name}-")]
        told = {"rows": rows, "bytes": len(body), "sha256": sha256, "edition": self.edition, "at": AT}
        # A mirror fetches the file by its name, from the address that its operator gave.
        self._listed.append({"name": file, "url": "http://169.254.169.254/stolen", **told})

    def _answer(self, request: Any) -> Given:
        parts = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        edition = {"X-Muniment-Edition": str(self.edition)}
        if parts.path == "/api/v1/exports":
            return Given(200, json.dumps({"data": self._listed}).encode(), edition)
        if parts.path == "/api/v1/changes":
            return Given(*self._page(query), edition)
        if parts.path in self._exports:
            return self._file(self._exports[parts.path], request.headers.get("Range"))
        for (kind, key), document in self.documents.items():
            if parts.path == f"/api/v1/{NAMES[kind]}/{key}":
                return Given(200, b'{"data":%b}' % document)
        return Given(404, b"{}")

    @staticmethod
    def _file(body: bytes, asked: str | None) -> Given:
        match = re.fullmatch(r"bytes=(\d+)-", asked or "")
        return Given(206, body[int(match[1]) :]) if match else Given(200, body)

    def _page(self, query: dict[str, str]) -> tuple[int, bytes]:
        after, limit = int(query["after"]), int(query["limit"])
        has_other_past = "chain" in query and query["chain"] != self.chain(after)
        if after > self.edition or after < self.oldest - 1 or has_other_past:
            return 400, b'{"error": {}}'
        rows = [{**row, "chain": self.chain(row["sequence"])} for row in self.changes[after : after + limit]]
        encoded = [self._encoded(row, has_document="include" in query) for row in rows]
        last = after + len(rows)
        told = {"nextAfter": last, "chain": self.chain(last), "feedId": self.feed_id, "head": self.edition}
        body = json.dumps(told)[:-1].encode() + b', "data": [%b]}' % b",".join(encoded)
        return 200, body

    def _encoded(self, row: dict[str, Any], *, has_document: bool) -> bytes:
        encoded = json.dumps(row).encode()
        if not has_document:
            return encoded
        document = self.documents.get((row["kind"], row["id"]), b"null")
        return encoded if len(document) > 256 << 10 else encoded[:-1] + b', "document": %b}' % document
