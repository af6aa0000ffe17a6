"""A report as Markdown."""

import re
from typing import Final

from muniment.assessments.evaluation.disclosure import SCORES, statuses_of
from muniment.kernel.json import JSONMapping
from muniment.kernel.phrases.phrase import marked

STATUSES: Final = {
    "met": marked("Met"),
    "partial": marked("Partly met"),
    "not_met": marked("Not met"),
    "insufficient": marked("Not enough evidence"),
    "not_applicable": marked("Does not apply"),
}
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~!&])")


def plain(text: str) -> str:
    """Return *text* on one line with Markdown escaped, so that a quote cannot become a link or an image."""
    return re.sub(r"^([-+=]|\d+[.)])", r"\\\1", _SPECIAL.sub(r"\\\1", " ".join(text.split())))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def to_markdown(report: JSONMapping) -> str:
    """Return a disclosed report as Markdown."""
    overall = report["overall"]
    band = f", band {plain(overall['band'])}" if overall["band"] else ""
    score = "not applicable" if overall["score"] is None else f"**{overall['score']:g} of 100**{band}"
    lines = [
        f"# {plain(report['companyName'])}: {plain(report['frameworkName'])}",
        "",
        (
            f"Score: {score}. Evidence was found for {percent(overall['coverage'])} of what the framework asks, by "
            f"weight.{_certainty(report)}"
        ),
        "",
        (
            f"Report {report['reportId']} of {report['createdAt'][:10]}, by {_judge(report['evaluator'])}, "
            f"specification version {report['specificationVersion']}."
        ),
    ]
    for section in report["sections"]:
        reached = "" if section["score"] is None else f" ({section['score']:g} of 100)"
        lines += ["", f"## {plain(section['title'])}{reached}"]
        if report["shows"] == SCORES:
            counts = [f"{STATUSES[status]}: {count}" for status, count in statuses_of(section).items()]
            lines += ["", f"Criteria by status. {'. '.join(counts)}."]
        for criterion in section["criteria"]:
            by = (
                ", by rules" if report["evaluator"]["kind"] != "rules" and criterion.get("evaluator") == "rules" else ""
            )
            lines += ["", *_criterion(criterion, by)]
    if report["shows"] == SCORES:
        lines += ["", "The author of this framework keeps its criteria private."]
    return "\n".join(lines) + "\n"


def _certainty(report: JSONMapping) -> str:
    """Return how certain a model was; rules always are."""
    is_model = report["evaluator"]["model"]
    return f" The model's certainty: {percent(report['overall']['confidence'])}." if is_model else ""


def _judge(evaluator: JSONMapping) -> str:
    if evaluator.get("name"):
        return f"the evaluator {plain(evaluator['name'])}"
    return f"the model {plain(evaluator['model'])}" if evaluator["model"] else "rules"


def _criterion(criterion: JSONMapping, by: str) -> list[str]:
    level = "" if criterion["level"] is None else f", level {criterion['level']:g} of {criterion['maxLevel']:g}"
    lines = [f"### {plain(criterion['title'])}", "", f"**{STATUSES[criterion['status']]}**{level}{by}."]
    if criterion["rationale"]:
        lines[-1] += f" {plain(criterion['rationale'])}"
    for citation in criterion["citations"]:
        place = citation["source"] if citation["page"] is None else f"document, page {citation['page']}"
        lines += ["", f"> {plain(citation['quote'])} ({place})"]
    if criterion["remediation"]:
        lines += ["", f"Next: {plain(criterion['remediation'])}"]
    return lines
