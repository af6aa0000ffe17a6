"""Stored texts keep how they were made."""

from datetime import date

import pytest

from muniment.kernel.phrases.phrase import Counted, Joined, Phrase, Verbatim
from muniment.kernel.phrases.storing import packed, shortened, stored_text, text_of, unpacked
from muniment.languages.speaking import speaking
from muniment.languages.translated import translated

TEXTS = [
    "",
    "plain",
    '{"error": "of another server"}',
    '{"$text": {"template": "{x.__class__}", "values": {"x": 1}}}',
    '{"$text": {"template": "{x}", "values": {}}}',
    '"quoted"',
    '{"broken',
    Phrase("must be text, not {kind}", kind=Phrase("a number")),
    Phrase("No person has the slug {slug!r}.", slug="a'b"),
    Phrase("on {day:%d %B}", day=date(2026, 11, 21)),
    Phrase("{size:,.1f} MB", size=1234.5),
    Phrase("[a-z]{3}, and {a.b"),
    Counted("{count} row", "{count} rows", 3),
    Joined("; ", [Phrase("a number"), "plain", Verbatim("Yes")]),
    Verbatim("Yes"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_stored_and_read_with_its_values(text):
    read = text_of(stored_text(text))
    assert read == text
    assert type(read) is type(text)
    if isinstance(text, Phrase):
        assert (read.template, read.values) == (text.template, text.values)
    with speaking("de"):
        assert translated(read) == translated(text)


def test_a_plain_text_is_stored_as_it_is():
    assert stored_text("the disk is full") == "the disk is full"


@pytest.mark.parametrize("stored", ['{"broken', '{"a": 1}', '{"$text": 1}'])
def test_a_column_of_another_form_is_shown_as_it_is(stored):
    assert text_of(stored) == stored


def test_json_keeps_its_phrases_and_everything_else():
    value = {"says": [Phrase("must be text, not {kind}", kind="x")], "n": 1, "none": None, "o": {"$text": 2, "b": ()}}
    read = unpacked(packed(value))
    assert read == {**value, "o": {"$text": 2, "b": []}}
    assert read["says"][0].values == {"kind": "x"}


@pytest.mark.parametrize(
    "sent",
    [
        {"$text": {"template": "{x}", "values": {"x": 1}}},
        {"$text": {"verbatim": "Yes"}},
        {"$text": {"object": {"$text": {"verbatim": "Yes"}}}},
        {"$text": [Phrase("a number")]},
        {"rows": [{"$text": {"template": "Yes", "values": {}}}]},
    ],
)
def test_an_object_that_looks_like_a_stored_phrase_is_read_as_the_same_object(sent):
    assert unpacked(packed(sent)) == sent


@pytest.mark.parametrize("template", ["{x.__class__}", "{x[0]}", "{}", "{x:>100}", "{x:>{x}}"])
def test_a_stored_template_neither_reaches_into_its_values_nor_makes_a_huge_text(template):
    stored = {"$text": {"template": template, "values": {"x": {"$text": {"template": "5", "values": {}}}}}}
    assert unpacked(stored) == stored
    several = {"$text": {"template": "{count} row", "several": template, "values": {"count": 3, "x": "5"}}}
    assert unpacked(several) == several


def test_a_phrase_within_the_limit_stays_a_phrase():
    phrase = Phrase("a {kind}", kind="number")
    assert isinstance(shortened(phrase, 8), Phrase)
    assert (shortened(phrase, 7), type(shortened(phrase, 7))) == ("a numbe", str)
