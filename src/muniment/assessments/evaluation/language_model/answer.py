"""Parse and validate a model's answer. Source: assessment-spec/1, flow and evaluators."""

import re
from collections.abc import Collection
from itertools import groupby
from typing import Annotated, Final

import msgspec

from muniment.assessments.evaluation.inputs import Inputs
from muniment.assessments.evaluation.judgement import MAX_CITATIONS, Cited, Judgement, Support, is_quoted
from muniment.assessments.evaluation.language_model.prompt import private_texts
from muniment.assessments.evaluation.language_model.reasons import presentable
from muniment.assessments.evaluation.words import MAX_QUOTE, collapse, fold, quote
from muniment.kernel.json import JSONMapping

_MIN_QUOTE: Final = 8
"""Characters of a quote that is not a whole passage: shorter ones match anywhere and prove nothing."""
_FENCE: Final = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


class Unusable(Exception):  # noqa: N818 - a parse result
    """The answer cannot be used: *message* is for the model and may repeat its text, *why* for the log, without it."""

    def __init__(self, message: str, why: str = "it does not match the schema") -> None:
        super().__init__(message)
        self.why = why


class _Quote(msgspec.Struct, forbid_unknown_fields=True):
    passage: int
    text: str
    level: float


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    criterionId: str  # noqa: N815 - as on the wire
    quotes: Annotated[list[_Quote], msgspec.Meta(max_length=50)]
    reason: str
    level: float | None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]


def read_answer(
    text: str,
    criterion: JSONMapping,
    scale: tuple[float, float],
    inputs: Inputs,
    passages: Collection[int],
    *,
    forgiving: bool,
) -> Judgement:
    """
    Return the judgement in an answer.

    Args:
        passages: the chunks that the model was shown; it cannot quote others.
        forgiving: accept an answer with unverified quotes, which :func:`settle` then drops.

    Raises:
        Unusable: it does not match the schema, is about another criterion, or leaves the scale.
    """
    fenced = _FENCE.match(text.strip())
    try:
        answer = msgspec.json.decode(fenced[1] if fenced else text, type=_Answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unusable(f"The answer is not one JSON object of the required form: {error}.") from None
    if answer.criterionId != criterion["id"]:
        raise Unusable("criterionId is not the id of the given criterion.")
    low, high = scale
    levels = [each.level for each in answer.quotes] + ([] if answer.level is None else [answer.level])
    if not all(low <= level <= high for level in levels):
        raise Unusable(f"A level is outside the scale from {low:g} to {high:g}.")
    cited = [(_cited(each, inputs, passages), each.level) for each in answer.quotes]
    if not forgiving and not all(is_quoted(each, inputs.chunks) for each, _ in cited):
        raise Unusable("A quote is not in the passage it names, or is too short. Copy quotes character for character.")
    reason = _reason(answer, criterion, inputs, passages)
    return Judgement(supports=_supports(cited, answer.level), confidence=answer.confidence, rationale=reason)


def _supports(cited: list[tuple[Cited, float]], level: float | None) -> tuple[Support, ...]:
    """Return the quotes that together support each level, with no level above the overall one."""
    if level is None:
        return ()
    lowered = sorted(((min(each, level), found) for found, each in cited), key=lambda each: -each[0])
    return tuple(
        Support(reached, tuple(dict.fromkeys(found for _, found in group))[:MAX_CITATIONS])
        for reached, group in groupby(lowered, key=lambda each: each[0])
    )


def _cited(given: _Quote, inputs: Inputs, passages: Collection[int]) -> Cited:
    """Return a quote in its passage's wording; an invalid quote cites chunk -1, which is never found."""
    wanted = fold(given.text)
    if given.passage not in passages:
        return Cited(-1, given.text[:MAX_QUOTE])
    chunk = inputs.chunks[given.passage]
    if wanted not in chunk.folded or (len(wanted) < _MIN_QUOTE and wanted != chunk.folded):
        return Cited(-1, given.text[:MAX_QUOTE])
    pattern = r"\s+".join(re.escape(word) for word in collapse(given.text).split(" "))
    original = re.search(pattern, chunk.text, re.IGNORECASE)
    return Cited(given.passage, quote(collapse(original[0] if original else given.text)))


def _reason(answer: _Answer, criterion: JSONMapping, inputs: Inputs, passages: Collection[int]) -> str:
    public = [criterion["title"], criterion.get("remediation") or "", *(inputs.chunks[each].text for each in passages)]
    otherwise = "The evidence below supports this level." if answer.quotes else "No evidence was found."
    return presentable(answer.reason, private_texts(criterion), public) or otherwise
