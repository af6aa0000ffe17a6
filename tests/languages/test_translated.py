"""Texts of features in the visitor's language, and what was stored of them in English."""

import logging
from types import SimpleNamespace

import pytest
from django.utils import translation

from muniment.kernel.phrases.phrase import Counted, Joined, Phrase, Verbatim
from muniment.kernel.problems import NotFound
from muniment.languages import translated as module
from muniment.languages.speaking import speaking
from muniment.languages.translated import in_words, sentence, stated, told, translated, within
from muniment.schema.validation import Fault, Validation

HOSTILE = "<b>{slug.__class__}</b>\u202e%(name)s{0}"


def test_a_problem_is_told_in_the_language_with_its_values():
    problem = NotFound(Phrase("No person has the slug {slug!r}.", slug="ada"), "Search at /people.")
    assert told(problem) == "No person has the slug 'ada'. Search at /people."
    with speaking("de"):
        assert told(problem) == "Keine Person hat den Slug „ada“. Suchen Sie unter /people."
        assert problem.to_wire()["error"]["message"] == "No person has the slug 'ada'."
        assert in_words(problem)["error"] == {
            "code": "not_found",
            "message": "Keine Person hat den Slug „ada“.",
            "hint": "Suchen Sie unter /people.",
        }


def test_faults_are_told_with_their_fields_and_nested_values():
    fault = Fault("name", Phrase("must be text, not {kind}", kind=Phrase("a number")))
    assert stated(fault.sentence) == "name must be text, not a number."
    with speaking("de"):
        assert sentence(fault.reason) == "Muss Text sein, nicht eine Zahl."
        assert stated(fault.sentence) == "name muss Text sein, nicht eine Zahl."
        assert translated(Joined("; ", [fault.sentence, "is missing"])) == "name muss Text sein, nicht eine Zahl; fehlt"


def test_numbers_have_the_separators_of_the_language():
    phrase = Phrase("has {count:,} characters; at most {limit:,} are allowed", count=12345, limit=2000)
    with speaking("de"):
        assert translated(phrase) == "hat 12.345 Zeichen; höchstens 2.000 sind möglich"


def test_a_number_decides_the_form_of_the_text():
    forms = ("The mapping needs {count} choice: {questions}.", "The mapping needs {count} choices: {questions}.")
    with speaking("de"):
        assert translated(Counted(*forms, count=1, questions="a")) == "In der Zuordnung fehlt 1 Auswahl: a."
        assert translated(Counted(*forms, count=2, questions="a")) == "In der Zuordnung fehlen 2 Angaben: a."


def test_what_people_wrote_is_never_translated_nor_formatted():
    with speaking("de"):
        assert translated(Joined(" ", [Verbatim("is missing"), "is missing"])) == "is missing fehlt"
        found = translated(Phrase("No person has the slug {slug!r}.", slug=HOSTILE))
        assert found == "Keine Person hat den Slug „<b>{slug.__class__}</b>\\u202e%(name)s{0}“."
        assert not hasattr(found, "__html__")
        assert translated(HOSTILE) == HOSTILE


@pytest.mark.parametrize("broken", ["{slog}", "{slug.__class__}", "{slug", "{slug:d}", "{0}", "{slug!z}"])
def test_a_broken_translation_is_shown_in_english_and_logged(broken, monkeypatch, caplog):
    ours = SimpleNamespace(gettext=lambda text: broken if "{" in text else translation.gettext(text), ngettext=None)
    monkeypatch.setattr(module, "translation", ours)
    with speaking("de"), caplog.at_level(logging.WARNING):
        assert translated(Phrase("No person has the slug {slug!r}.", slug="ada")) == "No person has the slug 'ada'."
    assert "does not fit" in caplog.text


def test_labels_stay_nouns_inside_a_german_sentence():
    assert within("Short description") == "short description"
    with speaking("de"):
        assert within("Kurzbeschreibung") == "Kurzbeschreibung"


def test_a_validation_says_the_same_english_as_ever():
    validation = Validation(change=True)
    validation.refuse(("name",), Phrase("must be text, not {kind}", kind=Phrase("a number")))
    assert [*validation.faults] == [("name", "must be text, not a number")]
