"""A process that cannot get memory ends, wherever the error comes up, and the supervisor starts another."""

import errno
import subprocess
import sys

import pytest

from muniment.server.process.out_of_memory import lacks_memory

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
    script = f"{BEGIN}{PLACES[place]}\nprint('continues')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert LAST_WORDS in done.stderr


def test_a_process_continues_after_another_error():
    script = f"{BEGIN}{PLACES['logged'].replace('fail()', 'raise ValueError')}\nprint('continues')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "continues\n"), done.stderr
