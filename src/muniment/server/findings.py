"""Findings of `muniment doctor`: OK, WARN or FAIL, and the exit status that they lead to."""

from collections.abc import Iterable
from typing import Final, NamedTuple

OK: Final = 0
FAIL: Final = 1
WARN: Final = 3
"""2 is the exit status of a command line that is not understood."""


OFF: Final = "off"
PARTLY: Final = "partly off"
UNSET: Final = "not set up"
NONE_YET: Final = "none yet"


class Finding(NamedTuple):
    """
    The result of one check.

    Args:
        warns: it is good, but needs attention.
        state: what a check that is OK has found missing, so that pages don't call it OK; empty if nothing is.
    """

    what: str
    is_good: bool
    says: str
    warns: bool = False
    state: str = ""

    @property
    def mark(self) -> str:
        if not self.is_good:
            return "FAIL"
        return "WARN" if self.warns else "OK"


def good(what: str, says: str, state: str = "") -> Finding:
    return Finding(what, is_good=True, says=says, state=state)


def bad(what: str, says: str) -> Finding:
    return Finding(what, is_good=False, says=says)


def warning(what: str, says: str) -> Finding:
    return Finding(what, is_good=True, says=says, warns=True)


def exit_status(findings: Iterable[Finding]) -> int:
    """Return the exit status that tells the worst finding."""
    marks = {finding.mark for finding in findings}
    if "FAIL" in marks:
        return FAIL
    return WARN if "WARN" in marks else OK
