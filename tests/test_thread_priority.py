"""Threads that work behind the event loop get less of a core than it, on Linux."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from muniment.thread_priority import BEHIND, step_back
from services.ports import wait_until
from services.product import Product

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness for each thread")
FIELDS_AFTER_NAME_BEFORE_NICE = 16


def niceness(process: int) -> dict[int, int]:
    """Return the niceness of each thread of a process, without those of the kernel's own (io_uring)."""
    found = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        if (task / "comm").read_text().startswith("iou-"):
            continue
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        found[int(task.name)] = int(fields[FIELDS_AFTER_NAME_BEFORE_NICE])
    return found


def own() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def in_thread(work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_thread_steps_behind_the_main_thread_and_no_other_thread_moves():
    found = []
    in_thread(lambda: (step_back(), found.append(own())))
    in_thread(lambda: found.append(own()))
    main = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert found == [main + BEHIND, main]


def test_stepping_back_twice_or_from_a_thread_that_has_does_not_add_up():
    found = []

    def again():
        step_back()
        step_back()
        found.append(own())

    in_thread(lambda: (step_back(), in_thread(again)))
    assert found == [os.getpriority(os.PRIO_PROCESS, os.getpid()) + BEHIND]


def test_a_thread_that_is_further_behind_stays_there():
    program = (
        "import os, threading; from muniment.thread_priority import step_back;"
        "own = threading.get_native_id;"
        "found = [];"
        "thread = threading.Thread(target=lambda: (os.setpriority(os.PRIO_PROCESS, own(), 19), step_back(),"
        " found.append(os.getpriority(os.PRIO_PROCESS, own()))));"
        "thread.start(); thread.join(); print(found)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[19]\n"


def test_pages_searches_jobs_exports_and_the_scrub_are_behind_the_event_loop(tmp_path):
    with Product(tmp_path) as product:
        product.wait_ready()
        assert product.get("/companies?q=water").status == 200
        assert product.get("/api/v1/companies?q=water&sort=relevance").status == 200

        def in_front():
            found = niceness(product.pid)
            return [each for each in found.values() if each < found[product.pid] + BEHIND]

        # The event loop, and the heartbeat, which keeps jobs from being taken over by another process.
        wait_until(lambda: len(in_front()) == 2, within_s=30, what="that all others stepped back")
        assert len(niceness(product.pid)) >= 8
