"""
Which evaluator judges a framework: rules, a language model, or one of a plugin.

The quotes of a plugin's evaluator are verified like those of every evaluator.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings

from muniment import config
from muniment.assessments.evaluation.inputs import Inputs
from muniment.assessments.evaluation.judgement import Cited, Evaluator, Judged, Judgement, Judging, Support, Usage
from muniment.assessments.evaluation.language_model.evaluator import LanguageModel
from muniment.assessments.evaluation.rules import Rules
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.plugins import values
from muniment.plugins.loading import installed

BUILT_IN: Final = frozenset({"rules", "model"})
RATIONALE_CHARACTERS: Final = 2_000


def chosen_evaluator(framework_id: str) -> str:
    """Return the name of the evaluator that the settings choose for a framework: rules, model, or that of a plugin."""
    by_framework = config.current().evaluator
    built_in = "model" if settings.MODEL.url else "rules"
    return by_framework.get(framework_id) or by_framework.get("") or built_in


def evaluator_now(framework_id: str) -> JSONObject:
    """Return the evaluator that the settings choose; a model and a plugin receive passages of the evidence."""
    name = chosen_evaluator(framework_id)
    if name not in BUILT_IN:
        return {"kind": "plugin", "model": None, "name": name}
    model = settings.MODEL.name if name == "model" else None
    return {"kind": name, "model": model}


def choose_evaluator(spent: Usage, framework_id: str) -> Evaluator:
    """Return the evaluator that the settings choose; without the plugin that they name, the run is tried again."""
    name = chosen_evaluator(framework_id)
    if name not in BUILT_IN:
        return plugged_evaluator(name)
    if name == "model":
        return LanguageModel(settings.MODEL, spent)
    return Rules()


class EvaluatorMissing(Exception):  # noqa: N818 - names the condition
    """No plugin that works has the evaluator that the settings name."""


class PluggedEvaluator:
    """Judges by the evaluator of a plugin, except criteria that the framework leaves to rules."""

    kind = "plugin"
    batch = 1
    model: str | None = None
    prompt_hash: str | None = None
    spent = Usage()

    def __init__(self, evaluator: values.Evaluator) -> None:
        self._evaluator = evaluator
        self._rules = Rules()

    def judge(self, criteria: Sequence[JSONMapping], scale: tuple[float, float], inputs: Inputs) -> Judging:
        passages = []
        for number, chunk in enumerate(inputs.chunks):
            passages.append(values.Passage(number=number, source=chunk.source, text=chunk.text))
        for number, criterion in enumerate(criteria):
            yield None  # the caller looks whether the run was canceled
            if criterion.get("evaluator") == "rules":
                yield Judged(number, self._rules.judge_one(criterion, scale, inputs), "rules")
                continue
            verdict = self._evaluator.judge(criterion=dict(criterion), scale=scale, passages=passages)
            yield Judged(number, _judgement(verdict), "plugin")


def _judgement(verdict: values.Verdict) -> Judgement:
    cited = tuple(Cited(int(quote.passage), str(quote.text)) for quote in verdict.quotes)
    supports: tuple[Support, ...] = ()
    if cited:  # a level without a quote supports nothing
        supports = (Support(float(verdict.level), cited),)
    # Converted and cut, because a plugin can return anything.
    return Judgement(
        applies=bool(verdict.applies),
        supports=supports,
        confidence=min(max(float(verdict.confidence), 0.0), 1.0),
        rationale=str(verdict.rationale)[:RATIONALE_CHARACTERS],
    )


def plugged_evaluator(name: str) -> PluggedEvaluator:
    """Return the evaluator of a plugin by its name; raise EvaluatorMissing if there is none."""
    for call in installed().calls("evaluators"):
        evaluators: Any = call() or ()
        for evaluator in evaluators:
            if evaluator.name == name:
                return PluggedEvaluator(evaluator)
    raise EvaluatorMissing(name)
