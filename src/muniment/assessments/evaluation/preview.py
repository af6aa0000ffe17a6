"""A preview of a specification, judged by rules before anything is charged. Nothing is stored."""

import math
import time
from contextlib import closing
from itertools import chain

from muniment.assessments.evaluation.aggregation import aggregate
from muniment.assessments.evaluation.inputs import Inputs, read_inputs
from muniment.assessments.evaluation.judgement import settle
from muniment.assessments.evaluation.rules import Rules
from muniment.kernel.json import JSONMapping, JSONObject


def preview_report(specification: JSONMapping, facts: JSONMapping, *, currency: str) -> JSONObject:
    """Return the overall score and the sections of a report about *facts*, as a run judges them by rules."""
    found = judged_by_rules(specification, read_inputs(facts, (), currency=currency))
    assert found is not None  # noqa: S101 - there is no deadline
    return aggregate(specification, found)


def judged_by_rules(
    specification: JSONMapping, inputs: Inputs, *, deadline: float = math.inf
) -> dict[str, JSONObject] | None:
    """Return each criterion as a run settles it by rules, by id; None if this takes until *deadline* (monotonic)."""
    criteria = list(chain.from_iterable(section["criteria"] for section in specification["sections"]))
    scale = (specification["scale"]["min"], specification["scale"]["max"])
    found: dict[str, JSONObject] = {}
    with closing(Rules().judge(criteria, scale, inputs)) as judging:
        for judged in judging:
            if time.monotonic() >= deadline:
                return None
            if judged is not None:
                criterion = criteria[judged.number]
                found[criterion["id"]] = settle(criterion, scale, judged.judgement, inputs)
    return found
