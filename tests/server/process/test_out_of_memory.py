"""A process that cannot get memory ends, wherever the error comes up, and the supervisor starts another."""

import contextlib
import errno
import http.client
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
def test_errors_that_tell_of_a_lack_of_memory(error):
    assert lacks_memory(error)


@pytest.mark.parametrize(
    "error", [None, OSError(errno.ENOSPC, "No space left"), RuntimeError("x"), ImportError("x")], ids=repr
)
def test_other_errors(error):
    assert not lacks_memory(error)


@pytest.mark.parametrize("place", PLACES)
def test_a_process_ends_wherever_the_error_comes_up(place):
    script = f"{BEGIN}{PLACES[place]}\nprint('goes on')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert LAST_WORDS in done.stderr


def test_a_process_continues_after_another_error():
    script = f"{BEGIN}{PLACES['logged'].replace('fail()', 'raise ValueError')}\nprint('goes on')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "goes on\n"), done.stderr


def members(product):
    """Return the processes of the supervisor."""
    children = Path(f"/proc/{product.pid}/task/{product.pid}/children").read_text().split()
    return {int(pid) for pid in children if b"--member" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.mark.usefixtures("new_interpreters")
def test_processes_without_memory_are_replaced(tmp_path):
    with Product(demo_registry(tmp_path / "data"), "--workers", "2") as product:
        product.wait_ready()
        former = members(product)
        assert len(former) == 2
        for pid in former:
            address_space = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
            resource.prlimit(pid, resource.RLIMIT_AS, (address_space - (1 << 20), resource.RLIM_INFINITY))

        def has_replaced():
            with contextlib.suppress(OSError, http.client.HTTPException):  # of a process that ends with its connections
                product.get(f"/companies?q={time.monotonic_ns()}")
            return not former & members(product)

        wait_until(has_replaced, within_s=120, what="the end of processes without memory")
        product.wait_ready()
        assert len(members(product)) == 2
        assert product.get("/api/v1/companies?q=tidal").status == 200
        assert product.output().count(LAST_WORDS) == 2
        assert "another replaces it" in product.output()
