"""What ends a command that waits."""

import os
import signal
from contextlib import ExitStack

import pytest

from muniment.cli.ending import Ending


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_wait_and_interrupts_what_else_waits(number):
    former = signal.getsignal(number)
    interrupted = []
    with Ending() as ending:
        assert not ending.wait(0)
        ending.interrupts(lambda: interrupted.append(number))
        os.kill(os.getpid(), number)
        assert ending.wait(20)
        assert ending.wait(0), "and stays"
        assert interrupted == [number]
    assert signal.getsignal(number) is former


def test_a_signal_as_a_command_begins_is_not_lost():
    with ExitStack() as stack:
        ending = stack.enter_context(Ending())
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending.wait()
