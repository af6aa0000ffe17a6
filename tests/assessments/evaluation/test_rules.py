"""The evaluation: what rules find, what of it stands, and the numbers worked out by hand."""

import json

import pytest

from muniment.assessments.evaluation.aggregation import aggregate
from muniment.assessments.evaluation.inputs import DocumentText, input_hash, read_inputs
from muniment.assessments.evaluation.judgement import Cited, Judgement, Support, settle
from muniment.assessments.evaluation.markdown import plain, to_markdown
from muniment.assessments.evaluation.rules import Rules, holds
from muniment.assessments.evaluation.words import fold, holds_phrase, passages, quote_with

FACTS = {
    "company": {
        "id": "tide",
        "name": "Tide Works",
        "teamSize": 5,
        "treasury": "$1.2M",
        "type": "DAO",
        "symbol": "",
        "themes": ["ocean", "food"],
        "raising": True,
        "socials": {"email": "desk@tide.example"},
        "description": "We mend boats. The members elect the board every second year, by secret ballot.",
    },
    "positions": [{"title": "Harbour engineer", "person": {"name": "Ada Tern", "slug": "ada-tern"}}],
    "proposals": [{"title": "New quay", "votes": {"for": 12, "against": 3}}, {"title": "Paint", "votes": {"for": 8}}],
    "capTable": [{"name": "Ada", "percentage": 40}, {"name": "Bo", "percentage": "12.5%"}],
    "distribution": None,
}
PAGES = [
    (1, "Annual accounts.\nThe independent   examiner signed the ANNUAL\naccounts of 2025."),
    (2, "Conflicts of interest are declared in a register of interests. 役員は選挙で選ばれる。"),
]
DOCUMENTS = [DocumentText("doc1", "accounts.pdf", "ab" * 32, PAGES)]


@pytest.fixture(scope="module")
def inputs():
    return read_inputs(FACTS, DOCUMENTS)


def criterion(**more):
    return {"id": "c", "title": "Boats", "weight": 1, "requirement": "Boats are mended.", **more}


def judged(inputs, scale=(0, 4), **more):
    of = criterion(**more)
    return settle(of, scale, Rules().judge_one(of, scale, inputs), inputs)


@pytest.mark.parametrize(
    ("path", "op", "value", "held", "quote"),
    [
        ("company.teamSize", ">=", 5, True, "teamSize: 5"),
        ("company.teamSize", ">", 5, False, "teamSize: 5"),
        ("company.treasury", ">=", 1_200_000, True, "treasury: $1.2M"),
        ("company.treasury", "<", 1_200_000, False, "treasury: $1.2M"),
        ("company.type", "=", "dao", True, "type: DAO"),
        ("company.type", "!=", "DAO", False, "type: DAO"),
        ("company.type", "in", ["cooperative", "DAO"], True, "type: DAO"),
        ("company.themes", "in", ["food"], True, "themes: food"),
        ("company.themes", "=", "steel", False, "themes: ocean"),
        ("company.raising", "=", True, True, "raising: true"),
        ("company.raising", "=", 1, False, "raising: true"),
        ("company.name", ">", 3, False, "name: Tide Works"),
        ("company.socials", "exists", True, True, "socials.email: desk@tide.example"),
        ("company.socials", "exists", False, False, "socials.email: desk@tide.example"),
        ("company.symbol", "exists", True, False, None),
        ("company.symbol", "exists", False, True, None),
        ("company.nothing", "!=", "x", False, None),
        ("company.nothing", "<", 5, False, None),
        ("distribution.method", "exists", True, False, None),
        ("proposals.votes.for", ">=", 8, True, "votes.for: 8"),
        ("proposals.votes.for", ">", 8, False, "votes.for: 8"),
        ("capTable.percentage", "<=", 40, True, "percentage: 40"),
        ("capTable.percentage", "<", 40, False, "percentage: 40"),
        ("capTable.percentage", ">", 12, True, "percentage: 12.5%"),
        ("positions.person.name", "=", "Ada Tern", True, "person.name: Ada Tern"),
    ],
)
def test_a_comparison_holds_or_not_and_quotes_what_decides_it(inputs, *, path, op, value, held, quote):
    found, cited = holds({"path": path, "op": op, "value": value}, inputs)
    assert (found, [each.quote for each in cited]) == (held, [quote] if quote else [])


@pytest.mark.parametrize(
    ("op", "terms", "where", "held"),
    [
        ("anyPhrase", ["board charter", "elect the board"], "profile", True),
        ("anyPhrase", ["elect the boar"], "profile", False),
        ("anyPhrase", ["elect the board"], "documents", False),
        ("allPhrases", ["annual accounts", "Independent Examiner"], "documents", True),
        ("allPhrases", ["annual accounts", "auditor"], "documents", False),
        ("anyPhrase", ["選挙"], "documents", True),
        ("anyPhrase", ["engineer"], "positions", True),
    ],
)
def test_phrases_are_found_as_whole_words_whatever_case_and_white_space(inputs, op, terms, where, held):
    found, cited = holds({"op": op, "terms": terms, "in": where}, inputs)
    assert found is held
    assert bool(cited) is held
    for each in cited:
        assert fold(each.quote) in inputs.chunks[each.chunk].folded


def test_the_level_is_the_highest_whose_check_holds_with_document_and_page(inputs):
    found = judged(
        inputs,
        remediation="Publish them.",
        checks=[
            {"op": "anyPhrase", "terms": ["annual accounts"], "in": "documents", "level": 2},
            {"op": "allPhrases", "terms": ["conflicts of interest", "register of interests"], "level": 3},
            {"op": "anyPhrase", "terms": ["nowhere"], "level": 4},
        ],
    )
    assert (found["status"], found["level"], found["maxLevel"], found["remediation"]) == (
        "partial",
        3,
        4,
        "Publish them.",
    )
    assert found["citations"][0] == {
        "source": "documents",
        "documentId": "doc1",
        "page": 2,
        "quote": "Conflicts of interest are declared in a register of interests.",
    }


def test_each_status_says_what_was_found(inputs):
    size = {"path": "company.teamSize", "op": ">=", "level": 4}
    assert judged(inputs, checks=[{**size, "value": 5}], remediation="x")["status"] == "met"
    assert judged(inputs, checks=[{**size, "value": 5}], remediation="x")["remediation"] is None
    against = judged(inputs, checks=[{**size, "value": 6}])
    assert (against["status"], against["level"], len(against["citations"])) == ("not_met", 0, 1)
    nothing = judged(inputs, checks=[{"path": "company.symbol", "op": "exists", "level": 4}])
    assert (nothing["status"], nothing["level"], nothing["citations"]) == ("insufficient", 0, [])
    absent = judged(inputs, appliesIf={"path": "company.symbol", "op": "exists"}, checks=[{**size, "value": 1}])
    assert (absent["status"], absent["level"], absent["citations"]) == ("not_applicable", None, [])


def test_fewer_quotes_than_the_criterion_asks_for_are_too_little(inputs):
    checks = [{"op": "anyPhrase", "terms": ["register of interests"], "level": 4}]
    assert judged(inputs, checks=checks, evidence={"minCitations": 1})["status"] == "met"
    short = judged(inputs, checks=checks, evidence={"minCitations": 2})
    assert (short["status"], short["level"], len(short["citations"])) == ("insufficient", 0, 1)


def test_without_checks_the_words_find_a_passage_that_carries_the_middle_and_no_more(inputs):
    found = judged(inputs, title="Elections", requirement="The members elect the board by a secret ballot.")
    assert (found["status"], found["level"], found["confidence"]) == ("partial", 2, 0.5)
    assert found["citations"][0]["quote"] == "The members elect the board every second year, by secret ballot."
    described = [{"level": 1, "descriptor": "a"}, {"level": 3, "descriptor": "b"}]
    assert judged(inputs, title="Elections", requirement="Members elect a board.", levels=described)["level"] == 1
    elsewhere = {"sources": ["documents"]}
    nothing = judged(inputs, title="Elections", requirement="The members elect the board.", evidence=elsewhere)
    assert nothing["status"] == "insufficient"
    unrelated = judged(inputs, title="Passwords", requirement="Passwords are hashed with a memory-hard function.")
    assert unrelated["status"] == "insufficient"


def test_a_quote_that_is_not_in_its_chunk_is_dropped_and_the_level_falls(inputs):
    number = next(n for n, chunk in enumerate(inputs.chunks) if "secret ballot" in chunk.folded)
    true, false = Cited(number, "we MEND\n boats."), Cited(number, "We own a palace.")
    other = Cited(number + 1, "We mend boats.")

    def level(*supports):
        found = settle(criterion(), (0, 4), Judgement(supports=supports, confidence=1), inputs)
        return found["status"], found["level"], len(found["citations"])

    assert level(Support(4, (false,)), Support(2, (true,))) == ("partial", 2, 1)
    assert level(Support(4, (true, false))) == ("insufficient", 0, 0)
    assert level(Support(4, (other,))) == ("insufficient", 0, 0)
    assert level(Support(4, (Cited(10**6, "We mend boats."),)), Support(4, (Cited(number, " "),))) == (
        "insufficient",
        0,
        0,
    )
    assert level(Support(9, (true,))) == ("met", 4, 1)


SPECIFICATION = {
    "schema": "assessment-spec/1",
    "version": 3,
    "scale": {"min": 0, "max": 4},
    "overall": {"bands": [{"min": 0, "label": "C"}, {"min": 60, "label": "B"}, {"min": 80, "label": "A"}]},
    "sections": [
        {
            "id": "s1",
            "title": "One",
            "weight": 30,
            "criteria": [{"id": "a", "weight": 10}, {"id": "b", "weight": 5}, {"id": "n", "weight": 100}],
        },
        {"id": "s2", "title": "Two", "weight": 10, "criteria": [{"id": "c", "weight": 2}]},
        {"id": "s3", "title": "Three", "weight": 60, "criteria": [{"id": "m", "weight": 1}]},
    ],
}


def settled(status, level, confidence=1.0):
    return {"status": status, "level": level, "confidence": confidence}


def test_the_scores_are_those_worked_out_by_hand():
    found = {
        "a": settled("met", 4),
        "b": settled("insufficient", 0, 0.0),
        "n": settled("not_applicable", None, 0.0),
        "c": settled("partial", 2, 0.5),
        "m": settled("not_applicable", None, 0.0),
    }
    report = aggregate(SPECIFICATION, found)
    # One: (10*1 + 5*0)/15 = 2/3; Two: 1/2; Three leaves. Overall: 100*(30*2/3 + 10*1/2)/40 = 62.5.
    assert [section["score"] for section in report["sections"]] == [66.7, 50, None]
    # Coverage: (30*10/15 + 10*1)/40 = 0.75; confidence over what was judged: (20*1 + 10*0.5)/30 = 0.83.
    assert report["overall"] == {"score": 62.5, "band": "B", "coverage": 0.75, "confidence": 0.83}
    assert "confidence" not in report["sections"][0]["criteria"][0]


def test_a_gate_caps_the_overall_and_nothing_else():
    gated = json.loads(json.dumps(SPECIFICATION))
    gated["sections"][0]["criteria"][1]["gate"] = {"minLevel": 1, "capsOverall": 50}
    gated["sections"][1]["criteria"][0]["gate"] = {"minLevel": 2, "capsOverall": 10}
    found = {each: settled("met", 4) for each in "anm"} | {"b": settled("not_met", 0), "c": settled("partial", 2)}
    report = aggregate(gated, found)
    assert (report["overall"]["score"], report["overall"]["band"]) == (50, "C")
    assert report["sections"][2]["score"] == 100


def test_where_nothing_applies_there_is_no_score():
    report = aggregate(SPECIFICATION, {each: settled("not_applicable", None, 0.0) for each in "abncm"})
    assert report["overall"] == {"score": None, "band": None, "coverage": 0, "confidence": 0}


def test_the_hash_depends_on_what_was_looked_at_and_not_on_the_order_of_keys():
    turned = dict(reversed(FACTS.items()))
    assert input_hash(FACTS, DOCUMENTS, SPECIFICATION) == input_hash(turned, DOCUMENTS, SPECIFICATION)
    assert input_hash(FACTS, [], SPECIFICATION) != input_hash(FACTS, DOCUMENTS, SPECIFICATION)
    assert input_hash(FACTS, DOCUMENTS, {**SPECIFICATION, "version": 4}) != input_hash(FACTS, DOCUMENTS, SPECIFICATION)


def test_passages_lose_no_phrase_and_stay_short():
    text = " ".join(f"word{n}" for n in range(900)) + ". Short one. Another."
    found = list(passages(text))
    assert all(len(each) <= 600 for each in found)
    for n in range(899):
        assert any(holds_phrase(fold(each), f"word{n} word{n + 1}") for each in found)
    assert quote_with(text, "word450 word451").count("word450 word451") == 1
    assert len(quote_with(text, "word450 word451")) <= 300


def test_markdown_shows_quotes_as_they_stand():
    assert (
        plain("<img src=x> [go](http://evil.example)\n# head") == r"\<img src=x\> \[go\](http://evil.example) \# head"
    )
    report = {
        "reportId": "r1",
        "companyName": "Tide *Works*",
        "frameworkName": "Plain",
        "specificationVersion": 3,
        "createdAt": "2026-11-21T10:00:00.000000Z",
        "overall": {"score": 62.5, "band": "B", "coverage": 0.75, "confidence": 0.83},
        "evaluator": {"kind": "rules", "model": None, "promptHash": None},
        "sections": [
            {
                "id": "s",
                "title": "One",
                "score": 66.7,
                "criteria": [
                    {
                        "id": "a",
                        "title": "Board",
                        "status": "partial",
                        "level": 2,
                        "maxLevel": 4,
                        "rationale": "Found.",
                        "citations": [{"source": "documents", "documentId": "d", "page": 2, "quote": "a|b"}],
                        "remediation": "Publish it.",
                    }
                ],
            }
        ],
    }
    text = to_markdown(report)
    assert r"# Tide \*Works\*: Plain" in text
    assert "**62.5 of 100**, band B" in text
    assert "**Partly met**, level 2 of 4. Found." in text
    assert r"> a\|b (document, page 2)" in text
    assert "Next: Publish it." in text
