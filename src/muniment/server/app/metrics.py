"""
What happened, as Prometheus text: in this process, or in every process that serves the port.

Names, units and labels follow Prometheus' conventions; `docs/OBSERVABILITY.md` explains each of them.
"""

import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from muniment import __version__
from muniment.server.process.shared_metrics import SharedMetrics, together

BOUNDS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
"""Any other is counted as one, so that clients cannot make up series."""


class Family(NamedTuple):
    """Everything under one name: values by those of the labels."""

    name: str
    kind: Literal["counter", "gauge"]
    description: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]


class Metrics:
    """Counters of answers, their times, and families that are read when asked for."""

    def __init__(self) -> None:
        self.figures: SharedMetrics | None = None
        """What the processes of a port share: then each is told by its label, whoever of them is asked."""
        self._began = time.time()
        self.at_once: dict[int, int] = defaultdict(int)
        """Answers of the express lane by status: one addition each, since the whole answer takes microseconds."""
        self._requests: dict[tuple[str, ...], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS_S) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self._events: dict[str, int] = defaultdict(int)
        self._sources: list[Callable[[], Iterable[Family]]] = []
        self._of_instance: list[Callable[[], Iterable[Family]]] = []

    def answered(self, surface: str, method: str, status: int, seconds: float) -> None:
        """Count one answer; status 0 is a client that left before it."""
        self._requests[surface, method if method in METHODS else "other", str(status)] += 1
        self._buckets[surface][bisect_left(BOUNDS_S, seconds)] += 1
        self._seconds[surface] += seconds

    def happened(self, event: str) -> None:
        """Count something that is no answer: a connection dropped, a request that could not be read."""
        self._events[event] += 1

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Show what *read* gives under *name*."""
        self._sources.append(lambda: [_single(name, "gauge", description, read())])

    def counter(self, name: str, description: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Show what *read* gives under *name*: totals by the values of *label*."""
        self._sources.append(
            lambda: [Family(name, "counter", description, (label,), {(key,): n for key, n in read().items()})]
        )

    def source(self, read: Callable[[], Iterable[Family]]) -> None:
        """Show the families that *read* gives."""
        self._sources.append(read)

    def source_of_instance(self, read: Callable[[], Iterable[Family]]) -> None:
        """Show the families that *read* gives once, for all processes: they are of none."""
        self._of_instance.append(read)

    def share(self) -> None:
        """Leave the figures of this process for the others, if there are any."""
        if self.figures is not None:
            self.figures.put("\n".join(self._own()))

    def text(self) -> bytes:
        """Give everything in the Prometheus text format."""
        if self.figures is None:
            lines = self._own()
        else:
            self.share()  # told as the others would tell it a moment later: a counter never seems to go back
            lines = together(self.figures.all())
        for read in self._of_instance:
            for family in read():
                lines += _lines(family)
        return ("\n".join(lines) + "\n").encode()

    def _own(self) -> list[str]:
        requests: dict[tuple[str, ...], float] = {**self._requests}
        for status, count in self.at_once.items():
            key = ("api", "GET", str(status))
            requests[key] = requests.get(key, 0) + count
        lines = _lines(
            Family(
                "muniment_requests_total",
                "counter",
                "Answers by surface, method and status.",
                ("surface", "method", "status"),
                requests,
            )
        )
        lines += self._durations()
        events: dict[tuple[str, ...], float] = {(event,): n for event, n in self._events.items()}
        lines += _lines(Family("muniment_events_total", "counter", "What was refused or dropped.", ("event",), events))
        for read in (*self._sources, self._process):
            for family in read():
                lines += _lines(family)
        return lines

    def _durations(self) -> list[str]:
        name = "muniment_request_duration_seconds"
        lines = [
            f"# HELP {name} Time to answer; the express lane's count as the least, untimed.",
            f"# TYPE {name} histogram",
        ]
        at_once = sum(self.at_once.values())
        for surface in sorted({*self._buckets, *(["api"] if at_once else [])}):
            total = at_once if surface == "api" else 0
            for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self._buckets[surface], strict=True):
                total += count
                lines.append(f'{name}_bucket{{surface="{surface}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{surface="{surface}"}} {self._seconds[surface]:.6f}')
            lines.append(f'{name}_count{{surface="{surface}"}} {total}')
        return lines

    def _process(self) -> Iterable[Family]:
        used = os.times()
        yield Family("muniment_build_info", "gauge", "The version that runs.", ("version",), {(__version__,): 1})
        yield _single("process_start_time_seconds", "gauge", "Start of the process since the epoch.", self._began)
        yield _single("process_cpu_seconds_total", "counter", "CPU time used.", used.user + used.system)
        yield _single("process_resident_memory_bytes", "gauge", "Memory in use.", _resident_bytes())
        yield _single("process_open_fds", "gauge", "Open files and connections.", _open_files())


def _single(name: str, kind: Literal["counter", "gauge"], description: str, value: float) -> Family:
    return Family(name, kind, description, (), {(): value})


def _lines(family: Family) -> list[str]:
    """Give the lines of one family; the two first stand also where there is nothing to show yet."""
    lines = [f"# HELP {family.name} {family.description}", f"# TYPE {family.name} {family.kind}"]
    for values, number in sorted(family.values.items()):
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(family.labels, values, strict=True))
        lines.append(f"{family.name}{{{labels}}} {number:.15g}" if labels else f"{family.name} {number:.15g}")
    return lines


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _resident_bytes() -> float:
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - a file of the kernel
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0.0  # not on this system


def _open_files() -> float:
    try:
        return float(len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - a folder of the kernel
    except OSError:
        return 0.0  # not on this system
