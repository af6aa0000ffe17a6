"""What happened in this process, as Prometheus text."""

import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from typing import Final

BOUNDS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters by surface and status, times by surface, and gauges that are read when asked for."""

    def __init__(self) -> None:
        self._began = time.time()
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS_S) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self._events: dict[str, int] = defaultdict(int)
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def answered(self, surface: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests[surface, status] += 1
        self._buckets[surface][bisect_left(BOUNDS_S, seconds)] += 1
        self._seconds[surface] += seconds

    def happened(self, event: str) -> None:
        """Count something that is no answer: a connection dropped, a request that could not be read."""
        self._events[event] += 1

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Show what *read* gives under *name*."""
        self._gauges[name] = (description, read)

    def text(self) -> bytes:
        """Give everything in the Prometheus text format."""
        lines = [
            "# HELP muniment_requests_total Answers by surface and status.",
            "# TYPE muniment_requests_total counter",
        ]
        lines += [
            f'muniment_requests_total{{surface="{surface}",status="{status}"}} {count}'
            for (surface, status), count in sorted(self._requests.items())
        ]
        lines += ["# HELP muniment_request_seconds Time to answer.", "# TYPE muniment_request_seconds histogram"]
        for surface, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), buckets, strict=True):
                total += count
                lines.append(f'muniment_request_seconds_bucket{{surface="{surface}",le="{bound}"}} {total}')
            lines.append(f'muniment_request_seconds_sum{{surface="{surface}"}} {self._seconds[surface]:.6f}')
            lines.append(f'muniment_request_seconds_count{{surface="{surface}"}} {total}')
        lines += ["# HELP muniment_events_total What was refused or dropped.", "# TYPE muniment_events_total counter"]
        lines += [f'muniment_events_total{{event="{event}"}} {n}' for event, n in sorted(self._events.items())]
        for name, (description, read) in {**self._gauges, **_process(self._began)}.items():
            lines += [f"# HELP {name} {description}", f"# TYPE {name} gauge", f"{name} {read():.10g}"]
        return ("\n".join(lines) + "\n").encode()


def _process(began: float) -> dict[str, tuple[str, Callable[[], float]]]:
    used = os.times()
    return {
        "process_start_time_seconds": ("Start of the process since the epoch.", lambda: began),
        "process_cpu_seconds_total": ("CPU time used.", lambda: used.user + used.system),
        "process_resident_memory_bytes": ("Memory in use.", _resident_bytes),
    }


def _resident_bytes() -> float:
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - a file of the kernel
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0.0  # not on this system
