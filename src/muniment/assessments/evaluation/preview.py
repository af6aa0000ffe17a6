"""The report of an unpublished specification, by rules and without documents. Nothing is stored or charged."""

from contextlib import closing
from itertools import chain

from muniment.assessments.evaluation.aggregation import aggregate
from muniment.assessments.evaluation.inputs import read_inputs
from muniment.assessments.evaluation.judgement import settle
from muniment.assessments.evaluation.rules import Rules
from muniment.kernel.json import JSONMapping, JSONObject


def preview_report(specification: JSONMapping, facts: JSONMapping, *, currency: str) -> JSONObject:
    """Return the overall score and the sections of a report about *facts*, as a run judges them by rules."""
    criteria = list(chain.from_iterable(section["criteria"] for section in specification["sections"]))
    scale = (specification["scale"]["min"], specification["scale"]["max"])
    inputs, found = read_inputs(facts, (), currency=currency), {}
    with closing(Rules().judge(criteria, scale, inputs)) as judging:
        for judged in judging:
            if judged is not None:
                criterion = criteria[judged.number]
                found[criterion["id"]] = settle(criterion, scale, judged.judgement, inputs)
    return aggregate(specification, found)
