"""
A report as readers see it: disclosed, as Markdown, and shortened to what fits an agent's context. Pure.

A report is stored whole, since scores and gains are computed from it. Everything that leaves the feature passes through
:func:`disclosed`, so that the criteria of a private specification cannot be rebuilt from one run.

Source: assessment-spec/1, report; decision 89.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from muniment.kernel.json import JSONMapping, JSONObject, bytes_of
from muniment.kernel.phrases.phrase import marked
from muniment.registry.frameworks.specification import REPORTS

SCORES, TITLES, REMEDIATION = REPORTS
"""Sections with their scores; also criteria with their titles, levels and quotes; also what to do about each."""
STATUSES: Final = {
    "met": marked("Met"),
    "partial": marked("Partly met"),
    "not_met": marked("Not met"),
    "insufficient": marked("Not enough evidence"),
    "not_applicable": marked("Does not apply"),
}
_URGENT: Final = {"not_met": 0, "insufficient": 1, "partial": 2}
BUDGET_BYTES: Final = 56_000
"""Below the 60 KB limit of a response, because text inside JSON is escaped."""
MAX_NEXT: Final = 10
_STEPS: Final = ((3, 300), (2, 200), (1, 200), (1, 100), (0, 0))
"""The limits of quotes per criterion and of characters per quote, tried in order until a whole report fits."""
_SHORTER: Final = ((100, 300), (100, 100), (25, 100), (5, 100))
"""The limits of sections and of characters per text, tried in order until a summary fits."""
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~!&])")


def shown_by(specification: JSONMapping) -> str:
    """Return what the reports of a specification show."""
    shows: str = specification.get("reports", SCORES)
    return shows


def disclosed(report: JSONMapping) -> JSONObject:
    """Return a stored report without what its framework keeps private; `shows` says how much that is."""
    shows = report.get("shows", SCORES)
    sections = [_disclosed_section(section, shows) for section in report["sections"]]
    return {**report, "sections": sections, "shows": shows}


def _disclosed_section(section: JSONMapping, shows: str) -> JSONObject:
    if shows == REMEDIATION:
        return dict(section)
    if shows == TITLES:
        return {**section, "criteria": [{**criterion, "remediation": None} for criterion in section["criteria"]]}
    return {**section, "criteria": [], "statuses": _count_statuses(section)}


def statuses_of(section: JSONMapping) -> dict[str, int]:
    """Return how many criteria of a section of a disclosed report have each status."""
    counted: dict[str, int] = section.get("statuses") or _count_statuses(section)
    return counted


def _count_statuses(section: JSONMapping) -> dict[str, int]:
    return dict(Counter(criterion["status"] for criterion in section["criteria"]))


def to_markdown(report: JSONMapping) -> str:
    """Return a disclosed report as Markdown."""
    lines = [
        f"# {plain(report['companyName'])}: {plain(report['frameworkName'])}",
        "",
        (
            f"Score: {_score(report['overall'])}. Evidence was found for {percent(report['overall']['coverage'])} of "
            f"what the framework asks, by weight.{_certainty(report)}"
        ),
        "",
        (
            f"Report {report['reportId']} of {report['createdAt'][:10]}, by {_judge(report['evaluator'])}, "
            f"specification version {report['specificationVersion']}."
        ),
    ]
    keeps_criteria = report["shows"] == SCORES
    for section in report["sections"]:
        reached = "" if section["score"] is None else f" ({section['score']:g} of 100)"
        lines += ["", f"## {plain(section['title'])}{reached}"]
        if keeps_criteria:
            counts = [f"{STATUSES[status]}: {count}" for status, count in statuses_of(section).items()]
            lines += ["", f"Criteria by status. {'. '.join(counts)}."]
        for criterion in section["criteria"]:
            lines += ["", *_criterion_lines(criterion, report["evaluator"]["kind"])]
    if keeps_criteria:
        lines += ["", "The author of this framework keeps its criteria private."]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return *text* on one line with Markdown escaped, so that a quote cannot become a link or an image."""
    escaped = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return re.sub(r"^([-+=]|\d+[.)])", r"\\\1", escaped)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _score(overall: JSONMapping) -> str:
    if overall["score"] is None:
        return "not applicable"
    band = f", band {plain(overall['band'])}" if overall["band"] else ""
    return f"**{overall['score']:g} of 100**{band}"


def _certainty(report: JSONMapping) -> str:
    """Return how certain a model was; rules always are."""
    if not report["evaluator"]["model"]:
        return ""
    return f" The model's certainty: {percent(report['overall']['confidence'])}."


def _judge(evaluator: JSONMapping) -> str:
    if evaluator.get("name"):
        return f"the evaluator {plain(evaluator['name'])}"
    if evaluator["model"]:
        return f"the model {plain(evaluator['model'])}"
    return "rules"


def _criterion_lines(criterion: JSONMapping, evaluator_kind: str) -> list[str]:
    status = f"**{STATUSES[criterion['status']]}**"
    if criterion["level"] is not None:
        status += f", level {criterion['level']:g} of {criterion['maxLevel']:g}"
    if evaluator_kind != "rules" and criterion.get("evaluator") == "rules":
        status += ", by rules"
    status += "."
    if criterion["rationale"]:
        status += f" {plain(criterion['rationale'])}"
    lines = [f"### {plain(criterion['title'])}", "", status]
    for citation in criterion["citations"]:
        place = citation["source"] if citation["page"] is None else f"document, page {citation['page']}"
        lines += ["", f"> {plain(citation['quote'])} ({place})"]
    if criterion["remediation"]:
        lines += ["", f"Next: {plain(criterion['remediation'])}"]
    return lines


def full(report: JSONMapping, url: str, rises: Mapping[str, float] | None = None) -> JSONObject:
    """Return the whole report, with fewer and shorter quotes (and ``truncated``) if it would not fit."""
    whole = {**report, "url": url}
    if bytes_of(whole) <= BUDGET_BYTES:
        return whole
    for max_quotes, characters in _STEPS:
        cut = {**_with_short_quotes(report, max_quotes, characters), "truncated": True, "url": url}
        if bytes_of(cut) <= BUDGET_BYTES:
            return cut
    return {**summary(report, url, rises), "truncated": True}


def markdown(report: JSONMapping, url: str) -> str:
    """Return the report as Markdown, shortened like :func:`full`."""
    text = to_markdown(report)
    for max_quotes, characters in _STEPS:
        if bytes_of(text) <= BUDGET_BYTES:
            return text
        shortened = to_markdown(_with_short_quotes(report, max_quotes, characters))
        text = f"{shortened}\nQuotes were shortened. Full report: {url}\n"
    if bytes_of(text) <= BUDGET_BYTES:
        return text
    return f"{text.encode()[: BUDGET_BYTES // 2].decode(errors='ignore')}\n\nTruncated. Full report: {url}\n"


def _with_short_quotes(report: JSONMapping, max_quotes: int, characters: int) -> JSONObject:
    sections = []
    for section in report["sections"]:
        criteria = []
        for criterion in section["criteria"]:
            shown = criterion["citations"][:max_quotes]
            citations = [{**citation, "quote": citation["quote"][:characters]} for citation in shown]
            criteria.append({**criterion, "citations": citations})
        sections.append({**section, "criteria": criteria})
    return {**report, "sections": sections}


def summary(report: JSONMapping, url: str, rises: Mapping[str, float] | None = None) -> JSONObject:
    """
    Return the scores, the number of criteria per status and the next steps; shortened until it fits.

    Args:
        rises: by how much each criterion would raise the score; the next steps begin with the largest.
    """
    shown = _summary(report, url, rises or {})
    for max_sections, characters in _SHORTER:
        if bytes_of(shown) <= BUDGET_BYTES:
            break
        shown["sections"] = [_with_short_texts(section, characters) for section in shown["sections"][:max_sections]]
        shown["next"] = [_with_short_texts(criterion, characters) for criterion in shown["next"][:max_sections]]
        shown = {**shown, "sectionsTotal": len(report["sections"]), "truncated": True}
    return shown


def _summary(report: JSONMapping, url: str, rises: Mapping[str, float]) -> JSONObject:
    sections = []
    waiting = []
    for section in report["sections"]:
        sections.append({**_members(section, "id", "title", "score"), "criteria": statuses_of(section)})
        waiting += [criterion for criterion in section["criteria"] if criterion["status"] in _URGENT]
    waiting.sort(key=lambda criterion: (-rises.get(criterion["id"], 0), _URGENT[criterion["status"]]))
    next_steps = [_members(criterion, "id", "title", "status", "remediation") for criterion in waiting[:MAX_NEXT]]
    return {**report, "sections": sections, "next": next_steps, "nextTotal": len(waiting), "url": url}


def _members(record: JSONMapping, *names: str) -> JSONObject:
    return {name: record[name] for name in names}


def _with_short_texts(record: JSONMapping, characters: int) -> JSONObject:
    short = dict(record)
    for name, value in record.items():
        if isinstance(value, str) and len(value) > characters:
            short[name] = f"{value[:characters].rstrip()}…"
    return short
