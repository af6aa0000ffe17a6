"""The scrub of what each node has for itself: a thread in every process, of which one of the node works."""

import fcntl
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from muniment.config import Config
from muniment.durable_files import replacing
from muniment.scrub.instance import EVERY_S, PASS_S
from muniment.scrub.progress import Progress, turn
from muniment.server.node_checks import node_checks
from muniment.server.observability.metrics import Metrics

log = logging.getLogger(__name__)
STATE: Final = "scrub.json"


class NodeScrub:
    """Continues the pass of this node every ten minutes; its progress is in the data folder."""

    def __init__(self, config: Config, metrics: Metrics, *, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrub", daemon=True)
        self._damaged = 0
        explanation = "Damages in the copy and the exports of this node that could not be mended."
        metrics.gauge("muniment_scrub_node_damaged", explanation, lambda: self._damaged)

    def start(self) -> "NodeScrub":
        self._thread.start()
        return self

    def close(self) -> None:
        """Ask the thread to stop; a part that is running ends with the process."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.take_turn()
            except Exception:
                log.exception("the scrub of this node failed; it continues in %d s", EVERY_S)

    def take_turn(self) -> None:
        """Continue the pass, unless another process of the node does."""
        state, checks = self._config.data / STATE, node_checks(self._config)
        with (self._config.data / ".scrub.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            progress = turn(
                _stored(state),
                checks,
                at=self._clock(),
                pass_s=PASS_S,
                between=lambda progress: _store(state, progress),
            )
            _store(state, progress)
        self._damaged = len(progress.open(checks))


def _stored(state: Path) -> Progress:
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(state.read_bytes(), type=Progress)
    return Progress()


def _store(state: Path, progress: Progress) -> None:
    with replacing(state) as file:
        file.write(msgspec.json.encode(progress))
