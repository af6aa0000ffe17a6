"""JSON: the types of its values, and the strict reader of what others send."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

JSONObject = dict[str, Any]
JSONMapping = Mapping[str, Any]
"""An object that is only read."""

MAX_DEPTH: Final = 100
"""Levels of objects and lists, one in the other."""
_decode: Final = msgspec.json.Decoder().decode
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')


class JSONError(ValueError):
    """The text is not JSON in the form that this product accepts."""


def read_json(text: bytes) -> Any:
    """
    Return the value of a JSON text in UTF-8 (RFC 8259).

    What readers of JSON disagree about is refused, so that no check can judge another value than the one that is acted
    on: NaN and Infinity, a number too large for a float, a byte order mark, another encoding, half of a surrogate
    pair, an object that names a member twice, and more than `MAX_DEPTH` levels.

    Raises:
        JSONError: the text is not such a value; the message says why.
    """
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JSONError(str(error)) from None
    except RecursionError:
        raise JSONError(_TOO_DEEP) from None
    # Every member has a colon. Those in strings are left out only if the numbers differ: most messages have none.
    members = _count_members(value)
    if text.count(b":") != members and _STRINGS.sub(b"", text).count(b":") != members:
        message = "an object has two members of the same name"
        raise JSONError(message)
    return value


_TOO_DEEP: Final = f"more than {MAX_DEPTH} levels"


def _count_members(value: Any) -> int:
    """Return how many members the objects in *value* have; raise JSONError for too many levels."""
    members = depth = 0
    level = [value] if type(value) in (dict, list) else []
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise JSONError(_TOO_DEEP)
        deeper: list[Any] = []
        for holder in level:
            inner = holder
            if type(holder) is dict:
                members += len(holder)
                inner = holder.values()
            deeper += [each for each in inner if type(each) is dict or type(each) is list]
        level = deeper
    return members
