"""The limits of a process, from its settings, and how `muniment doctor` describes them."""

from typing import Final

from muniment.config import Config
from muniment.kernel.fairness import (
    BURST_BYTES,
    BYTES_A_MINUTE,
    DRAWING_MS_A_MINUTE,
    MAX_DRAFTS,
    MAX_UNEXECUTED_RUNS,
    NEW_CONNECTIONS_A_SECOND,
    Fairness,
)
from muniment.server.app.turns import THREADS_A_HOLDER

_OFF: Final = "off"


def limits_of(config: Config) -> Fairness:
    return Fairness(
        rate=config.rate_limit,
        burst=config.rate_burst,
        writes=config.account_writes,
        page_cpu_ms=config.account_cpu_ms,
    )


def by_address(config: Config) -> str:
    """Describe the limits of a client address, an IPv6 network of 64 bits, in each process."""
    limits = limits_of(config)
    requests = f"{config.rate_limit:,} requests a minute, {limits.requests.burst:,} at once"
    connections = f"{config.max_connections_per_address:,} connections"
    if limits.new_connections.is_enabled:
        connections += f", {NEW_CONNECTIONS_A_SECOND} new ones a second"
    registrations = f"{limits.registrations.burst} client registrations an hour"
    cards = f"cards {_OFF}"
    if limits.drawing.is_enabled:
        cards = f"{DRAWING_MS_A_MINUTE / 1000:g} s a minute of drawing cards, {limits.drawing.burst / 1000:g} s at once"
    shown = (
        requests if limits.requests.is_enabled else f"requests {_OFF}",
        connections,
        f"bodies within {config.body_deadline_s} s",
        registrations,
        f"{THREADS_A_HOLDER} pages at once",
        cards,
    )
    return "; ".join(shown)


def by_account(config: Config) -> str:
    """Describe the limits of an account, in each process."""
    limits = limits_of(config)
    changes, history, cpu = f"changes {_OFF}", f"bytes of changes {_OFF}", f"CPU time {_OFF}"
    if limits.writes.is_enabled:
        changes = f"{config.account_writes:,} changes a minute, {limits.writes.burst:,} at once"
        history = f"{BYTES_A_MINUTE >> 10} KB of changes a minute, {BURST_BYTES / (1 << 20):g} MB at once"
    if limits.page_cpu.is_enabled:
        cpu = f"{config.account_cpu_ms / 1000:g} s of CPU a minute, {limits.page_cpu.burst / 1000:g} s at once"
    calls = f"{config.rate_limit:,} tool calls a minute" if limits.credentials.is_enabled else f"tool calls {_OFF}"
    counts = f"{MAX_DRAFTS} drafts", f"{MAX_UNEXECUTED_RUNS} unexecuted runs"
    return "; ".join((changes, history, cpu, calls, *counts))
