"""Running processes and the keys they have, so that a rotation waits for those that lack the new one."""

import logging
import os
import socket
import time
from datetime import timedelta
from typing import Final, NamedTuple

from django.conf import settings
from django.db.models.functions import Now

from muniment.accounts.keys import keyring
from muniment.accounts.keys.reading import fingerprint
from muniment.accounts.models import KeyHolder

LIVE_FOR: Final = timedelta(seconds=45)
AGAIN_S: Final = 15.0
log = logging.getLogger(__name__)


class Holder(NamedTuple):
    """A process that reported within the last 45 seconds."""

    name: str
    keys: frozenset[str]
    signs_with: str


class Reporter:
    """Follows the database's current key, and reports the keys of this process when they change and every 15 s."""

    def __init__(self) -> None:
        self._reported: tuple[str, str] | None = None
        self._again_at = 0.0
        self._is_lacking = False

    def look(self) -> None:
        """Follow and report; the worker of each process calls this every few seconds."""
        has_current = keyring.follow()
        if not has_current and not self._is_lacking:
            log.error("the database's current secret key is missing here; give this node both keys and restart it")
        self._is_lacking = not has_current
        state = (" ".join(keyring.own_keys()), fingerprint(settings.SECRET_KEY))
        if state == self._reported and time.monotonic() < self._again_at:
            return
        KeyHolder.objects.update_or_create(
            name=_name(), defaults={"fingerprints": state[0], "signs_with": state[1], "seen_at": Now()}
        )
        self._reported, self._again_at = state, time.monotonic() + AGAIN_S

    def leave(self) -> None:
        """Report the end of this process."""
        if self._reported is not None:
            KeyHolder.objects.filter(name=_name()).delete()


def live() -> list[Holder]:
    """Return the processes that are running; those that were silent for a day are forgotten."""
    KeyHolder.objects.filter(seen_at__lt=Now() - timedelta(days=1)).delete()
    rows = KeyHolder.objects.filter(seen_at__gt=Now() - LIVE_FOR).order_by("name")
    return [Holder(row.name, frozenset(row.fingerprints.split()), row.signs_with) for row in rows]


def _name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"[:200]
