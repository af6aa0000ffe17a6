"""Before a run is paid: a specification judged by rules, and the evidence that a company lacks. Nothing is stored."""

import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Final

from muniment.assessments.evaluation.inputs import Inputs, read_inputs
from muniment.assessments.evaluation.judgement import aggregate, settle
from muniment.assessments.evaluation.rules import Rules, holds
from muniment.assessments.report_views import SCORES, shown_by
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.frameworks.specification import PHRASES, SOURCES

MAX_TITLES: Final = 10
_HINTS: Final = {
    "profile": "Fill in the listing's profile.",
    "positions": "List the people and their titles.",
    "proposals": "List the proposals with their votes.",
    "capTable": "List the token holders.",
    "distribution": "Describe how tokens are distributed.",
    "documents": "Send documents with upload_document or create_document_upload, and name them in documentIds.",
}
_UNSUPPORTED: Final = {
    "documents": "The documents in documentIds hold no evidence for these criteria. Name others that do.",
}
_NOTHING_FOUND: Final = "The listing holds no evidence for these criteria. Complete this part of it."


def preview_report(specification: JSONMapping, facts: JSONMapping, *, currency: str) -> JSONObject:
    """Return the overall score and the sections of a report about *facts*, as a run judges them by rules."""
    settled = judged_by_rules(specification, read_inputs(facts, (), currency=currency))
    assert settled is not None  # noqa: S101 - there is no deadline
    return aggregate(specification, settled)


def judged_by_rules(
    specification: JSONMapping, inputs: Inputs, *, deadline: float = math.inf
) -> dict[str, JSONObject] | None:
    """Return each criterion as a run settles it by rules, by id; None if this takes until *deadline* (monotonic)."""
    criteria = list(chain.from_iterable(section["criteria"] for section in specification["sections"]))
    scale = (specification["scale"]["min"], specification["scale"]["max"])
    settled: dict[str, JSONObject] = {}
    with closing(Rules().judge(criteria, scale, inputs)) as judging:
        for judged in judging:
            if time.monotonic() >= deadline:
                return None
            if judged is not None:
                criterion = criteria[judged.number]
                settled[criterion["id"]] = settle(criterion, scale, judged.judgement, inputs)
    return settled


def missing_evidence(
    specification: JSONMapping,
    facts: JSONMapping,
    document_ids: Sequence[str],
    unsupported: Collection[str] = (),
) -> list[JSONObject]:
    """
    Return each source that lacks evidence, the number of criteria that ask for it, and what to do.

    Criteria that do not apply, as far as the listing tells, ask for nothing. Titles are given where reports show them.

    Args:
        unsupported: ids of criteria for which nothing was found, although their sources may be there.
    """
    present = {"profile"}
    present.update(source for source in SOURCES if facts.get(source))
    if document_ids:
        present.add("documents")
    titles: dict[str, list[str]] = {}
    for criterion in _applying(specification, facts):
        for source in _sources_of(criterion):
            if source not in present or criterion["id"] in unsupported:
                titles.setdefault(source, []).append(criterion["title"])
    shows_titles = shown_by(specification) != SCORES
    missing: list[JSONObject] = []
    for source in SOURCES:
        if source not in titles:
            continue
        entry: JSONObject = {"source": source, "criteria": len(titles[source])}
        if shows_titles:
            entry["titles"] = titles[source][:MAX_TITLES]
        if source in present:
            entry["hint"] = _UNSUPPORTED.get(source, _NOTHING_FOUND)
        else:
            entry["hint"] = _HINTS[source]
        missing.append(entry)
    return missing


def _is_ruled_out(criterion: JSONMapping, listing: Inputs) -> bool:
    """Return whether the listing tells that a criterion does not apply; phrases may be in documents."""
    condition = criterion.get("appliesIf")
    if not condition or condition["op"] in PHRASES:
        return False
    return not holds(condition, listing)[0]


def _applying(specification: JSONMapping, facts: JSONMapping) -> Iterator[JSONMapping]:
    """Yield the criteria that apply to a listing, as far as it tells."""
    listing = read_inputs(facts, ())
    for section in specification["sections"]:
        for criterion in section["criteria"]:
            if not _is_ruled_out(criterion, listing):
                yield criterion


def _sources_of(criterion: JSONMapping) -> set[str]:
    """Return the sources that can support a criterion."""
    sources = set((criterion.get("evidence") or {}).get("sources") or ())
    sources_of_facts = set()
    for check in criterion.get("checks") or ():
        if "terms" in check:
            sources.add(check.get("in", "documents"))
        else:
            root = check["path"].partition(".")[0]
            source = root if root in SOURCES else "profile"
            sources_of_facts.add(source)
    # What the criterion names is what to complete; the facts that its checks read say so only where it names nothing.
    return sources or sources_of_facts or {"documents"}
