"""
What a model answered: read by a closed form, or not at all.

Source: assessment-spec/1, flow and evaluators.
"""

import re
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Annotated, Any, Final

import msgspec

from muniment.assessments.evaluation.inputs import Inputs
from muniment.assessments.evaluation.judgement import MAX_CITATIONS, Cited, Judgement, Support, stands
from muniment.assessments.evaluation.language_model.prompt import private_texts
from muniment.assessments.evaluation.language_model.reasons import presentable
from muniment.assessments.evaluation.words import MAX_QUOTE, collapse, fold, quote

_LEAST: Final = 8
"""Characters of a quote that is not its whole passage: fewer stand everywhere and show nothing."""
_FENCE: Final = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


class Unusable(Exception):  # noqa: N818 - an outcome of reading
    """
    An answer that is none.

    Args:
        message: for the model; it may repeat what the model said.
        why: for the log, in our own words.
    """

    def __init__(self, message: str, why: str = "it misses the form") -> None:
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
    criterion: Mapping[str, Any],
    scale: tuple[float, float],
    inputs: Inputs,
    passages: Collection[int],
    *,
    forgiving: bool,
) -> Judgement:
    """
    Give the judgement that an answer holds.

    Args:
        passages: the chunks that the model was shown; others it cannot quote.
        forgiving: take an answer whose quotes are not all found; what they carried falls when it is settled.

    Raises:
        Unusable: it is not of the form, is about another criterion, or leaves the scale.
    """
    fenced = _FENCE.match(text.strip())
    try:
        answer = msgspec.json.decode(fenced[1] if fenced else text, type=_Answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unusable(f"The answer is not one JSON object of the form: {error}.") from None
    if answer.criterionId != criterion["id"]:
        raise Unusable("criterionId is not the id of the criterion that was asked.")
    low, high = scale
    levels = [each.level for each in answer.quotes] + ([] if answer.level is None else [answer.level])
    if not all(low <= level <= high for level in levels):
        raise Unusable(f"A level is outside the scale from {low:g} to {high:g}.")
    cited = [(_cited(each, inputs, passages), each.level) for each in answer.quotes]
    if not forgiving and not all(stands(each, inputs.chunks) for each, _ in cited):
        raise Unusable(
            "A quote does not stand in the passage that it names, or is too short. Copy each character for character."
        )
    return Judgement(
        supports=_supports(cited, answer.level),
        confidence=answer.confidence,
        rationale=_reason(answer, criterion, inputs, passages),
    )


def _supports(cited: list[tuple[Cited, float]], level: float | None) -> tuple[Support, ...]:
    """Give for each level the quotes that carry it together, none above the level of the whole."""
    if level is None:
        return ()
    lowered = sorted(((min(each, level), found) for found, each in cited), key=lambda each: -each[0])
    return tuple(
        Support(reached, tuple(dict.fromkeys(found for _, found in group))[:MAX_CITATIONS])
        for reached, group in groupby(lowered, key=lambda each: each[0])
    )


def _cited(given: _Quote, inputs: Inputs, passages: Collection[int]) -> Cited:
    """Give a quote in the words of its passage; one that stands nowhere is given so that it is found nowhere."""
    wanted = fold(given.text)
    if given.passage not in passages:
        return Cited(-1, given.text[:MAX_QUOTE])
    chunk = inputs.chunks[given.passage]
    if wanted not in chunk.folded or (len(wanted) < _LEAST and wanted != chunk.folded):
        return Cited(-1, given.text[:MAX_QUOTE])
    pattern = r"\s+".join(re.escape(word) for word in collapse(given.text).split(" "))
    original = re.search(pattern, chunk.text, re.IGNORECASE)
    return Cited(given.passage, quote(collapse(original[0] if original else given.text)))


def _reason(answer: _Answer, criterion: Mapping[str, Any], inputs: Inputs, passages: Collection[int]) -> str:
    public = [criterion["title"], criterion.get("remediation") or "", *(inputs.chunks[each].text for each in passages)]
    shown = presentable(answer.reason, private_texts(criterion), public)
    if shown:
        return shown
    return "The quotes show what carries this level." if answer.quotes else "No evidence was found."
