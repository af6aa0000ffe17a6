"""Present a report on a page: charts, criteria, and the source of each quote."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

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
from muniment.web.presenters.values import kind_of, value_text
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
    documents = _documents(document["sections"], reader)
    counts: Counter[str] = Counter()
    sections, unmet = [], []
    for place, section in enumerate(document["sections"], 1):
        # A report may show the scores of its sections alone: then it has counts of their criteria, but no criteria.
        counts.update(statuses_of(section))
        criteria = []
        for number, criterion in enumerate(section["criteria"], 1):
            criteria.append(_criterion(criterion, documents, f"c{place}-{number}"))
        sections.append({**section, "criteria": criteria})
        unmet += [criterion for criterion in criteria if criterion["status"] in FIRST]
    rises = gains(report.run.specification.document, document)
    unmet.sort(key=lambda criterion: (-rises.get(criterion["id"], 0), FIRST.index(criterion["status"])))
    slices = []
    for status, word in STATUSES.items():
        if counts[status]:
            slices.append(ChartSlice(gettext(word), counts[status], rest=True, tone=SHADES.get(status, "")))
    by_status = gettext("How many criteria are met, partly met, not met, without enough evidence, or not applicable.")
    return {
        "report": document,
        "hides_criteria": document["shows"] == SCORES,
        "created": report.created_at,
        "sections": sections,
        "first": unmet[:MOST_FIRST],
        "first_total": len(unmet),
        "coverage": round(100 * document["overall"]["coverage"]),
        "confidence": round(100 * document["overall"]["confidence"]),
        "scores": scores.sections_chart(document["sections"]),
        "statuses": stacked_bar(gettext("Criteria by status"), by_status, slices, unit=gettext("Criteria")),
    }


def _documents(sections: Sequence[JSONMapping], reader: Actor) -> dict[str, tuple[str, bool]]:
    """Return the name of each cited document that *reader* may open, and whether it has pages, by id."""
    cited_ids: set[str] = set()
    for section in sections:
        for criterion in section["criteria"]:
            cited_ids.update(citation["documentId"] for citation in criterion["citations"] if citation["documentId"])
    documents = reachable(reader).filter(pk__in=cited_ids, state=DocumentState.READY, deleted_at__isnull=True)
    return {document.pk: (document.filename, document.content_type == "application/pdf") for document in documents}


def _criterion(criterion: JSONMapping, documents: Mapping[str, tuple[str, bool]], anchor: str) -> JSONObject:
    status = criterion["status"]
    rationale = ""
    if criterion["rationale"] not in {SUPPORTED, EXCLUDED}:
        rationale = translated(criterion["rationale"])
    next_step = criterion["remediation"]
    if not next_step and status in FIRST:
        next_step = SHOW_IT
    return {
        **criterion,
        "anchor": anchor,
        "word": gettext(STATUSES[status]),
        "tone": TONES.get(status, ""),
        "citations": [_citation(citation, documents) for citation in criterion["citations"]],
        "rationale": rationale,
        "next": next_step,
    }


def _citation(citation: JSONMapping, documents: Mapping[str, tuple[str, bool]]) -> JSONObject:
    """Return a quote with the name of its source, and the address where the reader may open it."""
    word = SOURCES.get(citation["source"], citation["source"])
    if not citation["documentId"]:
        rows = list(_values(citation["source"], citation["quote"]))
        quote = "" if rows else markdown.plain(citation["quote"], MAX_QUOTE)
        return {**citation, "word": word, "address": "", "page": None, "rows": rows, "quote": quote}
    name, has_pages = documents.get(citation["documentId"], ("", False))
    address = f"/manage/documents/{citation['documentId']}/file" if name else ""
    if address and has_pages and citation["page"]:
        address += f"#page={citation['page']}"
    return {**citation, "word": name or gettext("Document"), "address": address}


def _values(source: str, quote: str) -> Iterator[tuple[str, str]]:
    """Yield the facts in a quote from a listing, with the labels that its form has; none of a quote from a text."""
    if source not in _RECORDS:
        return
    facts = list(_VALUE.finditer(quote))
    # A quote that does not begin with a path is of running text, where any word before a colon looks like a path.
    if not facts or facts[0].start():
        return
    record = _RECORDS[source]()
    ends = [fact.start() for fact in facts[1:]] + [len(quote)]
    for fact, end in zip(facts, ends, strict=True):
        label, kind = _label_and_kind(record, fact[1])
        yield label, _fact_text(quote[fact.end() : end], kind)


_RECORDS: Final = {
    "profile": lambda: settings.SCHEMA.company,
    "positions": lambda: POSITION,
    "proposals": lambda: PROPOSAL,
    "capTable": lambda: CAP_TABLE_ENTRY,
    "distribution": lambda: DISTRIBUTION,
}


def _label_and_kind(record: Record, path: str) -> tuple[str, Kind | None]:
    """Return the labels along a path, such as ``Links · Email`` for ``socials.email``, and the kind of its value."""
    labels = []
    kind: Kind | None = record
    for name in path.split("."):
        inner = kind.of if isinstance(kind, Items) else kind
        if isinstance(inner, Amount) and name == "amount":
            break  # the label of the field says it
        field = inner.by_name.get(name) if isinstance(inner, Record) else None
        if field:
            labels.append(gettext(field.label).partition(" (")[0])
        else:
            labels.append(words_of(name))
        # The choices of an operator are shown unchanged, and operators declare fields of companies, not of their parts.
        if record is settings.SCHEMA.company:
            kind = kind_of(field)
        else:
            kind = field.kind if field else None
    return " · ".join(labels), kind


def _fact_text(value: str, kind: Kind | None) -> str:
    """Return a value of a snapshot, which is JSON or plain text, as pages write it."""
    if value == "true":
        return gettext("Yes")
    if value == "false":
        return gettext("No")
    if not kind:
        return day_or_text(value)
    if isinstance(kind, Items):
        kind = kind.of
    return value_text(value, kind)
