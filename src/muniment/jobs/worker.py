"""The worker: threads that run jobs, a heartbeat that renews leases, and a graceful stop."""

import logging
import os
import socket
import threading
import time
from typing import Final

from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from muniment.jobs import handlers, queue
from muniment.jobs.clock_jumps import ClockJumps
from muniment.jobs.handlers import Abandoned, Canceled, HandedBack, LeaseLost, Postponed
from muniment.jobs.queue import JobRun
from muniment.jobs.steadiness import GRACE_S
from muniment.kernel import tracing
from muniment.store.database.faults import disk_fault, notice
from muniment.store.database.retry import is_unavailable, release_connections

log = logging.getLogger(__name__)
POLL_S: Final = 1.0
"""Seconds between polls for jobs of other processes; jobs of its own process wake a worker at once."""
CLOCK_S: Final = 10.0
"""Seconds between checks for periodic jobs that are due."""
SHORTEST_PAUSE_S: Final = 0.02
AGAIN_S: Final = 0.3
"""Pause before a failed renewal is retried; shorter for short leases."""


class Worker:
    """
    Runs background jobs.

    Args:
        threads: the number of threads of the main lane; each other lane has one.
        name: owns the leases; host and process by default.
    """

    def __init__(self, *, threads: int = 2, name: str = "") -> None:
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._stopping = threading.Event()
        self._wake = threading.Event()
        """Set when the heartbeat must run before its next interval."""
        self._fault = ""
        """The outage that is logged; empty if there is none."""
        self._held: set[JobRun] = set()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._take, args=(lane,), name=f"worker-{number}", daemon=True)
            for number, lane in enumerate([*[""] * threads, *handlers.lanes()])
        ]
        self._heartbeat = threading.Thread(target=self._run_heartbeat, name="worker-heartbeat", daemon=True)

    def start(self) -> "Worker":
        for thread in (*self._threads, self._heartbeat):
            thread.start()
        return self

    def stop(self, *, within_s: float = 20.0) -> bool:
        """
        Let running jobs reach a checkpoint, and return whether every thread has ended.

        What still runs is left to others: the process is expected to end, and that counts against no job.
        """
        self._stopping.set()
        with self._lock:
            for run in self._held:
                run.drain()
        queue.work_signal.notify()
        self._wake.set()
        deadline = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        ended = not any(thread.is_alive() for thread in self._threads)
        if ended:
            self._heartbeat.join(max(0.0, deadline - time.monotonic()))
        else:
            self._leave_jobs()
        return ended

    def _leave_jobs(self) -> None:
        with self._lock:
            held = list(self._held)
        for run in held:
            try:
                run.leave()
            except Exception as error:  # noqa: BLE001 - logged there
                self._failed(f"could not leave {run.kind} {run.id}", error)
        connections.close_all()

    def _take(self, lane: str) -> None:
        while True:
            seen = queue.work_signal.count
            if self._stopping.is_set():
                break
            close_old_connections()
            try:
                run = queue.claim(self.name, lane)
                release_connections()
            except Exception as error:  # noqa: BLE001 - logged there
                release_connections()
                self._failed("could not read the queue", error)
                self._stopping.wait(POLL_S)
                continue
            self._fault = ""
            if run is None:
                queue.work_signal.wait(seen)
                continue
            with self._lock:
                self._held.add(run)
                if self._stopping.is_set():
                    run.drain()
            self._wake.set()
            try:
                self._work(run)
            except Exception as error:  # noqa: BLE001 - logged there
                self._failed(f"could not end {run.kind} {run.id}", error)
                self._return(run, error)
            finally:
                with self._lock:
                    self._held.discard(run)
                if self._stopping.is_set():
                    self._wake.set()
        connections.close_all()

    def _return(self, run: JobRun, error: Exception) -> None:
        """Return a job to the queue as soon as the database answers again; without that, its lease has to end."""
        while isinstance(error, DatabaseError | InterfaceError) and is_unavailable(error):
            if self._stopping.wait(POLL_S):
                return
            close_old_connections()
            try:
                run.failed("the database was unavailable when the job ended", for_good=False, pause_s=POLL_S)
            except Exception as again:  # noqa: BLE001 - judged by the loop
                error = again
            else:
                return

    def _failed(self, what: str, error: Exception) -> None:
        """Log a failure; an outage that lasts is logged once, without a trace."""
        notice(error)
        fault = disk_fault(error) or ("the database does not answer" if is_unavailable(error) else "")
        if not fault:
            log.error("%s", what, exc_info=error)
        elif fault != self._fault:
            self._fault = fault
            log.warning("%s: %s", what, fault)

    def _work(self, run: JobRun) -> None:
        try:
            with tracing.span(f"job {run.kind}", {"muniment.job.id": run.id, "muniment.job.attempt": run.attempt}):
                result = run.handler.work(run)
                if not run.finished:
                    run.finish(result)
        except LeaseLost:
            log.warning("%s %s: another worker has it now", run.kind, run.id)
            run.survived()
        except Canceled:
            run.canceled()
        except HandedBack:
            run.hand_back()
        except Postponed as error:
            run.postponed(error)
        except Abandoned as error:
            run.failed(error.reason, for_good=True)
        except Exception as error:
            notice(error)
            log.exception("%s %s failed (attempt %d)", run.kind, run.id, run.attempt)
            run.failed(f"{type(error).__name__}: {error}", for_good=False)

    def _run_heartbeat(self) -> None:
        """Renew each lease at a third of its length; check the queue for idle workers, and the periodic jobs."""
        renew_at: dict[JobRun, float] = {}
        look_at = clock_at = 0.0
        watchers, jumps = ClockWatchers(), ClockJumps()
        while not self._stopping.is_set() or self._held:
            moment = time.monotonic()
            with self._lock:
                held = set(self._held)
            renew_at = {run: renew_at.get(run, moment + run.handler.lease_s / 3) for run in held}
            try:
                if held and moment >= look_at:
                    queue.clock()
                if jumps.are_new():
                    renew_at = dict.fromkeys(held, moment)
                    clock_at = min(clock_at, moment + GRACE_S)
                _renew_due(renew_at, moment)
                if moment >= clock_at:
                    clock_at = moment + CLOCK_S
                    close_old_connections()  # the next statement checks the connection first
                    if not self._stopping.is_set():
                        jumps.settle()
                        queue.enqueue_periodic()
                watchers.look(moment)
                if moment >= look_at:
                    look_at = moment + POLL_S
                    has_idle_threads = len(held) < len(self._threads)
                    if has_idle_threads and not self._stopping.is_set() and queue.is_due():
                        queue.work_signal.notify()
            except Exception as error:  # noqa: BLE001 - logged there
                self._failed("heartbeat failed", error)
                close_old_connections()
            release_connections()
            next_at = min([look_at, *renew_at.values()])
            self._wake.wait(max(SHORTEST_PAUSE_S, next_at - time.monotonic()))
            self._wake.clear()  # before the loop checks for the end, so that no signal is lost
        watchers.leave()
        connections.close_all()


def _renew_due(renew_at: dict[JobRun, float], moment: float) -> None:
    """Renew the leases whose time in *renew_at* has come, and note when each is due next."""
    for run in [run for run, at in renew_at.items() if moment >= at]:
        renew_at[run] = moment + min(AGAIN_S, run.handler.lease_s / 10)  # if the database does not answer
        run.renew()
        renew_at[run] = moment + run.handler.lease_s / 3


class ClockWatchers:
    """Lets features look at what other processes have changed, each at its interval, also after a failure."""

    def __init__(self) -> None:
        self._due: dict[handlers.ClockWatcher, float] = {}

    def look(self, moment: float) -> None:
        for watcher in handlers.clock_watchers:
            if moment >= self._due.get(watcher, 0.0):
                self._due[watcher] = moment + watcher.every_s
                watcher.look()

    def leave(self) -> None:
        try:
            for watcher in handlers.clock_watchers:
                watcher.leave()
        except Exception as error:
            if disk_fault(error):
                log.warning("the end of this process could not be reported: %s", error)
            else:
                log.exception("the end of this process could not be reported")
