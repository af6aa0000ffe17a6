"""
Deprecation of routes: the headers, and the minimum notice.

Source: service document, Versioning, 4; RFC 9745; RFC 8594.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from typing import Final, TypeVar

NOTICE: Final = timedelta(days=90)
_Handler = TypeVar("_Handler", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Deprecation:
    """
    When a route was deprecated, when it will be removed, and where that is documented.

    Raises:
        ValueError: less than 90 days lie between the two.
    """

    since: date
    sunset: date
    explained_at: str

    def __post_init__(self) -> None:
        if self.sunset - self.since < NOTICE:
            message = f"sunset {self.sunset} is less than {NOTICE.days} days after deprecation {self.since}"
            raise ValueError(message)

    def header_lines(self) -> bytes:
        deprecated = int(_midnight(self.since).timestamp())
        sunset = format_datetime(_midnight(self.sunset), usegmt=True)
        return (
            f"deprecation: @{deprecated}\r\nsunset: {sunset}\r\n"
            f'link: <{self.explained_at}>; rel="deprecation"; type="text/html"\r\n'
        ).encode()


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


_marks: dict[Callable[..., object], Deprecation] = {}


def deprecated(*, since: date, sunset: date, explained_at: str) -> Callable[[_Handler], _Handler]:
    """
    Mark a route's handler as deprecated; importing it fails if the notice is too short.

    Raises:
        ValueError: less than 90 days lie between *since* and *sunset*.
    """
    mark = Deprecation(since, sunset, explained_at)

    def remember(handler: _Handler) -> _Handler:
        _marks[handler] = mark
        return handler

    return remember


def deprecation_of(handler: Callable[..., object]) -> Deprecation | None:
    """Return the deprecation of a route's handler, or None."""
    return _marks.get(handler)
