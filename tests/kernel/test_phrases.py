"""Phrases: English texts that remember how they were made."""

import copy
import json
import pickle

import msgspec
import pytest

from muniment.kernel.phrases.filling import filled
from muniment.kernel.phrases.phrase import Counted, Joined, Phrase, Verbatim, either, plain
from muniment.kernel.problems import Internal, NotFound

MADE = [
    Phrase("No person has the slug {slug!r}.", slug="o'neill"),
    Phrase("plain"),
    Counted("{count} item", "{count} items", count=2),
    Joined("; ", ["one", Phrase("two {n}", n=2)]),
]


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        (Phrase("No person has the slug {slug!r}.", slug="a{b}"), "No person has the slug 'a{b}'."),
        (Phrase("{n:,} of {share:.1f} in {{braces}}", n=12345, share=2.25), "12,345 of 2.2 in {braces}"),
        (Phrase("a set {braces} without values"), "a set {braces} without values"),
        (Counted("{count} item of {all:,}", "{count} items of {all:,}", count=1, all=1000), "1 item of 1,000"),
        (Counted("{count} item", "{count} items", count=0), "0 items"),
        (Joined("; ", ["one", Phrase("two {n}", n=2)]), "one; two 2"),
        (Phrase("{outer}.", outer=Phrase("inner {n}", n=1)), "inner 1."),
        (either(["a"]), "a"),
        (either(["a", "b", "c"]), "a or b or c"),
    ],
)
def test_a_phrase_is_its_english_text(phrase, text):
    assert phrase == text
    assert str(phrase) == text
    assert type(str(phrase)) is str
    assert hash(phrase) == hash(text)


@pytest.mark.parametrize("phrase", MADE)
def test_what_is_made_of_a_phrase_by_other_means_is_plain_text(phrase):
    for text in (phrase + "", f"{phrase}", phrase[:3], phrase.upper()):
        assert type(text) is str


@pytest.mark.parametrize("phrase", MADE)
def test_a_phrase_survives_pickling_and_copying(phrase):
    for again in (pickle.loads(pickle.dumps(phrase)), copy.deepcopy(phrase)):
        assert type(again) is type(phrase)
        assert (again, again.template, again.values) == (phrase, phrase.template, phrase.values)
        assert getattr(again, "parts", None) == getattr(phrase, "parts", None)
        assert getattr(again, "several", None) == getattr(phrase, "several", None)


def test_a_phrase_is_written_as_json_like_its_text():
    phrase = Phrase("No person has the slug {slug!r}.", slug="x")
    assert json.dumps([phrase]) == json.dumps([str(phrase)])
    assert msgspec.json.encode([phrase], enc_hook=plain) == msgspec.json.encode([str(phrase)])
    with pytest.raises(NotImplementedError):
        plain(object())


def test_a_value_that_is_no_text_number_or_day_is_kept_as_its_text_alone():
    assert Phrase("failed: {error}", error=OSError("no disk")).values == {"error": "no disk"}


def test_a_problem_has_the_same_bytes_for_clients_as_with_plain_text():
    problem = NotFound(Phrase("No person has the slug {slug!r}.", slug="x"), Phrase("Use {one}.", one="y"))
    wire = {"error": {"code": "not_found", "message": "No person has the slug 'x'.", "hint": "Use y."}}
    assert msgspec.json.encode(problem.to_wire()) == msgspec.json.encode(wire)
    assert str(problem) == "No person has the slug 'x'."
    assert "request 7f" in msgspec.json.encode(Internal("7f").to_wire()).decode()


def _number(value, style):
    return format(value, style).replace(",", ".")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("„{slug}“ hat {n:,} Zeilen", "„o'neill\\u202e“ hat 1.234 Zeilen"),
        ("{n} bei {slug!r}", '1234 bei "o\'neill\\u202e"'),
    ],
)
def test_a_translation_may_quote_and_write_values_otherwise_but_keeps_escapes(template, text):
    phrase = Phrase("{slug!r} has {n:,} rows", slug="o'neill\u202e", n=1234)
    assert filled(template, phrase, phrase.values, _number) == text


@pytest.mark.parametrize("template", ["{slug.__class__}", "{slug[0]}", "{other}", "{", "{0}", "{slug:%}"])
def test_a_translation_cannot_reach_into_a_value(template):
    phrase = Phrase("{slug!r} is taken", slug="x")
    try:
        found = filled(template, phrase, phrase.values, _number)
    except (LookupError, ValueError):
        return
    assert "class" not in found


def test_a_verbatim_text_is_a_text():
    assert Verbatim("fields") == "fields"
