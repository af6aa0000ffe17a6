"""One strict reader of JSON: what other readers disagree about is refused."""

import json

import pytest

from muniment.kernel.json import MAX_DEPTH, JSONError, encode, read_json
from muniment.kernel.phrases.phrase import Phrase

REFUSED = {
    "not a number": b'{"a": NaN}',
    "infinity": b'{"a": [Infinity]}',
    "minus infinity": b'{"a": {"b": -Infinity}}',
    "too large for a float": b'{"a": 1e999}',
    "a whole number without an end": b'{"a": ' + b"9" * 5000 + b"}",
    "a member twice": b'{"a": 1, "a": 1}',
    "a member twice, once escaped": b'{"a": 1, "\\u0061": 1}',
    "a member twice inside": b'{"x": [{"a:": "b:c", "b": {"c": 1, "c": 2}}]}',
    "a member twice, with colons in texts": b'{"a": ":", "a": ":"}',
    "a member twice, made up for by an escaped colon": b'{"a": 1, "a": "\\u003a"}',
    "a member twice, made up for by escaped colons elsewhere": b'{"a": 1, "a": 2, "b": "\\u003a\\u003A"}',
    "a member twice among many objects": b'{"b": [' + b"{}," * 200 + b'{"a": 1, "a": 1}]}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a": 1}'.encode("utf-16-le"),
    "UTF-32": '{"a": 1}'.encode("utf-32"),
    "Latin-1": '{"a": "é"}'.encode("latin-1"),
    "overlong UTF-8": b'{"a": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"a": "\xed\xa0\x80"}',
    "half of a pair": b'{"a": "\\ud800"}',
    "the other half": b'{"a": "\\udc00 "}',
    "a control character": b'{"a": "\x01"}',
    "a comment": b'{"a": 1} // b',
    "a comma too many": b'{"a": 1,}',
    "single quotes": b"{'a': 1}",
    "a leading zero": b'{"a": 01}',
    "a plus": b'{"a": +1}',
    "a hexadecimal number": b'{"a": 0x1}',
    "two values": b"{}{}",
    "nothing": b"",
    "white space": b" ",
    "unclosed lists": b"[" * 5000,
    "unclosed objects": b'{"a":' * 5000,
    "lists in lists": b"[" * 3000 + b"]" * 3000,
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_readers_disagree_about_is_refused(text):
    with pytest.raises(JSONError) as refused:
        read_json(text)
    assert str(refused.value)


def test_levels_are_bounded():
    assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    for text in (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), b'{"a":' * MAX_DEPTH + b"[]" + b"}" * MAX_DEPTH):
        with pytest.raises(JSONError, match="more than 100 levels"):
            read_json(text)


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        "text",
        5,
        None,
        {"a": "https://x.example:8000/:", "b:": [{":": ":"}, {":": '":'}, {'"\\:': "\\"}]},
        {"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]},
        {"id": 2**64, "n": -(10**30), "x": 1e308},
        {"夜": "\U0001f600 é \u2028"},
    ],
)
def test_everything_else_is_read_as_it_is(value):
    for escaped in (True, False):
        for indent in (None, 2):
            assert read_json(json.dumps(value, ensure_ascii=escaped, indent=indent).encode()) == value


def test_phrases_are_written_as_their_english_and_other_values_are_refused():
    assert encode({"note": Phrase("{n} rows", n=2)}) == b'{"note":"2 rows"}'
    with pytest.raises(TypeError, match="object is no JSON"):
        encode({"note": object()})
