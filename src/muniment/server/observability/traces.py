"""
Traces of requests, tools and jobs, exported to an OpenTelemetry collector.

Imported only if a collector is configured. The SDK itself reads the OTEL_ variables for sampling, batches, headers and
the resource.

Source: decision 18; W3C Trace Context; OpenTelemetry's semantic conventions for HTTP.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from muniment import __version__
from muniment.kernel import tracing
from muniment.kernel.json import JSONMapping
from muniment.masking import masked

LAST_BATCH_S: Final = 3.0
"""Seconds that shutdown waits for the collector to take the last spans."""


class Traces:
    """Exports spans to the collector at *url*; ``/v1/traces`` is appended if missing."""

    def __init__(self, url: str) -> None:
        place = f"{socket.gethostname()}:{os.getpid()}"
        ours = {"service.name": "muniment", "service.version": __version__, "service.instance.id": place}
        resource = Resource.create().merge(Resource(ours)).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        endpoint = url if url.endswith("/v1/traces") else f"{url.rstrip('/')}/v1/traces"
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self._tracer = self._provider.get_tracer("muniment", __version__)
        self._failed = Status(StatusCode.ERROR)
        self._propagator = TraceContextTextMapPropagator()
        tracing.use(self._follow)

    @contextmanager
    def request(self, scope: JSONMapping, request_id: str) -> "Iterator[RequestSpan]":
        """Trace one request, as part of the trace named in its headers."""
        headers = {}
        for name, value in scope["headers"]:
            if name in {b"traceparent", b"tracestate"}:
                headers[name.decode("latin-1")] = value.decode("latin-1")
        attributes = {
            "http.request.method": scope["method"],
            "url.scheme": scope["scheme"],
            # Never the query, which belongs to the user; secrets in paths are masked.
            "url.path": masked(scope["path"]),
            "muniment.request_id": request_id,
        }
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield RequestSpan(span, scope["method"], self._failed)

    @contextmanager
    def _follow(self, name: str, attributes: tracing.Attributes) -> Iterator[None]:
        with self._tracer.start_as_current_span(
            name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except Exception as error:
                # The message of an exception may contain user input; its type does not.
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(self._failed)
                raise

    def close(self) -> None:
        tracing.use(None)
        last = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        last.start()
        last.join(LAST_BATCH_S)


class RequestSpan:
    """The span of one request."""

    def __init__(self, span: Span, method: str, failed: Status) -> None:
        self._span, self._method, self._failed = span, method, failed

    def answered(self, surface: str, status: int) -> None:
        self._span.update_name(f"{self._method} {surface}")
        self._span.set_attribute("muniment.surface", surface)
        if status:
            self._span.set_attribute("http.response.status_code", status)
        if not status or status >= 500:
            self._span.set_attribute("error.type", str(status or "client left"))
            self._span.set_status(self._failed)
