"""Notice for the operator: a trusted proxy sends another forwarding header than the configured one."""

import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

FILE: Final = "forwarding.json"
"""In the data folder, so that `muniment doctor` can read what the server has seen."""
RENEWED_AFTER_S: Final = 3600.0
VALID_FOR_S: Final = 7 * 86_400.0
log = logging.getLogger("muniment.server")


class OtherHeader(NamedTuple):
    """What was seen: *proxy* sent the header *found* without *expected*, last *at* that time in seconds."""

    proxy: str
    found: str
    expected: str
    at: float

    @property
    def advice(self) -> str:
        return (
            f"the proxy {self.proxy} sends {self.found} without {self.expected}, so all its clients share one rate"
            f" limit: if the proxy itself writes {self.found}, set MUNIMENT_FORWARDED_HEADER={self.found}; otherwise"
            f" make it write {self.expected}"
        )

    @classmethod
    def read(cls, folder: Path, expected: str, now: float) -> Self | None:
        """Return what a server of this data folder has seen within a week, unless the setting has changed since."""
        try:
            seen = msgspec.json.decode((folder / FILE).read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError):
            return None
        return seen if seen.expected == expected and now - seen.at < VALID_FOR_S else None


class ForwardingNotice:
    """Logs the first such request of the process, and keeps a file for `doctor` current."""

    def __init__(self, folder: Path, expected: str, *, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._expected, self._clock = folder, expected, clock
        self._renew_at = 0.0
        self._is_logged = False

    def __call__(self, proxy: str, found: str) -> None:
        now = self._clock()
        if now < self._renew_at:
            return
        self._renew_at = now + RENEWED_AFTER_S
        seen = OtherHeader(proxy, found, self._expected, now)
        if not self._is_logged:
            self._is_logged = True
            log.warning("%s", seen.advice)
        with contextlib.suppress(OSError):  # the log has it
            new = self._folder / f".{FILE}.{os.getpid()}"
            new.write_bytes(msgspec.json.encode(seen))
            new.replace(self._folder / FILE)
