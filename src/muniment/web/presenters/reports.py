"""Present a report on a page: charts, criteria, and the source of each quote."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext, gettext_lazy

from muniment.assessments.evaluation.markdown import STATUSES
from muniment.assessments.models import Report
from muniment.documents.models import DocumentState
from muniment.documents.records import reachable
from muniment.kernel.actor import VISITOR, Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.web.presenters.charts import ChartSlice, bar, stacked_bar

SOURCES: Final = {
    "profile": gettext_lazy("Profile"),
    "positions": gettext_lazy("Team"),
    "proposals": gettext_lazy("Proposals"),
    "capTable": gettext_lazy("Token holders"),
    "distribution": gettext_lazy("Token distribution"),
    "documents": gettext_lazy("Documents"),
}
"""Names of the sources of evidence."""
TONES: Final = {"met": "good", "partial": "wait", "not_met": "bad"}
SHADES: Final = {**TONES, "not_applicable": "none"}
"""Tones of a chart's parts; a criterion without enough evidence has none."""
FIRST: Final = ("not_met", "insufficient", "partial")
"""Statuses that need action, the most urgent first."""
MOST_FIRST: Final = 5
SHOW_IT: Final = gettext_lazy("Add evidence to the listing or upload a document, then run the framework again.")


def shown(report: Report, reader: Actor = VISITOR) -> JSONObject:
    """
    Return the context of ``part/findings.html``.

    Args:
        reader: quotes name and link only the documents that the reader may open.
    """
    document = report.document
    criteria = [each for section in document["sections"] for each in section["criteria"]]
    counts = Counter(each["status"] for each in criteria)
    names = _documents(criteria, reader)
    sections = [
        {
            **section,
            "criteria": [_criterion(each, names, f"c{place}-{n}") for n, each in enumerate(section["criteria"], 1)],
        }
        for place, section in enumerate(document["sections"], 1)
    ]
    waiting = [each for section in sections for each in section["criteria"] if each["status"] in FIRST]
    waiting.sort(key=lambda each: FIRST.index(each["status"]))
    scored = [
        ChartSlice(section["title"], section["score"], f"{section['score']:g}")
        for section in document["sections"]
        if section["score"] is not None
    ]
    counted = [
        ChartSlice(word, counts[status], rest=True, tone=SHADES.get(status, ""))
        for status, word in STATUSES.items()
        if counts[status]
    ]
    by_section = gettext("Each section's score out of 100.")
    by_status = gettext("How many criteria are met, partly met, not met, without enough evidence, or not applicable.")
    return {
        "report": document,
        "created": report.created_at,
        "sections": sections,
        "first": waiting[:MOST_FIRST],
        "coverage": round(100 * document["overall"]["coverage"]),
        "confidence": round(100 * document["overall"]["confidence"]),
        "scores": bar(gettext("Score by section"), by_section, scored, unit=gettext("Score"), of=100),
        "statuses": stacked_bar(gettext("Criteria by status"), by_status, counted, unit=gettext("Criteria")),
    }


def _documents(criteria: list[Any], reader: Actor) -> dict[str, tuple[str, bool]]:
    """Return the name of each cited document that *reader* may open, and whether it has pages, by id."""
    cited = {one["documentId"] for each in criteria for one in each["citations"] if one["documentId"]}
    found = reachable(reader).filter(pk__in=cited, state=DocumentState.READY, deleted_at__isnull=True)
    return {each.pk: (each.filename, each.content_type == "application/pdf") for each in found}


def _criterion(criterion: JSONMapping, names: Mapping[str, tuple[str, bool]], anchor: str) -> JSONObject:
    status = criterion["status"]
    return {
        **criterion,
        "anchor": anchor,
        "word": STATUSES[status],
        "tone": TONES.get(status, ""),
        "citations": [_citation(one, names) for one in criterion["citations"]],
        "next": criterion["remediation"] or (SHOW_IT if status in FIRST else ""),
    }


def _citation(citation: JSONMapping, names: Mapping[str, tuple[str, bool]]) -> JSONObject:
    """Return a quote with the name of its source, and the address where the reader may open it."""
    word = SOURCES.get(citation["source"], citation["source"])
    if not citation["documentId"]:
        return {**citation, "word": word, "address": "", "page": None}
    name, has_pages = names.get(citation["documentId"], ("", False))
    address = f"/manage/documents/{citation['documentId']}/file" if name else ""
    if address and has_pages and citation["page"]:
        address += f"#page={citation['page']}"
    return {**citation, "word": name or gettext("Document"), "address": address}
