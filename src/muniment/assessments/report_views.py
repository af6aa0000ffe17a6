"""A report shortened to what fits an agent's context: the summary, or as much of the whole as fits."""

from collections.abc import Mapping
from typing import Final

import msgspec

from muniment.assessments.comparison import Comparison
from muniment.assessments.evaluation.disclosure import statuses_of
from muniment.assessments.evaluation.markdown import to_markdown
from muniment.assessments.models import Report
from muniment.kernel.json import JSONMapping, JSONObject

BUDGET_BYTES: Final = 56_000
"""Below the 60 KB limit of a response, because text inside JSON is escaped."""
MAX_NEXT: Final = 10
MAX_COMPARED: Final = 100
MAX_TITLE: Final = 120
_STEPS: Final = ((3, 300), (2, 200), (1, 200), (1, 100), (0, 0))
_SHORTER: Final = ((100, 300), (100, 100), (25, 100), (5, 100))
"""The limits of sections and of characters per text, tried in order until a summary fits."""
_URGENT: Final = {"not_met": 0, "insufficient": 1, "partial": 2}


def summary(report: JSONMapping, url: str, rises: Mapping[str, float] | None = None) -> JSONObject:
    """
    Return the scores, the number of criteria per status and the next steps; shortened until it fits.

    Args:
        rises: by how much each criterion would raise the score; the next steps begin with the largest.
    """
    shown = _summary(report, url, rises or {})
    for most, characters in _SHORTER:
        if _size(shown) <= BUDGET_BYTES:
            break
        total = len(report["sections"])
        shown["sections"] = [_short(each, characters) for each in shown["sections"][:most]]
        shown["next"] = [_short(each, characters) for each in shown["next"][:most]]
        shown = {**shown, "sectionsTotal": total, "truncated": True}
    return shown


def _short(record: JSONMapping, characters: int) -> JSONObject:
    long = {key: each for key, each in record.items() if isinstance(each, str) and len(each) > characters}
    return {**record, **{key: f"{each[:characters].rstrip()}…" for key, each in long.items()}}


def _summary(report: JSONMapping, url: str, rises: Mapping[str, float]) -> JSONObject:
    sections = []
    waiting = []
    for section in report["sections"]:
        sections.append({**{key: section[key] for key in ("id", "title", "score")}, "criteria": statuses_of(section)})
        waiting += [criterion for criterion in section["criteria"] if criterion["status"] in _URGENT]
    waiting.sort(key=lambda criterion: (-rises.get(criterion["id"], 0), _URGENT[criterion["status"]]))
    following = [{key: each[key] for key in ("id", "title", "status", "remediation")} for each in waiting[:MAX_NEXT]]
    return {**report, "sections": sections, "next": following, "nextTotal": len(waiting), "url": url}


def full(report: JSONMapping, url: str, rises: Mapping[str, float] | None = None) -> JSONObject:
    """Return the whole report, with fewer and shorter quotes (and ``truncated``) if it would not fit."""
    whole = {**report, "url": url}
    if _size(whole) <= BUDGET_BYTES:
        return whole
    for most, characters in _STEPS:
        cut = {**_cut(report, most, characters), "truncated": True, "url": url}
        if _size(cut) <= BUDGET_BYTES:
            return cut
    return {**summary(report, url, rises), "truncated": True}


def compared(found: Comparison, url: str) -> JSONObject:
    """Return two reports' scores and the criteria that changed, the most urgent first; fewer if all would not fit."""
    changed = [
        {
            "section": _clipped(each.section),
            "title": _clipped(each.title),
            "course": each.course,
            **{side: _verdict(value) for side, value in (("before", each.before), ("after", each.after))},
        }
        for each in found.changed
    ]
    sections = [{"title": _clipped(each.title), "before": each.before, "after": each.after} for each in found.sections]
    return {
        **{side: _side(report) for side, report in (("before", found.before), ("after", found.after))},
        "shows": found.shows,
        "sections": sections[:MAX_COMPARED],
        "changed": changed[:MAX_COMPARED],
        "changedTotal": found.changed_total,
        "unchangedTotal": found.unchanged_total,
        "url": url,
    }


def _side(report: Report) -> JSONObject:
    shown = {key: report.document[key] for key in ("runId", "reportId", "createdAt", "specificationVersion")}
    return {**shown, "score": report.document["overall"]["score"]}


def _verdict(criterion: JSONMapping | None) -> JSONObject | None:
    return {key: criterion[key] for key in ("status", "level", "maxLevel")} if criterion else None


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_TITLE else f"{text[:MAX_TITLE].rstrip()}…"


def markdown(report: JSONMapping, url: str) -> str:
    """Return the report as Markdown, shortened like :func:`full`."""
    text = to_markdown(report)
    for most, characters in _STEPS:
        if _size(text) <= BUDGET_BYTES:
            return text
        text = f"{to_markdown(_cut(report, most, characters))}\nQuotes were shortened. Full report: {url}\n"
    if _size(text) <= BUDGET_BYTES:
        return text
    return f"{text.encode()[: BUDGET_BYTES // 2].decode(errors='ignore')}\n\nTruncated. Full report: {url}\n"


def _cut(report: JSONMapping, most: int, characters: int) -> JSONObject:
    def shortened(criterion: JSONMapping) -> JSONObject:
        quotes = [{**each, "quote": each["quote"][:characters]} for each in criterion["citations"][:most]]
        return {**criterion, "citations": quotes}

    sections = [
        {**section, "criteria": [shortened(criterion) for criterion in section["criteria"]]}
        for section in report["sections"]
    ]
    return {**report, "sections": sections}


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))
