"""Passages that share words with a requirement."""

from muniment.assessments.evaluation.inputs import DocumentText, read_inputs
from muniment.assessments.evaluation.rules import FullText

TEXTS = ("Boats are mended.", "Ferries leave at dawn.", "Nets are dried.", "Tides are charted.", "Sails are sewn.")


def full_text(*texts):
    pages = [(number, text) for number, text in enumerate((*texts, *TEXTS), 1)]
    inputs = read_inputs({"company": {}}, [DocumentText("doc1", "log.txt", "ab" * 32, pages)])
    return FullText(inputs), inputs


def cited(requirement, *texts):
    found, inputs = full_text(*texts)
    return [inputs.chunks[each.chunk].text for each in found.find(requirement, ("documents",))]


def test_a_passage_shares_two_terms_of_a_short_requirement():
    assert cited("harbour pilot roster", "The harbour has a pilot.", "The roster is long.") == [
        "The harbour has a pilot."
    ]


def test_a_passage_shares_three_terms_of_a_long_requirement():
    three, others, two = "Harbour, pilot, roster.", "Lantern, signal, channel.", "The harbour has a pilot."
    assert sorted(cited("harbour pilot roster lantern signal channel", three, others, two)) == [three, others]


def test_a_passage_that_shares_one_term_is_near_and_one_that_shares_none_is_not():
    found, inputs = full_text("The harbour is deep.", "The harbour pilot is awake.")
    near = [inputs.chunks[number].text for number in found.nearest("harbour pilot", ("documents",))]
    assert near == ["The harbour pilot is awake.", "The harbour is deep."]
