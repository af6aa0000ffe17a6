"""A website on loopback that serves prepared files over HTTP, to several connections at once."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from muniment.outbound.addresses import is_public

NAMES = {
    "logos.example": ["127.0.0.1"],
    "other.example": ["127.0.0.1"],
    "private.example": ["10.0.0.1"],
    "mixed.example": ["127.0.0.1", "169.254.169.254"],
}


class LogoSite:
    """
    The site.

    Attributes:
        files: what is at a path: the body, or a status and headers, or a function that answers by itself.
        asked: host and path of each request.
    """

    def __init__(self):
        self.files, self.asked, self.at_once, self.most_at_once = {}, [], {}, 0
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                host = self.headers["Host"]
                with site._lock:
                    site.asked.append(host + self.path)
                    site.at_once[host] = site.at_once.get(host, 0) + 1
                    site.most_at_once = max(site.most_at_once, site.at_once[host])
                try:
                    with contextlib.suppress(OSError):
                        site._answer(self)
                finally:
                    with site._lock:
                        site.at_once[host] -= 1

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.connection = {
            "resolve": lambda name, _: NAMES.get(name, []),
            "is_allowed": lambda address: address == "127.0.0.1" or is_public(address),
            "port": self.port,
        }
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _answer(self, request):
        found = self.files.get(request.path, (404, {}))
        if callable(found):
            found(request)
            return
        status, headers, body = (200, {}, found) if isinstance(found, bytes) else (*found, b"")
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
