"""What a command shows while it works: on a terminal it moves, in a file there are only the messages."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from muniment.cli.progress import Progress


@contextmanager
def terminal() -> Iterator[Callable[[], str]]:
    """Make standard error a terminal of 80 columns, and yield a function that reads what it has received since."""
    here, there = os.openpty()
    os.set_blocking(here, False)
    with os.fdopen(there, "w") as written, pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "80")
        patched.setattr("sys.stderr", written)

        def received() -> str:
            written.flush()
            text = b""
            with suppress(BlockingIOError):  # until there is no more
                while True:
                    text += os.read(here, 1 << 16)
            return text.decode()

        yield received
    os.close(here)


def shown(received: str) -> list[str]:
    """Return the lines as they stand at last: what was cleared or written over is gone."""
    lines = re.sub(r"\x1b\[\?25[lh]", "", received).replace("\r\n", "\n").split("\n")  # without those of the cursor
    return [re.split(r"\r(?:\x1b\[K)?", line)[-1].rstrip() for line in lines]


def test_a_terminal_shows_a_bar_for_each_file_and_messages_above_them():
    with terminal() as received, Progress() as progress:
        progress.reach("companies", 0, 200)
        progress.message("companies.jsonl:3: name is missing")
        progress.reach("companies", 200, 200)
        progress.reach("people", 25, 100)
        first, second, third = shown(received())
    assert first == "companies.jsonl:3: name is missing"
    assert second.startswith("companies  [####")
    assert "100%" in second
    assert third.startswith("people  [#########---")
    assert "25%" in third


def test_a_terminal_shows_the_present_state_in_one_line_and_nothing_afterwards():
    with terminal() as received:
        with Progress() as progress:
            progress.state("rows/" + "x" * 200)
            progress.state("proving")
            assert received().split("\r\x1b[K")[1:] == ["rows/" + "x" * 74, "proving"]
        assert received() == "\r\x1b[K"


def test_a_file_receives_the_messages_alone(capsys):
    with Progress() as progress:
        progress.reach("companies", 1, 2)
        progress.state("proving")
        progress.message("companies.jsonl:3: name is missing")
    assert capsys.readouterr().err == "companies.jsonl:3: name is missing\n"


def test_what_a_file_says_does_not_steer_the_terminal():
    with terminal() as received, Progress() as progress:
        progress.state("rows/\x1b]0;title\x07")
        progress.message("name \x1b[2J\r\x9b31m is too long")
        text = received().replace("\r\x1b[K", "").replace("\r\n", "")
    assert text == "rows/�]0;title�name �[2J��31m is too long"
