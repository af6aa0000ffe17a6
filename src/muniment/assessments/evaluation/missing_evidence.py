"""The kinds of evidence that a specification asks for and a company lacks. Pure."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

from muniment.assessments.evaluation.inputs import Inputs, read_inputs
from muniment.assessments.evaluation.rules import holds
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.frameworks.specification import PHRASES, SOURCES

_HINTS: Final = {
    "profile": "Fill in the listing's profile.",
    "positions": "List the people and their titles.",
    "proposals": "List the proposals with their votes.",
    "capTable": "List the token holders.",
    "distribution": "Describe how tokens are distributed.",
    "documents": "Send documents with upload_document or create_document_upload, and name them in documentIds.",
}


def missing_evidence(specification: JSONMapping, facts: JSONMapping, document_ids: Sequence[str]) -> list[JSONObject]:
    """
    Return each missing source, the number of criteria that ask for it, and what to do.

    Criteria that do not apply, as far as the listing tells, ask for nothing.
    """
    wanted: Counter[str] = Counter()

    @cache
    def listing() -> Inputs:
        return read_inputs(facts, ())

    for section in specification["sections"]:
        for criterion in section["criteria"]:
            condition = criterion.get("appliesIf")
            if condition and condition["op"] not in PHRASES and not holds(condition, listing())[0]:
                continue
            sources = set((criterion.get("evidence") or {}).get("sources") or ())
            sources |= {check.get("in", "documents") for check in criterion.get("checks") or () if "terms" in check}
            if not sources and not criterion.get("checks"):
                sources = {"documents"}
            wanted.update(sources)
    present = {"profile", *(part for part in SOURCES if facts.get(part)), *(["documents"] if document_ids else [])}
    return [
        {"source": source, "criteria": wanted[source], "hint": _HINTS[source]}
        for source in SOURCES
        if wanted[source] and source not in present
    ]
