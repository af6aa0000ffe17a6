"""
The offline, deterministic evaluator.

A criterion with checks gets the highest level whose check holds. One without is searched for by the words of its
title and requirement; a passage found this way mentions the subject but does not prove it, so it supports the middle
of the scale at most.

Source: assessment-spec/1, evaluators.
"""

import math
import operator
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from muniment.assessments.evaluation.inputs import Inputs, Leaf
from muniment.assessments.evaluation.judgement import MAX_CITATIONS, Cited, Judged, Judgement, Judging, Support, Usage
from muniment.assessments.evaluation.words import (
    fold,
    holds_phrase,
    quote,
    quote_with,
    sentences,
    stem,
    terms,
    words_of,
)
from muniment.kernel.json import JSONMapping
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.wire import MAX_PARSED, parse_money
from muniment.registry.frameworks.specification import PHRASES, SOURCES

WITHOUT_CHECKS: Final = 0.5
"""Confidence in a match by words alone."""
_HEAVIEST_TERMS: Final = 12
_MAX_TERMS: Final = 40
"""Terms of a long requirement that are searched for: its beginning states the subject."""
_ENOUGH: Final = 0.4
"""The share of a requirement's heaviest terms that a matching passage must contain."""
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Rules:
    """Judges by checks, phrases and words."""

    kind = "rules"
    batch = 8
    model: str | None = None
    prompt_hash: str | None = None
    spent = Usage()

    def __init__(self) -> None:
        self._index: tuple[Inputs, FullText] | None = None

    def judge(self, criteria: Sequence[JSONMapping], scale: tuple[float, float], inputs: Inputs) -> Judging:
        for number, criterion in enumerate(criteria):
            yield Judged(number, self.judge_one(criterion, scale, inputs), "rules")

    def judge_one(self, criterion: JSONMapping, scale: tuple[float, float], inputs: Inputs) -> Judgement:
        condition = criterion.get("appliesIf")
        if condition is not None and not holds(condition, inputs)[0]:
            return Judgement(applies=False, rationale=marked("Does not apply to this organization."))
        if criterion.get("checks"):
            return _by_checks(criterion, scale, inputs)
        return self._by_words(criterion, scale, inputs)

    def full_text(self, inputs: Inputs) -> "FullText":
        if self._index is None or self._index[0] is not inputs:
            self._index = inputs, FullText(inputs)
        return self._index[1]

    def _by_words(self, criterion: JSONMapping, scale: tuple[float, float], inputs: Inputs) -> Judgement:
        sources = (criterion.get("evidence") or {}).get("sources") or SOURCES
        cited = self.full_text(inputs).find(f"{criterion['title']} {criterion['requirement']}", sources)
        if not cited:
            return Judgement(rationale=_no_evidence(inputs))
        level = _middle(criterion, scale)
        return Judgement(
            supports=tuple(Support(level, (citation,)) for citation in cited),
            confidence=WITHOUT_CHECKS,
            rationale=_mentioned(len(cited)),
        )


def _mentioned(count: int) -> str:
    if count == 1:
        return marked(
            "One passage mentions this. It was found by keywords; a reader must decide whether the criterion is met."
        )
    return Phrase(
        "{count} passages mention this. They were found by keywords; a reader must decide whether the criterion is"
        " met.",
        count=count,
    )


def _no_evidence(inputs: Inputs) -> str:
    if inputs.has_documents:
        return marked("No evidence was found.")
    return marked("No evidence was found, and no documents were provided.")


def _middle(criterion: JSONMapping, scale: tuple[float, float]) -> float:
    """Return the highest described level up to the middle of the scale, or the middle."""
    low, high = scale
    middle = low + (high - low) / 2
    described = [level["level"] for level in criterion.get("levels") or () if low < level["level"] <= middle]
    return float(max(described, default=middle))


def _by_checks(criterion: JSONMapping, scale: tuple[float, float], inputs: Inputs) -> Judgement:
    low, _ = scale
    supports: list[Support] = []
    for check in criterion["checks"]:
        supports += _supports_of(check, low, inputs)
    if not supports:
        return Judgement(rationale=_no_evidence(inputs))
    if any(support.level > low for support in supports):
        rationale = marked("The evidence below supports this level.")
    else:
        rationale = marked("The evidence supports no higher level.")
    return Judgement(supports=tuple(supports), confidence=1.0, rationale=rationale)


def _supports_of(check: JSONMapping, low: float, inputs: Inputs) -> list[Support]:
    held, cited = holds(check, inputs)
    if not cited:
        return []
    if not held:
        # A fact that does not fit contradicts the criterion; a phrase that was not found says nothing.
        return [] if check["op"] in PHRASES else [Support(low, tuple(cited))]
    if check["op"] == "anyPhrase":
        return [Support(check["level"], (citation,)) for citation in cited]
    return [Support(check["level"], tuple(cited))]


def holds(condition: JSONMapping, inputs: Inputs) -> tuple[bool, list[Cited]]:
    """
    Return whether a condition holds, and the evidence for or against it.

    For ``=``, ``in`` and ``exists`` one matching value is enough; ``!=`` and comparisons of amounts must hold for all
    values. Absent values satisfy nothing except ``exists`` with the value false.
    """
    operation = condition["op"]
    if operation in PHRASES:
        return _phrases(condition, inputs)
    if operation == "exists":
        leaves = inputs.below(condition["path"])
        must_exist = condition.get("value", True) is not False
        return bool(leaves) == must_exist, _first_cited(leaves)
    leaves = inputs.values(condition["path"])
    if not leaves:
        return False, []
    fitting: list[Leaf] = []
    failing: list[Leaf] = []
    for leaf in leaves:
        if _fits(operation, condition["value"], inputs.currency, leaf.value):
            fitting.append(leaf)
        else:
            failing.append(leaf)
    if operation in _COMPARISONS or operation == "!=":
        return not failing, _first_cited(failing or _decisive(operation, leaves, inputs.currency))
    return bool(fitting), _first_cited(fitting or leaves)


def _first_cited(leaves: Sequence[Leaf]) -> list[Cited]:
    return [Cited(leaf.chunk, leaf.quote) for leaf in leaves[:1]]


def _phrases(condition: JSONMapping, inputs: Inputs) -> tuple[bool, list[Cited]]:
    must_find_all = condition["op"] == "allPhrases"
    chunks = inputs.of((condition.get("in", "documents"),))
    most_places = 1 if must_find_all else MAX_CITATIONS
    cited: list[Cited] = []
    for term in dict.fromkeys(fold(term) for term in condition["terms"]):
        places = [number for number in chunks if holds_phrase(inputs.chunks[number].folded, term)]
        if must_find_all and not places:
            return False, []
        for number in places[:most_places]:
            cited.append(Cited(number, quote_with(inputs.chunks[number].text, term)))
    distinct = list(dict.fromkeys(cited))
    if must_find_all:
        return True, distinct
    return bool(distinct), distinct[:MAX_CITATIONS]


def _fits(operation: str, wanted: Any, currency: str, value: Any) -> bool:
    if operation == "in":
        return any(_same(member, value, currency) for member in wanted)
    if operation == "=":
        return _same(wanted, value, currency)
    if operation == "!=":
        return not _same(wanted, value, currency)
    amount = _amount(value, currency)
    if amount is None:
        return False
    compare = _COMPARISONS[operation]
    return compare(amount, float(wanted))


def _same(wanted: Any, value: Any, currency: str) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    if isinstance(wanted, int | float):
        return _amount(value, currency) == float(wanted)
    if isinstance(wanted, str) and isinstance(value, str):
        return fold(wanted) == fold(value)
    return bool(wanted == value)


def _amount(value: Any, currency: str) -> float | None:
    """Return a number, a share such as ``12.5%`` or an amount of money such as ``$1.2M`` as a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        # A whole number of JSON has any size; float() would raise for a larger one.
        return float(value) if abs(value) <= sys.float_info.max else None
    if not isinstance(value, str) or len(value) > MAX_PARSED:
        return None
    try:
        return float(value.strip().removesuffix("%").replace(",", ""))
    except ValueError:
        pass
    try:
        return parse_money(value, currency) / 100
    except ValueError:
        return None


def _decisive(operation: str, leaves: Sequence[Leaf], currency: str) -> list[Leaf]:
    """Return the value that decides a comparison of all values: the largest below a limit, the smallest above."""

    def amount(leaf: Leaf) -> float:
        return _amount(leaf.value, currency) or 0.0

    if operation == "!=":
        return list(leaves[:1])
    pick = max if operation in {"<", "<="} else min
    return [pick(leaves, key=amount)]


class FullText:
    """Finds the passages that best match a requirement's words."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._words = [frozenset(map(stem, words_of(chunk.folded))) for chunk in inputs.chunks]
        self._spread: Counter[str] = Counter()
        for words in self._words:
            self._spread.update(words)

    def find(self, text: str, sources: Sequence[str]) -> list[Cited]:
        """Return the passages that share enough terms with *text*, best first."""
        weights = self._weights(text)
        most_needed = 2 if len(weights) < 6 else 3
        needed_terms = min(len(weights), most_needed)
        # Of the heaviest alone: no passage has a large share of all terms of a long requirement.
        enough = _ENOUGH * sum(sorted(weights.values(), reverse=True)[:_HEAVIEST_TERMS])
        ranked = self._ranked(weights, sources, needed_terms, enough)
        return [Cited(number, self._quote(number, weights)) for number in ranked[:MAX_CITATIONS]]

    def nearest(self, text: str, sources: Sequence[str]) -> list[int]:
        """Return the numbers of the chunks that share any term with *text*, nearest first."""
        return self._ranked(self._weights(text), sources, 1, 0.0)

    def _weights(self, text: str) -> dict[str, float]:
        """Return the terms of *text* with their weights; frequent terms weigh little."""
        chunks = len(self._words) + 1
        return {term: math.log(1 + chunks / (1 + self._spread[term])) for term in terms(text)[:_MAX_TERMS]}

    def _ranked(
        self, weights: Mapping[str, float], sources: Sequence[str], needed_terms: int, enough: float
    ) -> list[int]:
        ranked = []
        for number in self._inputs.of(sources):
            shared = [weight for term, weight in weights.items() if term in self._words[number]]
            if len(shared) >= max(1, needed_terms) and sum(shared) >= enough:
                ranked.append((-round(sum(shared), 6), number))
        return [number for _, number in sorted(ranked)]

    def _quote(self, number: int, weights: Mapping[str, float]) -> str:
        """Return the sentence of a chunk that shares most terms."""

        def shared(sentence: str) -> float:
            stems = {stem(word) for word in words_of(fold(sentence))}
            return sum(weight for term, weight in weights.items() if term in stems)

        return quote(max(sentences(self._inputs.chunks[number].text), key=shared))
