"""Whether a report's quotes are true."""

import pytest

from muniment.assessments.evaluation.inputs import DocumentText, read_inputs
from muniment.assessments.evaluation.judgement import Cited, Judgement, Support, is_quoted, settle

CHUNKS = read_inputs({"company": {}}, [DocumentText("doc1", "a.txt", "ab" * 32, [(1, "Nets are  DRIED.")])]).chunks


@pytest.mark.parametrize(
    ("chunk", "quote", "quoted"),
    [
        (0, "nets are dried", True),
        (0, "nets are sold", False),
        (0, " ", False),
        (len(CHUNKS), "nets are dried", False),
        (-1, "nets are dried", False),
    ],
)
def test_a_quote_is_in_the_chunk_that_it_names_whatever_its_spaces_and_case(chunk, quote, quoted):
    assert is_quoted(Cited(chunk, quote), CHUNKS) is quoted


def settled(*supports, **more):
    inputs = read_inputs({"company": {}}, [DocumentText("doc1", "a.txt", "ab" * 32, [(1, "Nets are dried.")])])
    wanted = {"evidence": {"minCitations": more.pop("wanted")}} if "wanted" in more else {}
    criterion = {"id": "nets", "title": "Nets", "remediation": "Dry them.", **wanted}
    judgement = Judgement(supports=supports, confidence=0.8, rationale="As read.", **more)
    return settle(criterion, (0, 4), judgement, inputs)


def support(level, *quotes):
    return Support(level, tuple(Cited(0, quote) for quote in quotes))


@pytest.mark.parametrize(
    ("level", "status", "remediation"),
    [
        (0, "not_met", "Dry them."),
        (1, "partial", "Dry them."),
        (4, "met", None),
        (9, "met", None),
        (-1, "not_met", "Dry them."),
    ],
)
def test_the_level_of_a_true_quote_decides_the_status_within_the_scale(level, status, remediation):
    shown = settled(support(level, "nets are dried"))
    assert (shown["status"], shown["level"]) == (status, min(max(level, 0), 4))
    assert (shown["remediation"], shown["confidence"], shown["rationale"]) == (remediation, 0.8, "As read.")
    assert [each["quote"] for each in shown["citations"]] == ["nets are dried"]


def test_what_does_not_apply_has_no_level_and_no_confidence():
    shown = settled(applies=False)
    assert (shown["status"], shown["level"], shown["confidence"], shown["citations"]) == (
        "not_applicable",
        None,
        0.0,
        [],
    )


def test_without_a_true_quote_there_is_not_enough_evidence_and_no_confidence():
    shown = settled(support(4, "nets are sold"))
    assert (shown["status"], shown["level"], shown["confidence"]) == ("insufficient", 0, 0.0)
    assert settled()["rationale"] == "As read."
    assert shown["rationale"] != "As read."


def test_the_highest_supported_level_counts_and_its_quotes_come_first():
    shown = settled(support(2, "nets are"), support(3, "are dried"), support(4, "nets are sold"))
    assert (shown["status"], shown["level"]) == ("partial", 3)
    assert [each["quote"] for each in shown["citations"]] == ["are dried", "nets are"]
    assert shown["rationale"] != "As read.", "one quote was not true"


@pytest.mark.parametrize(("wanted", "level", "status"), [(2, 3, "partial"), (3, 3, "insufficient"), (3, 0, "not_met")])
def test_a_level_above_the_lowest_takes_as_many_quotes_as_the_criterion_wants(wanted, level, status):
    shown = settled(support(level, "nets are", "are dried"), wanted=wanted)
    assert shown["status"] == status
    assert len(shown["citations"]) == 2
