"""
The part of a report that the author of its framework lets it show. Pure.

A report is stored whole, since scores and gains are computed from it. Everything that leaves the feature passes through
:func:`disclosed`, so that the criteria of a private specification cannot be rebuilt from one run.

Source: assessment-spec/1, report; decision 89.
"""

from collections import Counter

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.frameworks.specification import REPORTS

SCORES, TITLES, REMEDIATION = REPORTS
"""Sections with their scores; also criteria with their titles, levels and quotes; also what to do about each."""


def shown_by(specification: JSONMapping) -> str:
    """Return what the reports of a specification show."""
    shows: str = specification.get("reports", SCORES)
    return shows


def disclosed(report: JSONMapping) -> JSONObject:
    """Return a stored report without what its framework keeps private; `shows` says how much that is."""
    shows = report.get("shows", SCORES)
    sections = [_section(each, shows) for each in report["sections"]]
    return {**report, "sections": sections, "shows": shows}


def _section(section: JSONMapping, shows: str) -> JSONObject:
    if shows == REMEDIATION:
        return dict(section)
    if shows == TITLES:
        return {**section, "criteria": [{**each, "remediation": None} for each in section["criteria"]]}
    counts = Counter(each["status"] for each in section["criteria"])
    return {**section, "criteria": [], "statuses": dict(counts)}


def statuses_of(section: JSONMapping) -> dict[str, int]:
    """Return how many criteria of a section of a disclosed report have each status."""
    counted: dict[str, int] = section.get("statuses") or dict(Counter(each["status"] for each in section["criteria"]))
    return counted
