"""What is signed and not sealed, and for how long it is accepted: a former key must stay as long."""

from datetime import timedelta

_lifetimes: dict[str, timedelta] = {}


def register(what: str, lifetime: timedelta) -> None:
    _lifetimes[what] = lifetime


def longest() -> timedelta:
    return max(_lifetimes.values(), default=timedelta())
