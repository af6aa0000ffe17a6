"""
Read the answer of a process that extracts text.

A hostile file may have taken over that process, so an answer of another form or size than the declared one is rejected.
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
    """The answer has another form or size than the declared one."""


def read_answer(said: bytes) -> Answer:
    """Return the answer, or raise NotAnAnswer."""
    try:
        # Unlike JSON, MessagePack gives the length of a list first, so a list that is too long is never built.
        found = msgspec.msgpack.decode(said, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnAnswer from None
    numbers = [number for number, _ in found.pages]
    has_faults = "\0" in found.fault or numbers != sorted(set(numbers))
    if has_faults or sum(len(text) for _, text in found.pages) > MAX_CHARACTERS:
        raise NotAnAnswer
    return found
