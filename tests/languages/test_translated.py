"""Texts of features in the visitor's language, and what was stored of them in English."""

import logging
import time
from types import SimpleNamespace

import pytest
from django.utils import translation

from muniment.kernel.phrases.phrase import Counted, Joined, Phrase, Verbatim
from muniment.kernel.problems import NotFound
from muniment.languages import translated as module
from muniment.languages.recalled import MAX_CHARACTERS, recalled
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


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("the mail server answered 550", "der Mailserver antwortete mit 550"),
        ("No person has the slug 'o\\'x'.", "No person has the slug 'o\\'x'."),
        ('No person has the slug "o\'x".', "Keine Person hat den Slug „o'x“."),
        ("is missing", "fehlt"),
        ("12,345 invalid rows; 3 invalid values left out", "12.345 ungültige Zeilen; 3 ungültige Werte ausgelassen"),
        (
            "the last run failed: the disk is full; 2 documents had no good file; see muniment doctor --storage",
            (
                "der letzte Lauf ist fehlgeschlagen: der Datenträger ist voll; "
                "zu 2 Dokumenten fehlte eine unbeschädigte Datei; siehe muniment doctor --storage"
            ),
        ),
        ("something that no one knows: 5", "something that no one knows: 5"),
        ("x" * (MAX_CHARACTERS + 1), "x" * (MAX_CHARACTERS + 1)),
        ("", ""),
    ],
)
def test_a_stored_text_is_recalled_if_a_template_of_the_catalogue_made_it(stored, shown):
    assert recalled(stored) == stored
    with speaking("de"):
        assert recalled(stored) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Changed x" + " for " * 90 + "“" * 400 + "”" * 100,
        "This link accepts a x" + " file (" * 60 + "), not " * 70,
        "; ".join(["Account 1 not found."] * 8) + "; but this is none",
        "x; " * 333,
    ],
)
def test_a_stored_text_that_imitates_templates_costs_little(text):
    with speaking("de"):
        began = time.process_time()
        recalled(text[:MAX_CHARACTERS])
    assert time.process_time() - began < 2


def test_a_validation_says_the_same_english_as_ever():
    validation = Validation(change=True)
    validation.refuse(("name",), Phrase("must be text, not {kind}", kind=Phrase("a number")))
    assert [*validation.faults] == [("name", "must be text, not a number")]
