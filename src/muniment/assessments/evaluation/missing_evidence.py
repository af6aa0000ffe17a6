"""The kinds of evidence that a specification asks for and a company lacks. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.frameworks.specification import SOURCES

_HINTS: Final = {
    "profile": "Fill in the listing's profile.",
    "positions": "List the people and their titles.",
    "proposals": "List the proposals with their votes.",
    "capTable": "List the token holders.",
    "distribution": "Describe how tokens are distributed.",
    "documents": "Send documents with upload_document or create_document_upload, and name them in documentIds.",
}


def missing_evidence(specification: JSONMapping, facts: JSONMapping, document_ids: Sequence[str]) -> list[JSONObject]:
    """Return each missing source, the number of criteria that ask for it, and what to do."""
    wanted: Counter[str] = Counter()
    for section in specification["sections"]:
        for criterion in section["criteria"]:
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
