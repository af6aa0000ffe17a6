"""
Supervisor: start several processes on one port, replace those that die, roll them one by one, and stop them together.

The supervisor binds one socket per slot and keeps it; a process inherits the socket of its slot. Queued connections are
served by the slot's next process, so a roll refuses no client. The supervisor itself serves nothing and imports no
server code: each process is a new interpreter, so a roll also activates a new version of the software.
"""

import logging
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Final

from muniment.server.process import shared_metrics
from muniment.server.process.exit_status import REFUSED
from muniment.server.process.sockets import bind_beside, share
from muniment.server.process.worker_process import LISTENING, READY, inheritance

STEADY_S: Final = 10.0
"""A process that dies sooner is restarted after a pause."""
SHORTEST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
READY_WAIT_S: Final = 90.0
END_WAIT_S: Final = 30.0
"""More than a process allows for open requests and jobs; a process that takes longer is killed."""
FIRST_WAIT_S: Final = 3.0
"""The first process listens before the others start: they would compete with it on a small machine."""
LOOK_S: Final = 0.2
log = logging.getLogger("muniment.server")


class Child:
    """A process."""

    def __init__(self, process: "subprocess.Popen[bytes]", control: socket.socket, number: int) -> None:
        self.process, self.control, self.number = process, control, number
        self.began = time.monotonic()
        self.is_ready = False
        self.end_by: float | None = None

    def end(self) -> None:
        self.end_by = time.monotonic() + END_WAIT_S
        self.process.send_signal(signal.SIGTERM)

    def kill_if_overdue(self) -> None:
        if self.end_by is not None and time.monotonic() > self.end_by:
            log.error("a process did not stop in time", extra={"pid": self.process.pid})
            self.process.kill()


class WorkerSlot:
    """One listening socket and its process."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.child: Child | None = None
        self.incoming: Child | None = None
        """The next process during a roll, until it is ready."""
        self.leaving: Child | None = None
        self.deaths = 0
        self.again_at = 0.0


class Supervisor:
    """
    Keeps *workers* processes running.

    Args:
        command: the arguments of ``muniment`` for each process; its place is appended.
        first_command: used instead until the first process has been ready once.
        admin: the administrative listener, if it is separate; any process answers for all.
    """

    def __init__(
        self,
        listener: socket.socket,
        workers: int,
        *,
        command: list[str],
        first_command: list[str],
        admin: socket.socket | None = None,
    ) -> None:
        self._admin = admin
        share(listener)
        self._places = [WorkerSlot(listener), *(WorkerSlot(bind_beside(listener)) for _ in range(workers - 1))]
        self._command = command
        self._first_command: list[str] | None = first_command
        self._metrics = shared_metrics.make()
        self._children: list[Child] = []
        self._selector = selectors.DefaultSelector()
        self._signals: deque[int] = deque()
        self._rolling: deque[WorkerSlot] = deque()
        self._others_from = time.monotonic() + FIRST_WAIT_S
        self._has_listened = self._has_been_ready = False
        self._is_ending = False
        self._since = int(time.time())
        self._status = 0

    def run(self) -> int:
        """
        Supervise until a signal and return the exit status.

        It is 1 if the first process never listened or could not start, and :data:`REFUSED` if one refused to serve its
        database.
        """
        heard, wake = socket.socketpair()
        for end in (heard, wake):
            end.setblocking(False)  # noqa: FBT003 - the socket's own signature
        self._selector.register(heard, selectors.EVENT_READ, lambda: heard.recv(64))
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._signaled)
        while self._children or not self._is_ending:
            self._look()
            for key, _ in self._selector.select(LOOK_S):
                answer: Callable[[], object] = key.data
                answer()
        return self._status

    def _signaled(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _look(self) -> None:
        while self._signals:
            number = self._signals.popleft()
            if number in {signal.SIGTERM, signal.SIGINT}:
                self._end_all(number)
            elif number == signal.SIGHUP and not self._is_ending:
                log.info("replacing every process, one by one")
                self._since = int(time.time())
                self._rolling.extend(place for place in self._places if place not in self._rolling)
        self._handle_exit()
        for child in self._children:
            child.kill_if_overdue()
        if not self._is_ending:
            self._start_missing()
            self._roll()

    def _start_missing(self) -> None:
        now = time.monotonic()
        for index, place in enumerate(self._places):
            if place.child is None and now >= place.again_at:
                if index and not self._has_listened and now < self._others_from:
                    return
                place.child = self._start(place)

    def _start(self, place: WorkerSlot) -> Child:
        number = min({*range(1, len(self._children) + 2)} - {child.number for child in self._children})
        shared_metrics.clear(self._metrics, number)
        ours, theirs = socket.socketpair()
        inherited = [place.listener.fileno(), theirs.fileno(), self._metrics]
        if self._admin is not None:
            inherited.append(self._admin.fileno())
        command = self._first_command or self._command
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "muniment", *command, "--member", inheritance(number, self._since, *inherited)],
            stdin=subprocess.DEVNULL,
            pass_fds=inherited,
            process_group=0,  # only the supervisor receives Ctrl-C
        )
        theirs.close()
        ours.setblocking(False)  # noqa: FBT003 - the socket's own signature
        child = Child(process, ours, number)
        self._children.append(child)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._on_progress(child))
        return child

    def _on_progress(self, child: Child) -> None:
        try:
            progress = child.control.recv(64)
        except OSError:
            progress = b""
        if not progress:
            self._selector.unregister(child.control)
            child.control.close()
            return
        if LISTENING in progress:
            self._has_listened = True
        if READY in progress:
            child.is_ready = self._has_been_ready = True
            if child is self._places[0].child:
                self._first_command = None

    def _handle_exit(self) -> None:
        for child in [child for child in self._children if child.process.poll() is not None]:
            self._children.remove(child)
            shared_metrics.clear(self._metrics, child.number)
            place = next(place for place in self._places if child in {place.child, place.incoming, place.leaving})
            if place.leaving is child:
                place.leaving = None
            elif place.incoming is child:
                place.incoming = None
                self._stop_roll(f"the new process exited with {child.process.returncode}")
            else:
                place.child, place.incoming = place.incoming, None
                if place.child is None and not self._is_ending:
                    self._died(place, child)

    def _died(self, place: WorkerSlot, child: Child) -> None:
        code = child.process.returncode
        has_failed_first = code > 0 and not self._has_been_ready  # a signal, such as of a lack of memory, is below 0
        if not self._has_listened or code == REFUSED or has_failed_first:
            self._status = REFUSED if code == REFUSED else 1  # it has logged the cause; another attempt would fail too
            self._end_all(signal.SIGTERM)
            return
        now = time.monotonic()
        place.deaths = 1 if now - child.began > STEADY_S else place.deaths + 1
        pause_s = 0.0 if place.deaths == 1 else min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2 ** (place.deaths - 2))
        log.error("a process died; another replaces it in %.1f s", pause_s, extra={"code": code})
        place.again_at = now + pause_s
        if pause_s:
            # Clients must not wait in the queue of a slot without a process.
            former, place.listener = place.listener, bind_beside(place.listener)
            former.close()

    def _roll(self) -> None:
        """Advance the roll: the new process is ready before the old one is asked to stop."""
        if not self._rolling or any(place.leaving for place in self._places):
            return
        place = self._rolling[0]
        if place.child is None:
            self._rolling.popleft()  # another starts anyway
        elif place.incoming is None:
            place.incoming = self._start(place)
        elif place.incoming.is_ready:
            place.leaving, place.child, place.incoming = place.child, place.incoming, None
            place.leaving.end()
            self._rolling.popleft()
            if not self._rolling:
                log.info("every process has been replaced")
        elif time.monotonic() - place.incoming.began > READY_WAIT_S:
            place.incoming.process.kill()

    def _stop_roll(self, reason: str) -> None:
        if not self._is_ending:
            log.error("the rolling restart stopped: %s; the remaining processes keep running", reason)
        self._rolling.clear()

    def _end_all(self, number: int) -> None:
        """Ask every process to stop; forward a second Ctrl-C, which stops them at once."""
        self._rolling.clear()
        if self._is_ending and number == signal.SIGINT:
            for child in self._children:
                child.process.send_signal(signal.SIGINT)
            return
        self._is_ending = True
        for child in self._children:
            if child.end_by is None:
                child.end()
        for place in self._places:
            place.listener.close()
        if self._admin is not None:
            self._admin.close()
