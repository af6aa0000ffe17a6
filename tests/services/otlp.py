"""An OpenTelemetry collector on loopback that stores what it receives."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from services.ports import wait_until


class Span(NamedTuple):
    """A received span; ids in hexadecimal."""

    name: str
    trace: str
    span: str
    parent: str
    kind: int
    failed: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


class Collector:
    """Accepts ``POST /v1/traces`` in protobuf."""

    def __init__(self) -> None:
        collector = self
        self.spans: list[Span] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
                    self.send_error(400)
                    return
                collector.take(body, dict(self.headers.items()))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        self.bodies.append(body)
        self.headers.append(headers)
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _plain(of_resource.resource.attributes)
            for of_scope in of_resource.scope_spans:
                self.spans += [
                    Span(
                        each.name,
                        each.trace_id.hex(),
                        each.span_id.hex(),
                        each.parent_span_id.hex(),
                        each.kind,
                        each.status.code == 2,
                        _plain(each.attributes),
                        resource,
                    )
                    for each in of_scope.spans
                ]

    def wait_for(self, name: str, within_s: float = 60, **attributes: Any) -> Span:
        """Wait for the latest span *name* with *attributes*, written with double underscores for dots."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        found: list[Span] = []

        def seen() -> bool:
            found[:] = [
                each for each in list(self.spans) if each.name == name and wanted.items() <= each.attributes.items()
            ]
            return bool(found)

        wait_until(seen, within_s=within_s, what=f"a span {name} {wanted}; there are {[s.name for s in self.spans]}")
        return found[-1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
