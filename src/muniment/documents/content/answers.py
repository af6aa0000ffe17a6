"""
Read what a process that extracts text answers.

A hostile file may have taken that process over: whatever it says has the declared form and size, or is no answer.
"""

from typing import Annotated

import msgspec

from muniment.documents.content.extraction import MAX_CHARACTERS, MAX_FAULT_CHARACTERS, MAX_PAGES

Page = tuple[Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGES)], str]


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """The pages of a file with their numbers, in order, or the reason why there are none."""

    pages: Annotated[list[Page], msgspec.Meta(max_length=MAX_PAGES)] = []
    fault: Annotated[str, msgspec.Meta(max_length=MAX_FAULT_CHARACTERS)] = ""


class NotAnAnswer(ValueError):  # noqa: N818 - a verdict
    """The process has not said what it can say."""


def read_answer(said: bytes) -> Answer:
    """Return the answer, or raise NotAnAnswer."""
    try:
        # Unlike JSON, it says how long a list is before it begins: a longer one is never built.
        found = msgspec.msgpack.decode(said, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnAnswer from None
    numbers = [number for number, _ in found.pages]
    has_faults = "\0" in found.fault or numbers != sorted(set(numbers))
    if has_faults or sum(len(text) for _, text in found.pages) > MAX_CHARACTERS:
        raise NotAnAnswer
    return found
