"""Rate limiter: one token bucket per client, with an injectable clock."""

import math
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

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
