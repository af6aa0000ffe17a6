"""Evaluators of plugins. Their quotes are verified like those of every evaluator."""

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings

from muniment import config
from muniment.assessments.evaluation.inputs import Inputs
from muniment.assessments.evaluation.judgement import Cited, Judged, Judgement, Judging, Support, Usage
from muniment.assessments.evaluation.rules import Rules
from muniment.kernel.json import JSONMapping
from muniment.plugins.loading import installed
from muniment.plugins.values import Evaluator, Passage, Verdict

BUILT_IN: Final = frozenset({"rules", "model"})
RATIONALE_CHARACTERS: Final = 2_000


class EvaluatorMissing(Exception):  # noqa: N818 - names the condition
    """No plugin that works has the evaluator that the settings name."""


class PluggedEvaluator:
    """Judges by the evaluator of a plugin, except criteria that the framework leaves to rules."""

    kind = "plugin"
    batch = 1
    model: str | None = None
    prompt_hash: str | None = None
    spent = Usage()

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._rules = Rules()

    def judge(self, criteria: Sequence[JSONMapping], scale: tuple[float, float], inputs: Inputs) -> Judging:
        passages = [Passage(number=n, source=each.source, text=each.text) for n, each in enumerate(inputs.chunks)]
        for number, criterion in enumerate(criteria):
            yield None  # the caller looks whether the run was canceled
            if criterion.get("evaluator") == "rules":
                yield Judged(number, self._rules.judge_one(criterion, scale, inputs), "rules")
                continue
            verdict = self._evaluator.judge(criterion=dict(criterion), scale=scale, passages=passages)
            yield Judged(number, _judgement(verdict), "plugin")


def _judgement(verdict: Verdict) -> Judgement:
    cited = tuple(Cited(int(each.passage), str(each.text)) for each in verdict.quotes)
    return Judgement(
        applies=bool(verdict.applies),
        supports=(Support(float(verdict.level), cited),) if cited else (),
        confidence=min(max(float(verdict.confidence), 0.0), 1.0),
        rationale=str(verdict.rationale)[:RATIONALE_CHARACTERS],
    )


def chosen_evaluator(framework_id: str) -> str:
    """Return the name of the evaluator that the settings choose for a framework: rules, model, or that of a plugin."""
    chosen = config.current().evaluator
    return chosen.get(framework_id) or chosen.get("") or ("model" if settings.MODEL.url else "rules")


def plugged_evaluator(name: str) -> PluggedEvaluator:
    """Return the evaluator of a plugin by its name; raise EvaluatorMissing if there is none."""
    for call in installed().calls("evaluators"):
        found: Any = call() or ()
        for evaluator in found:
            if evaluator.name == name:
                return PluggedEvaluator(evaluator)
    raise EvaluatorMissing(name)
