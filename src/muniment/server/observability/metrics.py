"""
Metrics: plain counters of this process, exposed to Prometheus alone or with those of the port's other processes.

Names, units and labels follow Prometheus' conventions; `docs/OBSERVABILITY.md` explains each of them.
"""

import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Self

import msgspec

from muniment import __version__
from muniment.server.process.shared_metrics import SharedMetrics

BOUNDS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
"""Any other method counts as one label value, so that clients cannot create series."""
Values = Mapping[tuple[str, ...], float]
"""Numbers by label values."""
_DURATION: Final = "muniment_request_duration_seconds"


class Sample(NamedTuple):
    """A value of a family."""

    name: str
    labels: dict[str, str]
    value: float


class Family(NamedTuple):
    """All samples of one metric name."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    description: str
    samples: list[Sample]

    @classmethod
    def of(cls, name: str, description: str, labels: tuple[str, ...], values: Values) -> Self:
        """Return numbers by *labels*; the suffix ``_total`` makes it a counter."""
        samples = [Sample(name, dict(zip(labels, key, strict=True)), value) for key, value in sorted(values.items())]
        return cls(name, "counter" if name.endswith("_total") else "gauge", description, samples)

    @classmethod
    def single(cls, name: str, description: str, value: float) -> Self:
        return cls.of(name, description, (), {(): value})


class Metrics:
    """Counters and durations of responses, and families that are read on demand."""

    def __init__(self) -> None:
        self.shared: SharedMetrics | None = None
        """The place where the processes of a port publish their metrics, so that any of them can expose all."""
        self._began = time.time()
        self.fast_path: dict[tuple[str, int], int] = defaultdict(int)
        """Responses of the fast path to GET by surface and status: one addition each, since they take microseconds."""
        self._requests: dict[tuple[str, ...], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS_S) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self._events: dict[str, int] = defaultdict(int)
        self._sources: list[Callable[[], Family]] = []
        self._of_instance: list[Callable[[], Iterable[Family]]] = []

    def answered(self, surface: str, method: str, status: int, seconds: float) -> None:
        """Count one response; status 0 means that the client left first."""
        self._requests[surface, method if method in METHODS else "other", str(status)] += 1
        self._buckets[surface][bisect_left(BOUNDS_S, seconds)] += 1
        self._seconds[surface] += seconds

    def count_event(self, event: str) -> None:
        """Count an event without a response, such as a dropped connection or an invalid request."""
        self._events[event] += 1

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        self._sources.append(lambda: Family.single(name, description, float(read())))  # a flag is a bool

    def gauges(self, name: str, description: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Expose the result of *read* as the gauge *name*: values by *label*."""
        self._sources.append(lambda: Family.of(name, description, (label,), {(key,): n for key, n in read().items()}))

    def counter(self, name: str, description: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Expose the result of *read* as the counter *name*: totals by *label*."""
        self._sources.append(lambda: Family.of(name, description, (label,), {(key,): n for key, n in read().items()}))

    def histogram(
        self, name: str, description: str, read: Callable[[], tuple[Sequence[int], float]], *, bounds: Sequence[float]
    ) -> None:
        """Expose the result of *read* as the histogram *name*: counts by *bounds* and beyond, and the sum."""
        self._sources.append(lambda: _histogram(name, description, *read(), bounds))

    def source_of_instance(self, read: Callable[[], Iterable[Family]]) -> None:
        """Expose the families of the instance, without the label ``process``."""
        self._of_instance.append(read)

    def share(self) -> None:
        """Publish the metrics of this process for the port's other processes, if there are any."""
        if self.shared is not None:
            self.shared.put(msgspec.json.encode(list(self._own())))

    def families(self) -> Iterable[tuple[str, Family]]:
        """Yield every family with its process; "" if the label ``process`` is not used."""
        if self.shared is None:
            for family in self._own():
                yield "", family
        else:
            self.share()  # so that a counter does not seem to decrease when another process is asked next
            for number, content in self.shared.all().items():
                for family in _decode(content):
                    yield str(number), family
        for read in self._of_instance:
            for family in read():
                yield "", family

    def _own(self) -> Iterable[Family]:
        requests: dict[tuple[str, ...], float] = {**self._requests}
        for (surface, status), count in self.fast_path.items():
            key = (surface, "GET", str(status))
            requests[key] = requests.get(key, 0) + count
        labels = ("surface", "method", "status")
        yield Family.of("muniment_requests_total", "Responses by surface, method and status.", labels, requests)
        yield self._durations()
        events: dict[tuple[str, ...], float] = {(event,): n for event, n in self._events.items()}
        yield Family.of("muniment_events_total", "Rejected requests and dropped connections.", ("event",), events)
        for read in self._sources:
            yield read()
        yield Family.of("muniment_build_info", "The running version.", ("version",), {(__version__,): 1})
        yield Family.single(
            "process_start_time_seconds", "Start time of the process in seconds since the epoch.", self._began
        )
        used = os.times()
        yield Family.single("process_cpu_seconds_total", "CPU time used.", used.user + used.system)
        yield Family.single("process_resident_memory_bytes", "Memory in use.", _resident_bytes())
        yield Family.single("process_open_fds", "Open files and connections.", _open_files())

    def _durations(self) -> Family:
        samples: list[Sample] = []
        fast_path: dict[str, int] = defaultdict(int)
        for (surface, _), number in self.fast_path.items():
            fast_path[surface] += number
        for surface in sorted({*self._buckets, *fast_path}):
            total = fast_path[surface]
            for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self._buckets[surface], strict=True):
                total += count
                samples.append(Sample(f"{_DURATION}_bucket", {"surface": surface, "le": bound}, total))
            samples.append(Sample(f"{_DURATION}_sum", {"surface": surface}, round(self._seconds[surface], 6)))
            samples.append(Sample(f"{_DURATION}_count", {"surface": surface}, total))
        return Family(
            _DURATION,
            "histogram",
            "Response time; responses of the fast path are not timed and count in the lowest bucket.",
            samples,
        )


def _histogram(name: str, description: str, counts: Sequence[int], total: float, bounds: Sequence[float]) -> Family:
    samples: list[Sample] = []
    reached = 0
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        reached += count
        samples.append(Sample(f"{name}_bucket", {"le": bound}, reached))
    samples.append(Sample(f"{name}_sum", {}, round(total, 6)))
    samples.append(Sample(f"{name}_count", {}, reached))
    return Family(name, "histogram", description, samples)


_decode = msgspec.json.Decoder(list[Family]).decode


def _resident_bytes() -> float:
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - a kernel file
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0.0  # not available on this system


def _open_files() -> float:
    try:
        return float(len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - a kernel folder
    except OSError:
        return 0.0  # not available on this system
