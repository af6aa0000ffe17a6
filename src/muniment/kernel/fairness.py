"""
Fairness: every limit of a process, so that no client and no account takes the registry from the others.

Limits by address protect what anyone may use; limits by account protect what costs more. They are counted in memory,
in each process: one token bucket for each client, refilled as time passes.
"""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Literal, NamedTuple

import msgspec

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import TooMany

MAX_CLIENTS: Final = 50_000
"""Maximum buckets of a generation: the next one drops the older generation, so that memory stays bounded."""
OVERDRAFT: Final = 1.0
"""The most that a cost charged afterwards may overdraw a bucket, in depths of the bucket."""
_ROUNDING: Final = 1e-6
_ceil: Final = math.ceil


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The result of a rate limit check: whether the request is allowed, and how much remains. Each request has one."""

    allowed: bool
    remaining: int
    reset_s: int
    """Seconds until the bucket is full again."""
    retry_after_s: int
    """Seconds to wait, as clients are told; 0 when the request is allowed."""
    wait_s: float = 0.0
    """The same without rounding."""


class Limiter:
    """
    Token buckets by client: each holds *burst* units and refills at *per_minute*. A unit is a request by default.

    A bucket unused for its whole refill time is full and can be forgotten. Two generations of buckets rotate at
    that interval, so nothing needs sweeping. A cost that is known only afterwards may overdraw a bucket, by at most
    its depth.

    Args:
        per_minute: sustained units per minute; 0 disables the limit.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self,
        per_minute: float,
        burst: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_clients: int = MAX_CLIENTS,
    ) -> None:
        self.is_enabled = per_minute > 0
        self.burst = max(1, burst)
        self._interval_s = 60 / per_minute if per_minute else 0.0
        self._depth_s = self.burst * self._interval_s
        self._lowest_s = self._depth_s * (1 + OVERDRAFT)
        self.window_s = max(1, math.ceil(self._depth_s))
        self._clock = clock
        self._max_clients = max_clients
        self._young: dict[str, float] = {}
        self._old: dict[str, float] = {}
        self._rotated_at = clock()
        self._lock = threading.Lock()

    def take(self, client: str, cost: float = 1.0) -> Verdict:
        """Charge *client*, or refuse if less than *cost* remains. A full bucket allows a cost above its size."""
        if not self.is_enabled:
            return _UNLIMITED
        with self._lock:
            now = self._clock()
            deficit_s = self._deficit_s(client, now)
            ahead_s = deficit_s + cost * self._interval_s
            excess_s = ahead_s - self._depth_s
            if excess_s > _ROUNDING:
                if deficit_s > _ROUNDING:
                    # A cost above the size of the bucket waits until it is full, and for no longer.
                    return self._refusal(deficit_s, min(excess_s, deficit_s))
                ahead_s = min(ahead_s, self._lowest_s)
            self._keep(client, now + ahead_s, now)
        return self._verdict(ahead_s)

    def charge(self, client: str, cost: float) -> Verdict:
        """Charge a *cost* that has been spent already. It may overdraw the bucket, which refuses until refilled."""
        if not self.is_enabled:
            return _UNLIMITED
        with self._lock:
            now = self._clock()
            ahead_s = min(self._deficit_s(client, now) + cost * self._interval_s, self._lowest_s)
            self._keep(client, now + ahead_s, now)
            return self._verdict(ahead_s)

    def refund(self, client: str) -> Verdict:
        """Undo one :meth:`take` of *client*, for a request that is not charged."""
        if not self.is_enabled:
            return _UNLIMITED
        with self._lock:
            now = self._clock()
            ahead_s = max(0.0, self._deficit_s(client, now) - self._interval_s)
            self._keep(client, now + ahead_s, now)
            return self._verdict(ahead_s)

    def peek(self, client: str) -> Verdict:
        """Return what remains; refuse only while the bucket is overdrawn."""
        if not self.is_enabled:
            return _UNLIMITED
        with self._lock:
            ahead_s = self._deficit_s(client, self._clock())
            excess_s = ahead_s - self._depth_s
            return self._verdict(ahead_s) if excess_s <= _ROUNDING else self._refusal(ahead_s, excess_s)

    def refusal(self, client: str) -> Verdict | None:
        """Return what :meth:`take` would refuse *client* with; None if it would charge."""
        if not self.is_enabled:
            return None
        with self._lock:
            deficit_s = self._deficit_s(client, self._clock())
            excess_s = deficit_s + self._interval_s - self._depth_s
            return self._refusal(deficit_s, min(excess_s, deficit_s)) if excess_s > _ROUNDING else None

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _deficit_s(self, client: str, now: float) -> float:
        """Return how many seconds of refilling the client's bucket needs to be full."""
        full_at = self._young.get(client)
        if full_at is None:
            full_at = self._old.get(client, now)
        return full_at - now if full_at > now else 0.0

    def _keep(self, client: str, full_at: float, now: float) -> None:
        if now - self._rotated_at > self._lowest_s or len(self._young) >= self._max_clients:
            # Buckets that were not used for this long are full again, so they can be dropped.
            self._old, self._young, self._rotated_at = self._young, {}, now
        self._young[client] = full_at

    @staticmethod
    def _refusal(deficit_s: float, excess_s: float) -> Verdict:
        retry_after_s = max(1, _ceil(excess_s))
        return Verdict(False, 0, _ceil(deficit_s), retry_after_s, excess_s)  # noqa: FBT003 - keywords cost time

    def _verdict(self, ahead_s: float) -> Verdict:
        remaining = int((self._depth_s - ahead_s) / self._interval_s + _ROUNDING)
        return Verdict(True, max(0, remaining), _ceil(ahead_s), 0)  # noqa: FBT003 - keywords cost time


_UNLIMITED: Final = Verdict(allowed=True, remaining=0, reset_s=0, retry_after_s=0)


LimitName = Literal[
    "new_connections",
    "requests",
    "assets",
    "probes",
    "credentials",
    "unauthenticated",
    "registrations",
    "visitor_sessions",
    "writes",
    "written_bytes",
    "page_cpu",
    "body_time",
    "drawing",
    "statements",
]
BURST_OF_WRITES: Final = 2
"""Minutes' worth of changes that an account may make at once."""
BURST_OF_CPU: Final = 5
"""Minutes' worth of CPU time that an account's pages may use at once: a save of the largest listing fits."""
BYTES_A_MINUTE: Final = 128 << 10
BURST_BYTES: Final = 7 << 19
"""Bytes of history. Replacing the longest list costs about 2 MB, and a change of single rows a few hundred bytes."""
MAX_DRAFTS: Final = 20
"""Listings of an account that were never published; more of them from before stay."""
MAX_UNEXECUTED_RUNS: Final = 50
"""Report runs of an account that are prepared and neither executed, canceled nor expired."""
REGISTRATIONS_AN_HOUR: Final = 20
VISITOR_SESSIONS_AN_HOUR: Final = 120
BURST_OF_VISITOR_SESSIONS: Final = 60
NEW_CONNECTIONS_A_SECOND: Final = 50
BURST_OF_CONNECTIONS: Final = 512
"""New connections at once from an address, which may hold 256; one connection for each request meets other limits."""
ASSETS_OF_A_PAGE: Final = 4
PROBES_A_MINUTE: Final = 300
BURST_OF_PROBES: Final = 100
DRAWING_MS_A_MINUTE: Final = 2_000
BURST_OF_DRAWING: Final = 5
"""Minutes' worth of drawing that an address may use at once: about 200 cards."""
STATEMENT_MS_A_MINUTE: Final = 2_000
BURST_OF_STATEMENTS: Final = 5
"""Minutes' worth of statements of an address or an account at once: some 1,000 typical ones, or 20 of the longest."""
BODY_SECONDS_A_MINUTE: Final = 600
"""Seconds per minute that the request bodies of an address may take together. Most arrive at once and cost nothing."""


PAUSE: Final = "muniment.pause_s"
"""The key in a request's state of the seconds in which its connection is not read: its address is over a limit."""


class _Words(NamedTuple):
    """The error that a client over a limit receives; the hint gets the seconds to wait."""

    message: str
    hint: str


_WORDS: Final[dict[LimitName, _Words]] = {
    "new_connections": _Words(
        "Too many new connections from this address.",
        "Wait {wait_s} s, then send several requests over one connection (keep-alive).",
    ),
    "requests": _Words(
        "Too many requests from this address.",
        "Wait {wait_s} s; larger pages (pageSize=100) and If-None-Match need fewer requests.",
    ),
    "assets": _Words(
        "Too many requests for static files from this address.", "Wait {wait_s} s; keep files in a cache."
    ),
    "probes": _Words("Too many health checks from this address.", "Wait {wait_s} s, then check again."),
    "credentials": _Words(
        "Too many tool calls by this account.", "Wait {wait_s} s, then call again; larger pages need fewer calls."
    ),
    "unauthenticated": _Words(
        "Too many requests without a valid token from this address.",
        "Wait {wait_s} s, then call with a valid token; see /manage/tokens.",
    ),
    "registrations": _Words(
        "Too many client registrations from this address.", "Wait {wait_s} s, or reuse the client_id you have."
    ),
    "visitor_sessions": _Words(
        "Too many visits were started from your network.", "Allow cookies, wait {wait_s} s, then try again."
    ),
    "writes": _Words(
        "Too many changes by this account. Nothing was changed.",
        "Wait {wait_s} s, then try again; combine changes of one listing into one.",
    ),
    "written_bytes": _Words(
        "This account has changed too much text in a short time. Nothing was changed.",
        "Wait {wait_s} s, then try again; send smaller changes.",
    ),
    "page_cpu": _Words(
        "The pages of this account have used too much computing time.", "Wait {wait_s} s, then try again."
    ),
    "drawing": _Words("Too many cards were drawn for this address.", "Wait {wait_s} s, then try again."),
    "statements": _Words(
        "Your statements and CSV files have used too much computing time.",
        "Wait {wait_s} s, then try again; the export files and repeated statements are free.",
    ),
    "body_time": _Words(
        "The requests of this address have arrived too slowly.", "Wait {wait_s} s, then send each request at once."
    ),
}


class Fairness:
    """
    The limits of one process.

    Args:
        rate: requests per minute, by address, and by account at the owner tool server; 0 disables these limits.
        burst: requests at once.
        writes: changes per minute by account; 0 disables the limit, also that of their bytes.
        page_cpu_ms: milliseconds of CPU time per minute that an account's pages may use; 0 disables the limit.
    """

    def __init__(self, *, rate: int = 0, burst: int = 1, writes: int = 0, page_cpu_ms: int = 0) -> None:
        self.new_connections = Limiter(NEW_CONNECTIONS_A_SECOND * 60 if rate else 0, BURST_OF_CONNECTIONS)
        """Connections by address, when they are opened; a trusted proxy opens any number."""
        self.requests = Limiter(rate, burst)
        """Requests by client address."""
        self.assets = Limiter(rate * ASSETS_OF_A_PAGE, burst * ASSETS_OF_A_PAGE)
        """Static files by address: browsers request several with a page, and keep them."""
        self.probes = Limiter(PROBES_A_MINUTE if rate else 0, BURST_OF_PROBES)
        """Health checks by address: they must not use up the requests of the same address."""
        self.unauthenticated = Limiter(rate, burst)
        """Requests to the owner tool server without a valid credential, by client address."""
        self.credentials = Limiter(rate, burst)
        """Requests to the owner tool server, by account."""
        self.registrations = Limiter(REGISTRATIONS_AN_HOUR / 60 if rate else 0, REGISTRATIONS_AN_HOUR)
        """Client registrations by address, failed ones included."""
        self.visitor_sessions = Limiter(VISITOR_SESSIONS_AN_HOUR / 60 if rate else 0, BURST_OF_VISITOR_SESSIONS)
        """Sessions of visitors without an account by address, when they begin."""
        self.writes = Limiter(writes, writes * BURST_OF_WRITES)
        """Changes by account: tool calls that are not read-only, submitted forms and uploads."""
        self.written_bytes = Limiter(BYTES_A_MINUTE if writes else 0, BURST_BYTES)
        """Bytes that an account's changes add to listings and their history."""
        self.page_cpu = Limiter(page_cpu_ms, page_cpu_ms * BURST_OF_CPU)
        """Milliseconds of CPU time of an account's pages, charged afterwards."""
        self.body_time = Limiter(BODY_SECONDS_A_MINUTE if rate else 0, BODY_SECONDS_A_MINUTE)
        """Seconds that request bodies of an address took, charged afterwards; uploads have a minimum rate instead."""
        self.drawing = Limiter(DRAWING_MS_A_MINUTE if rate else 0, DRAWING_MS_A_MINUTE * BURST_OF_DRAWING)
        """Milliseconds of CPU time for the cards that an address has drawn, charged afterwards."""
        self.statements = Limiter(STATEMENT_MS_A_MINUTE if rate else 0, STATEMENT_MS_A_MINUTE * BURST_OF_STATEMENTS)
        """Milliseconds of CPU time for the statements and CSV files of an address or an account, charged afterwards."""
        self.refused: dict[str, int] = defaultdict(int)
        """Refusals by the name of the limit."""
        self._lock = threading.Lock()

    def take(self, name: LimitName, client: str | int, cost: float = 1.0) -> Verdict:
        """Charge *client*, an address or an account's key; raise TooMany if less than *cost* remains."""
        limiter: Limiter = getattr(self, name)
        return self._allowed(name, limiter.take(str(client), cost))

    def check(self, name: LimitName, client: str | int) -> Verdict:
        """Raise TooMany while the limit is overdrawn."""
        limiter: Limiter = getattr(self, name)
        return self._allowed(name, limiter.peek(str(client)))

    def refuse(self, name: LimitName, verdict: Verdict, state: dict[str, object] | None = None) -> TooMany:
        """
        Count a refusal and return its problem.

        Args:
            state: the state of the request, if its client address is refused: its connection is not read for a while.
        """
        self.count_refusal(name)
        if state is not None:
            state[PAUSE] = verdict.wait_s
        return too_many(name, verdict.retry_after_s)

    def count_refusal(self, name: str) -> None:
        with self._lock:
            self.refused[name] += 1

    def _allowed(self, name: LimitName, verdict: Verdict) -> Verdict:
        if verdict.allowed:
            return verdict
        raise self.refuse(name, verdict)


def too_many(name: LimitName, wait_s: int) -> TooMany:
    words = _WORDS[name]
    return TooMany(words.message, Phrase(words.hint, wait_s=wait_s), retry_after_s=wait_s)


class Holder(NamedTuple):
    """
    Who a request is answered for: an account by its key, or the visitors of an address.

    Args:
        may_hash: whether the request may hash a password, which takes long and is done one at a time.
        has_asked: whether it is a page that shows the answer to a statement: all of these together are one holder.
    """

    address: str
    account: str = ""
    may_hash: bool = False
    has_asked: bool = False


holder: ContextVar[Holder | None] = ContextVar("holder", default=None)
"""The holder of the request that is being answered; None for work of the process itself."""
ACCOUNT: Final = "muniment.account"
"""The key in the WSGI environment of the signed-in account."""
_current = Fairness()


def current() -> Fairness:
    """Return the limits of this process. Without a server nothing is limited."""
    return _current


def use(fairness: Fairness) -> Fairness:
    """Make *fairness* the limits of this process."""
    global _current  # noqa: PLW0603 - one set of limits per process
    _current = fairness
    return fairness
