"""Rules: what comparisons, phrases and words find, and which quotes support a level."""

import pytest

from muniment.assessments.evaluation.inputs import DocumentText, read_inputs
from muniment.assessments.evaluation.judgement import Cited, Judgement, Support, settle
from muniment.assessments.evaluation.rules import Rules, holds
from muniment.assessments.evaluation.words import fold

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


@pytest.mark.parametrize("value", [10**400, "9" * 10**6, "$" + "9" * 10**6], ids=["a number", "digits", "money"])
def test_a_number_beyond_all_limits_fulfills_no_comparison(value):
    found = read_inputs({**FACTS, "company": {"name": "Tide Works", "fleet": value}}, [])
    for op in ("<", ">", "="):
        assert not holds({"path": "company.fleet", "op": op, "value": 5}, found)[0]


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
