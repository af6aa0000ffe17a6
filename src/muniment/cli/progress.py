"""Progress of a command: on stderr, and moving only on a terminal, so that a log holds nothing but the messages."""

import shutil
import sys
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

import click

_CLEARED: Final = "\r\x1b[K"
"""Returns to the start of the terminal's line, and clears it."""
CONTROLS: Final = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "�")
"""What would move the cursor or change the terminal: messages quote files that anyone may have written."""


class Progress:
    """A bar or a state on the last line of the terminal, and messages above it."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._bars = ExitStack()
        self._bar: Any = None
        self._label = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.close()
        self._clear()

    def reach(self, label: str, done: int, total: int) -> None:
        """Move the bar of *label* to *done* of *total*; the bar before it stays as it is, on a line of its own."""
        if not self._is_shown:
            return
        if self._bar is None or self._label != label:
            self._bars.close()
            self._bar = self._bars.enter_context(click.progressbar(length=total, label=label, file=sys.stderr))
            self._label = label
        self._bar.update(done - self._bar.pos)

    def state(self, doing: str) -> None:
        """Replace the last line by what the command is doing."""
        if self._is_shown:
            line = doing.translate(CONTROLS)[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write(f"{_CLEARED}{line}")
            sys.stderr.flush()

    def message(self, text: object) -> None:
        """Print a message on a line of its own."""
        self._clear()
        click.echo(str(text).translate(CONTROLS), err=True)

    def _clear(self) -> None:
        if self._is_shown:
            sys.stderr.write(_CLEARED)
