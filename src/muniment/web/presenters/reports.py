"""Present a report on a page: charts, criteria, and the source of each quote."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext, gettext_lazy

from muniment.assessments.evaluation.judgement import gains
from muniment.assessments.models import Report
from muniment.assessments.report_views import SCORES, STATUSES, statuses_of
from muniment.documents.models import DocumentState
from muniment.documents.records import reachable
from muniment.kernel.actor import VISITOR, Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.languages.translated import translated
from muniment.schema.company_parts import CAP_TABLE_ENTRY, DISTRIBUTION, POSITION, PROPOSAL
from muniment.schema.kinds import Amount, Items, Kind
from muniment.schema.record import Record
from muniment.web.presenters import markdown, scores
from muniment.web.presenters.charts import ChartSlice, stacked_bar
from muniment.web.presenters.company import day_or_text
from muniment.web.presenters.values import kind_of, said
from muniment.web.wording.labels import words_of

SOURCES: Final = {
    "profile": gettext_lazy("Listing"),
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
"""Statuses that need action; of equal gains, the most urgent first."""
MOST_FIRST: Final = 5
MAX_QUOTE: Final = 4_000
SUPPORTED: Final = "The evidence below supports this level."
"""The rationale that evaluators give where the quotes alone tell why; a page shows only the quotes."""
EXCLUDED: Final = "Does not apply to this organization."
"""The rationale that rules give for a criterion whose state says the same."""
_VALUE: Final = re.compile(r"(?:^|; )([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*): ")
"""The beginning of a fact in a quote from a listing: its path, as the snapshot of a run names it."""
SHOW_IT: Final = gettext_lazy("Add evidence to the listing or upload a document, then run the framework again.")


def shown(report: Report, reader: Actor = VISITOR) -> JSONObject:
    """
    Return the context of ``part/findings.html``.

    Args:
        reader: quotes name and link only the documents that the reader may open.
    """
    document = report.shown
    criteria = [each for section in document["sections"] for each in section["criteria"]]
    counts: Counter[str] = Counter()
    for section in document["sections"]:
        counts.update(statuses_of(section))
    names = _documents(criteria, reader)
    sections = [
        {
            **section,
            "criteria": [_criterion(each, names, f"c{place}-{n}") for n, each in enumerate(section["criteria"], 1)],
        }
        for place, section in enumerate(document["sections"], 1)
    ]
    waiting = [each for section in sections for each in section["criteria"] if each["status"] in FIRST]
    rises = gains(report.run.specification.document, document)
    waiting.sort(key=lambda each: (-rises.get(each["id"], 0), FIRST.index(each["status"])))
    counted = [
        ChartSlice(gettext(word), counts[status], rest=True, tone=SHADES.get(status, ""))
        for status, word in STATUSES.items()
        if counts[status]
    ]
    by_status = gettext("How many criteria are met, partly met, not met, without enough evidence, or not applicable.")
    return {
        "report": document,
        "hides_criteria": document["shows"] == SCORES,
        "created": report.created_at,
        "sections": sections,
        "first": waiting[:MOST_FIRST],
        "first_total": len(waiting),
        "coverage": round(100 * document["overall"]["coverage"]),
        "confidence": round(100 * document["overall"]["confidence"]),
        "scores": scores.sections_chart(document["sections"]),
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
        "word": gettext(STATUSES[status]),
        "tone": TONES.get(status, ""),
        "citations": [_citation(one, names) for one in criterion["citations"]],
        "rationale": "" if criterion["rationale"] in {SUPPORTED, EXCLUDED} else translated(criterion["rationale"]),
        "next": criterion["remediation"] or (SHOW_IT if status in FIRST else ""),
    }


def _citation(citation: JSONMapping, names: Mapping[str, tuple[str, bool]]) -> JSONObject:
    """Return a quote with the name of its source, and the address where the reader may open it."""
    word = SOURCES.get(citation["source"], citation["source"])
    if not citation["documentId"]:
        rows = list(_values(citation["source"], citation["quote"]))
        quote = "" if rows else markdown.plain(citation["quote"], MAX_QUOTE)
        return {**citation, "word": word, "address": "", "page": None, "rows": rows, "quote": quote}
    name, has_pages = names.get(citation["documentId"], ("", False))
    address = f"/manage/documents/{citation['documentId']}/file" if name else ""
    if address and has_pages and citation["page"]:
        address += f"#page={citation['page']}"
    return {**citation, "word": name or gettext("Document"), "address": address}


def _values(source: str, quote: str) -> Iterator[tuple[str, str]]:
    """Yield the facts in a quote from a listing, with the labels that its form has; none of a quote from a text."""
    record = _RECORDS[source]() if source in _RECORDS else None
    found = list(_VALUE.finditer(quote))
    if record is None or not found or found[0].start():
        return
    ends = [each.start() for each in found[1:]] + [len(quote)]
    for each, end in zip(found, ends, strict=True):
        label, kind = _labeled(record, each[1])
        yield label, _shown(quote[each.end() : end], kind)


_RECORDS: Final = {
    "profile": lambda: settings.SCHEMA.company,
    "positions": lambda: POSITION,
    "proposals": lambda: PROPOSAL,
    "capTable": lambda: CAP_TABLE_ENTRY,
    "distribution": lambda: DISTRIBUTION,
}


def _labeled(record: Record, path: str) -> tuple[str, Kind | None]:
    """Return the labels along a path, such as ``Links · Email`` for ``socials.email``, and what its value is."""
    labels = []
    kind: Kind | None = record
    for name in path.split("."):
        inner = kind.of if isinstance(kind, Items) else kind
        if isinstance(inner, Amount) and name == "amount":
            break  # the label of the field says it
        field = inner.by_name.get(name) if isinstance(inner, Record) else None
        labels.append(gettext(field.label).partition(" (")[0] if field else words_of(name))
        if record is settings.SCHEMA.company:
            kind = kind_of(field)
        else:
            kind = field.kind if field else None
    return " · ".join(labels), kind


def _shown(value: str, kind: Kind | None) -> str:
    """Return a value of a snapshot in words."""
    if value in {"true", "false"}:
        return gettext("Yes") if value == "true" else gettext("No")
    if not kind:
        return day_or_text(value)
    return said(value, kind.of if isinstance(kind, Items) else kind)
