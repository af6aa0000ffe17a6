"""A process that cannot get memory ends, wherever the error comes up, and the supervisor starts another."""

import contextlib
import errno
import itertools
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.server.process import out_of_memory
from muniment.server.process.out_of_memory import lacks_memory
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import Product

LAST_WORDS = "This process cannot get memory and ends."
BEGIN = """
import asyncio, logging, threading
from muniment.server.observability import logs
from muniment.server.process.out_of_memory import end_without_memory
logs.set_up("text")
end_without_memory()
log = logging.getLogger("muniment.server")
def fail(*_):
    raise MemoryError
"""
PLACES = {
    "logged": """
try:
    fail()
except Exception:
    log.exception("request failed")
""",
    "logged with its consequence": """
try:
    try:
        fail()
    except MemoryError:
        raise ValueError("half a value")
except ValueError as error:
    log.error("a job failed", exc_info=error)
""",
    "in a thread": """
thread = threading.Thread(target=fail)
thread.start()
thread.join()
""",
    "where nothing can raise it": """
class Lost:
    __del__ = fail
Lost()
""",
    "in a callback of the event loop": """
async def main():
    asyncio.get_running_loop().call_soon(fail)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
asyncio.run(main())
""",
}


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        ImportError("x.so: failed to map segment from shared object"),
    ],
    ids=repr,
)
def test_errors_that_tell_of_a_lack_of_memory(error, monkeypatch):
    monkeypatch.setattr(out_of_memory, "TRIAL_BYTES", 1 << 60)
    assert lacks_memory(error)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOMEM, "Cannot allocate memory"), RuntimeError("can't start new thread")], ids=repr
)
def test_what_cannot_be_started_while_there_is_memory_ends_no_process(error):
    assert not lacks_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        None,
        OSError(errno.ENOSPC, "No space left"),
        RuntimeError("x"),
        RuntimeError("the path /can't start new thread is unknown"),
        ImportError("x"),
    ],
    ids=repr,
)
def test_other_errors(error):
    assert not lacks_memory(error)


def led_to(first, second, **chained):
    """Return *second* as it is raised while *first* is handled."""
    try:
        try:
            raise first
        except type(first):
            if chained:
                raise second from chained["cause"]
            raise second  # noqa: B904 - its context is the subject
    except type(second) as error:
        return error


def test_the_errors_that_led_to_one_are_looked_at():
    assert lacks_memory(led_to(MemoryError(), ValueError()))
    cause = MemoryError()
    assert lacks_memory(led_to(cause, ValueError(), cause=cause))
    assert lacks_memory(led_to(led_to(MemoryError(), KeyError()), ValueError()))
    assert lacks_memory(ExceptionGroup("tasks", [ValueError(), ExceptionGroup("more", [MemoryError()])]))
    assert not lacks_memory(ExceptionGroup("tasks", [ValueError()]))


def test_a_lack_that_was_handled_is_not_one_of_the_process():
    assert not lacks_memory(led_to(MemoryError(), ValueError("the picture is too large"), cause=None))


def test_errors_that_led_to_each_other_are_looked_at_once():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert not lacks_memory(one)
    one.__context__ = MemoryError()
    one.__suppress_context__ = False
    assert lacks_memory(other)


@pytest.mark.parametrize("place", PLACES)
def test_a_process_ends_wherever_the_error_comes_up(place):
    script = f"{BEGIN}{PLACES[place]}\nprint('continues')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert LAST_WORDS in done.stderr


def test_a_process_continues_after_another_error():
    script = f"{BEGIN}{PLACES['logged'].replace('fail()', 'raise ValueError')}\nprint('continues')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "continues\n"), done.stderr


SCRIPT_OF_LIMITED_THREADS = """
import os, resource
os.setuid(65534)  # root has no limit
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    threading.Thread(target=print).start()
except RuntimeError:
    log.exception("request failed")
print('continues')
"""


@pytest.mark.skipif("os.getuid() != 0", reason="it becomes a user who has no other process")
def test_a_process_whose_number_of_threads_is_limited_continues():
    script = f"{BEGIN}{SCRIPT_OF_LIMITED_THREADS}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "continues\n"), done.stderr
    assert "can't start new thread" in done.stderr


@pytest.mark.sqlite
def test_a_supervisor_replaces_a_process_that_gets_no_memory_and_reads_continue(tmp_path):
    with Product(demo_registry(tmp_path / "data"), "--workers", "2") as product:
        product.wait_ready()
        processes = children(product)
        ended = min(processes)
        resource.prlimit(ended, resource.RLIMIT_AS, (address_space(ended), address_space(ended)))

        # Every time another question: what is answered from memory needs no more of it.
        numbers = itertools.count()

        def is_replaced():
            number = next(numbers)
            with contextlib.suppress(OSError):  # of a connection that the process had accepted
                product.get(f"/search?q=harbour+{number}&page=1")
                product.get(f"/api/v1/companies?pageSize=100&q=tide+{number}")
            return ended not in children(product) and len(children(product)) == 2

        wait_until(is_replaced, within_s=60, what="another process")
        product.wait_ready()
        assert children(product) & processes, "the other process went on"
        assert LAST_WORDS in product.output()


def children(product):
    return {int(pid) for pid in Path(f"/proc/{product.pid}/task/{product.pid}/children").read_text().split()}


def address_space(pid):
    """Return how much a process has, less than it needs for anything new."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize() // 2
