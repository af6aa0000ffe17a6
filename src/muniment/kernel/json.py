"""JSON: the types of its values, the strict reader of what others send, and the size of a value."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

JSONObject = dict[str, Any]
JSONMapping = Mapping[str, Any]
"""An object that is only read."""

MAX_DEPTH: Final = 100
"""Levels of objects and lists, one in the other."""
_decode: Final = msgspec.json.Decoder().decode
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')


def _plain(value: Any) -> Any:
    """Return a value that msgspec does not know as one that it does: a phrase is written as its English."""
    if isinstance(value, str):
        return str(value)
    message = f"{type(value).__name__} is no JSON"
    raise TypeError(message)


encode: Final = msgspec.json.Encoder(enc_hook=_plain).encode
"""Return a value as JSON."""


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
    if b"\\" in text or text.count(b"{") + text.count(b"[") > MAX_DEPTH:
        has_all = _STRINGS.sub(b"", text).count(b":") == _count_members(value)
    else:
        # Without escapes, strings have as many colons when they are written again, so this tells the same.
        has_all = text.count(b":") == encode(value).count(b":")
    if not has_all:  # each member of the text has a colon
        raise JSONError(_TWICE)
    return value


_TOO_DEEP: Final = f"more than {MAX_DEPTH} levels"
_TWICE: Final = "an object has two members of the same name"


def _count_members(value: Any) -> int:
    """Return how many members the objects in *value* have; raise JSONError for too many levels."""
    members = depth = 0
    level = [value] if isinstance(value, dict | list) else []
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise JSONError(_TOO_DEEP)
        deeper: list[Any] = []
        for holder in level:
            inner: Iterable[Any] = holder
            if isinstance(holder, dict):
                members += len(holder)
                inner = holder.values()
            deeper += [each for each in inner if isinstance(each, (dict, list))]
        level = deeper
    return members


def bytes_of(value: Any) -> int:
    """Return the number of bytes that a value has as JSON."""
    return len(encode(value))
