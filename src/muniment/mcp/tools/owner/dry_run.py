"""
Dry runs of the tools that write: the call is done in a transaction that is rolled back.

So the answer is that of the real call, with every check.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import transaction

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.mcp.declarations import Arguments

DRY_RUN: Final[JSONObject] = {"type": "boolean", "default": False}
"""The argument."""
DRY: Final[dict[str, JSONMapping]] = {"dryRun": {"type": "boolean"}}
"""The member of a dry run's answer, which is optional."""


def is_dry(arguments: Arguments) -> bool:
    """Return whether a call only shows what it would do."""
    return bool(arguments.get("dryRun", False))


@contextmanager
def rehearsal(arguments: Arguments) -> Iterator[None]:
    """Undo what the block does if the call is dry."""
    if not is_dry(arguments):
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def marked(answer: JSONObject, arguments: Arguments, *created: str) -> JSONObject:
    """Return an answer; that of a dry run is marked, and lacks the members that only the call itself *created*."""
    if not is_dry(arguments):
        return answer
    return {name: value for name, value in answer.items() if name not in created} | {"dryRun": True}
