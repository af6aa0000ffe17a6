"""Telemetry without the SDK: whether it is installed, and which requests are sampled."""

import contextlib
import importlib.util
from typing import Final

_SAMPLED: Final = 1


def lacking() -> str:
    """Return what is missing to export traces, and how to install it; "" if nothing is."""
    with contextlib.suppress(ModuleNotFoundError):
        if importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None:
            return ""
    return 'MUNIMENT_OTLP_URL is set, but OpenTelemetry is not installed: pip install "muniment[telemetry]".'


def is_sampled(traceparent: bytes) -> bool:
    """Return whether the caller records the trace, according to its traceparent header."""
    try:
        return bool(int(traceparent[53:55], 16) & _SAMPLED)
    except ValueError:
        return False
