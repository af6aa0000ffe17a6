"""Idle polling: notice changes made by other processes, at the cost of a few queries per second."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from muniment.store.database.faults import notice

POLL_S: Final = 0.1
"""Maximum seconds before a change by another process of this machine is noticed."""
SECOND_S: Final = 1.0
log = logging.getLogger("muniment.server")


async def poll(look: Callable[[], object], each_second: Callable[[float], object]) -> None:
    """
    Call *look* every 100 ms and *each_second* once per second, until canceled.

    Args:
        look: checks for changes by other processes.
        each_second: receives the event loop's time.
    """
    loop = asyncio.get_running_loop()
    second_at = 0.0
    while True:
        _try(look)
        now = loop.time()
        if now >= second_at:
            second_at = now + SECOND_S - POLL_S / 2
            _try(each_second, now)
        await asyncio.sleep(POLL_S)


def _try(work: Callable[..., object], *arguments: float) -> None:
    try:
        work(*arguments)
    except Exception as error:
        notice(error)
        log.exception("polling failed; retrying")
