"""Outages of what a process needs: logged when they begin and when they end, not at each attempt between."""

import logging
import time
from collections.abc import Callable

log = logging.getLogger("muniment.server")


class Outages:
    """The open outages of a process, by the name of the service."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[str, float | None] = {}

    @property
    def seconds(self) -> dict[str, float]:
        """Return how long each service has not answered; that of one which answers is 0."""
        now = self._clock()
        seconds = {}
        for service, began in list(self._began.items()):
            seconds[service] = now - began if began is not None else 0.0
        return seconds

    def failed(self, service: str, error: object) -> None:
        if self._began.get(service) is None:
            self._began[service] = self._clock()
            log.warning("the %s does not answer: %s", service, error, extra={"service": service})

    def answered(self, service: str) -> None:
        began = self._began.get(service)
        self._began[service] = None
        if began is not None:
            seconds = round(self._clock() - began, 1)
            log.warning("the %s answers again", service, extra={"service": service, "seconds": seconds})

    def forget(self, service: str) -> None:
        """Remove a service that is not asked any more."""
        self._began.pop(service, None)
