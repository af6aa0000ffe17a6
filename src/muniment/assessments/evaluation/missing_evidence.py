"""The kinds of evidence that a specification asks for and a company lacks. Pure."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Final

from muniment.assessments.evaluation.disclosure import SCORES, shown_by
from muniment.assessments.evaluation.inputs import Inputs, read_inputs
from muniment.assessments.evaluation.rules import holds
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
    present = {"profile", *(part for part in SOURCES if facts.get(part)), *(["documents"] if document_ids else [])}
    titles: dict[str, list[str]] = {}

    @cache
    def listing() -> Inputs:
        return read_inputs(facts, ())

    for section in specification["sections"]:
        for criterion in section["criteria"]:
            condition = criterion.get("appliesIf")
            if condition and condition["op"] not in PHRASES and not holds(condition, listing())[0]:
                continue
            for source in _sources_of(criterion):
                if source not in present or criterion["id"] in unsupported:
                    titles.setdefault(source, []).append(criterion["title"])
    shows_titles = shown_by(specification) != SCORES
    return [
        {
            "source": source,
            "criteria": len(titles[source]),
            **({"titles": titles[source][:MAX_TITLES]} if shows_titles else {}),
            "hint": _UNSUPPORTED.get(source, _NOTHING_FOUND) if source in present else _HINTS[source],
        }
        for source in SOURCES
        if source in titles
    ]


def _sources_of(criterion: JSONMapping) -> set[str]:
    """Return the sources that can support a criterion."""
    checks = criterion.get("checks") or ()
    sources = set((criterion.get("evidence") or {}).get("sources") or ())
    sources |= {check.get("in", "documents") for check in checks if "terms" in check}
    if sources or not checks:
        return sources or {"documents"}
    roots = {check["path"].partition(".")[0] for check in checks}
    return {root if root in SOURCES else "profile" for root in roots}
