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
    STATEMENT_MS_A_MINUTE,
    Fairness,
)
from muniment.kernel.phrases.phrase import Joined, Phrase, marked
from muniment.server.app.threads import THREADS_A_HOLDER
from muniment.server.http.holders import MAX_CONNECTIONS_PER_ADDRESS
from muniment.server.http.incoming_body import DEADLINE_S

_BETWEEN: Final = "; "


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
    requests: str = marked("requests off")
    if limits.requests.is_enabled:
        requests = Phrase(
            "{rate:,} requests a minute, {burst:,} at once", rate=config.rate_limit, burst=limits.requests.burst
        )
    connections = Phrase("{most:,} connections", most=MAX_CONNECTIONS_PER_ADDRESS)
    if limits.new_connections.is_enabled:
        connections = Phrase(
            "{most:,} connections, {new:,} new ones a second",
            most=MAX_CONNECTIONS_PER_ADDRESS,
            new=NEW_CONNECTIONS_A_SECOND,
        )
    cards: str = marked("cards off")
    if limits.drawing.is_enabled:
        cards = Phrase(
            "{rate:g} s a minute of drawing cards, {burst:g} s at once",
            rate=DRAWING_MS_A_MINUTE / 1000,
            burst=limits.drawing.burst / 1000,
        )
    statements: str = marked("statements off")
    if limits.statements.is_enabled:
        statements = Phrase(
            "{rate:g} s a minute of statements in SQL, {burst:g} s at once",
            rate=STATEMENT_MS_A_MINUTE / 1000,
            burst=limits.statements.burst / 1000,
        )
    return Joined(
        _BETWEEN,
        (
            requests,
            connections,
            Phrase("bodies within {deadline} s", deadline=DEADLINE_S),
            Phrase("{count} client registrations an hour", count=limits.registrations.burst),
            Phrase("{count} pages at once", count=THREADS_A_HOLDER),
            cards,
            statements,
        ),
    )


def by_account(config: Config) -> str:
    """Describe the limits of an account, in each process."""
    limits = limits_of(config)
    changes: str = marked("changes off")
    history: str = marked("bytes of changes off")
    if limits.writes.is_enabled:
        changes = Phrase(
            "{rate:,} changes a minute, {burst:,} at once", rate=config.account_writes, burst=limits.writes.burst
        )
        history = Phrase(
            "{rate} KB of changes a minute, {burst:g} MB at once",
            rate=BYTES_A_MINUTE >> 10,
            burst=BURST_BYTES / (1 << 20),
        )
    cpu: str = marked("CPU time off")
    if limits.page_cpu.is_enabled:
        cpu = Phrase(
            "{rate:g} s of CPU a minute, {burst:g} s at once",
            rate=config.account_cpu_ms / 1000,
            burst=limits.page_cpu.burst / 1000,
        )
    calls: str = marked("tool calls off")
    if limits.credentials.is_enabled:
        calls = Phrase("{rate:,} tool calls a minute", rate=config.rate_limit)
    return Joined(
        _BETWEEN,
        (
            changes,
            history,
            cpu,
            calls,
            Phrase("{count} drafts", count=MAX_DRAFTS),
            Phrase("{count} unexecuted runs", count=MAX_UNEXECUTED_RUNS),
        ),
    )
