"""
A framework's specification as the fields of a form, and back. Pure.

Members that the form does not show, such as checks, stay as they are; so does every value that was not edited, exactly.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext_lazy

from muniment.kernel.ids import slug_from_name
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.frameworks.specification import EVALUATORS, REPORTS, SCHEMA, SOURCES
from muniment.web.requests.pagination import whole_number

EVALUATOR_WORDS: Final = {
    "auto": gettext_lazy("A language model if there is one, otherwise rules"),
    "rules": gettext_lazy("Rules"),
    "model": gettext_lazy("A language model"),
}
REPORT_WORDS: Final = {
    "scores": gettext_lazy("The scores and titles of sections"),
    "titles": gettext_lazy("Also each criterion: its title, level and quotes"),
    "remediation": gettext_lazy("Also what to do about each criterion"),
}
"""Descriptions of what reports show, by the value of the specification's member."""
MAX_CRITERIA: Final = 25
"""Maximum criteria in one form; a larger specification is edited by section, with as many on a page."""
MAX_FIELDS: Final = 9_900
"""Maximum fields in one form; a request has at most 10,000. Many levels reach this before `MAX_CRITERIA`."""
FIELDS_OF_CRITERION: Final = 12
"""Without its levels and sources of evidence."""
FIELDS_OF_SECTION: Final = 4
FIELDS_OF_BAND: Final = 3
LEVELS_SHOWN: Final = 10
_TEXTS: Final = ("title", "requirement", "guidance", "remediation")
_NEEDED: Final = ("title", "requirement")
EMPTY: Final[JSONObject] = {
    "schema": SCHEMA,
    "version": 1,
    "scale": {"min": 0, "max": 4},
    "reports": REPORTS[0],
    "overall": {"method": "weighted_mean", "bands": [{"min": 80, "label": "A"}, {"min": 0, "label": "B"}]},
    "sections": [],
}


@dataclass(slots=True)
class CriterionFields:
    """
    A criterion as typed; ``origin`` is its place in the stored specification, such as ``0.1``; "" if it is new.

    Args:
        levels: the descriptor of each level, by the level as text.
        hidden: what it has that the form does not show.
    """

    origin: str = ""
    id: str = ""
    weight: str = "1"
    texts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(_TEXTS, ""))
    evaluator: str = EVALUATORS[0]
    levels: dict[str, str] = field(default_factory=dict)
    gate_level: str = ""
    gate_cap: str = ""
    sources: list[str] = field(default_factory=list)
    citations: str = ""
    hidden: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SectionFields:
    """A section as typed."""

    origin: str = ""
    id: str = ""
    title: str = ""
    weight: str = "1"
    criteria: list[CriterionFields] = field(default_factory=list)


@dataclass(slots=True)
class SpecificationFields:
    """A specification as typed. A band is its place in the stored specification, its minimum and its label."""

    scale_min: str = "0"
    scale_max: str = "4"
    bands: list[tuple[str, str, str]] = field(default_factory=list)
    sections: list[SectionFields] = field(default_factory=list)
    reports: str = REPORTS[0]

    @property
    def is_large(self) -> bool:
        """Whether one form can't hold it."""
        criteria = 0
        fields = FIELDS_OF_BAND * len(self.bands)
        for section in self.sections:
            fields += FIELDS_OF_SECTION
            for criterion in section.criteria:
                criteria += 1
                fields += FIELDS_OF_CRITERION + len(SOURCES) + len(criterion.levels)
        return criteria > MAX_CRITERIA or fields > MAX_FIELDS


def fields_of(document: JSONMapping) -> SpecificationFields:
    """Return a valid specification as the fields of a form."""
    scale = document["scale"]
    bands = (document.get("overall") or {}).get("bands") or []
    fields = SpecificationFields(
        _shown(scale["min"]),
        _shown(scale["max"]),
        [(str(place), _shown(band["min"]), band["label"]) for place, band in enumerate(bands)],
        reports=document.get("reports", REPORTS[0]),
    )
    for place, section in enumerate(document["sections"]):
        section_fields = SectionFields(str(place), section["id"], section["title"], _shown(section["weight"]))
        for number, criterion in enumerate(section["criteria"]):
            section_fields.criteria.append(_criterion_fields(criterion, f"{place}.{number}", scale))
        fields.sections.append(section_fields)
    return fields


def _criterion_fields(criterion: JSONMapping, origin: str, scale: JSONMapping) -> CriterionFields:
    gate, evidence = criterion.get("gate") or {}, criterion.get("evidence") or {}
    return CriterionFields(
        origin=origin,
        id=criterion["id"],
        weight=_shown(criterion["weight"]),
        texts={name: criterion.get(name) or "" for name in _TEXTS},
        evaluator=criterion.get("evaluator", EVALUATORS[0]),
        levels=with_scale(_descriptors(criterion), _shown(scale["min"]), _shown(scale["max"])),
        gate_level=_shown(gate.get("minLevel")),
        gate_cap=_shown(gate.get("capsOverall")),
        sources=list(evidence.get("sources") or ()),
        citations=_shown(evidence.get("minCitations")),
        hidden=[name for name in ("appliesIf", "checks") if criterion.get(name)],
    )


def _descriptors(criterion: JSONMapping) -> dict[str, str]:
    return {_shown(level["level"]): level["descriptor"] for level in criterion.get("levels") or ()}


def with_scale(levels: dict[str, str], low: str, high: str) -> dict[str, str]:
    """Return *levels* with a blank descriptor for each whole level of a small scale, in order."""
    start, end = _number(low), _number(high)
    if isinstance(start, int) and isinstance(end, int) and 0 < end - start <= LEVELS_SHOWN:
        blank = dict.fromkeys(map(str, range(start, end + 1)), "")
        levels = {**blank, **levels}
    return {level: levels[level] for level in sorted(levels, key=float)}


def typed_fields(form: Mapping[str, Any]) -> SpecificationFields:
    """Return the fields of a submitted form (Django's QueryDict)."""
    scale = (form.get("scale.min", ""), form.get("scale.max", ""))
    bands = []
    for number in _rows(form, "band.{}.min"):
        at = f"band.{number}"
        bands.append((form.get(f"{at}.origin", ""), form.get(f"{at}.min", ""), form.get(f"{at}.label", "")))
    sections = [_typed_section(form, f"s.{number}", scale) for number in _rows(form, "s.{}.title")]
    return SpecificationFields(*scale, bands, sections, form.get("reports", ""))


def _rows(form: Mapping[str, Any], name: str) -> Iterator[int]:
    number = 0
    while name.format(number) in form:
        yield number
        number += 1


def _typed_section(form: Mapping[str, Any], at: str, scale: tuple[str, str]) -> SectionFields:
    return SectionFields(
        form.get(f"{at}.origin", ""),
        form.get(f"{at}.id", ""),
        form.get(f"{at}.title", ""),
        form.get(f"{at}.weight", ""),
        [_typed_criterion(form, f"{at}.c.{n}", scale) for n in _rows(form, at + ".c.{}.title")],
    )


def _typed_criterion(form: Any, at: str, scale: tuple[str, str]) -> CriterionFields:
    start = f"{at}.level."
    levels = {}
    for name in form:
        level = name.removeprefix(start)
        # A level that is no number has no place in the order of the scale.
        if level != name and _number(level) is not None:
            levels[level] = _lines(form.get(name, ""))
    return CriterionFields(
        origin=form.get(f"{at}.origin", ""),
        id=form.get(f"{at}.id", ""),
        weight=form.get(f"{at}.weight", ""),
        texts={name: _lines(form.get(f"{at}.{name}", "")) for name in _TEXTS},
        evaluator=form.get(f"{at}.evaluator", EVALUATORS[0]),
        levels=with_scale(levels, *scale),
        gate_level=form.get(f"{at}.gateLevel", ""),
        gate_cap=form.get(f"{at}.gateCap", ""),
        sources=[source for source in form.getlist(f"{at}.sources") if source in SOURCES],
        citations=form.get(f"{at}.citations", ""),
        hidden=[name for name in form.get(f"{at}.hidden", "").split() if name in {"appliesIf", "checks"}],
    )


def part_of(document: JSONMapping, place: int, first: int) -> SpecificationFields:
    """Return a page of the criteria of a section, from the one at *first* on, as the fields of a form."""
    whole = document["sections"][place]
    section = {**whole, "criteria": whole["criteria"][first : first + MAX_CRITERIA]}
    fields = fields_of({**document, "sections": [section]})
    # As a document of its own, the section was the first of it.
    [section_fields] = fields.sections
    section_fields.origin = str(place)
    for number, criterion in enumerate(section_fields.criteria, first):
        criterion.origin = f"{place}.{number}"
    return fields


def with_part(document: JSONMapping, place: int, first: int, typed: SectionFields) -> JSONObject:
    """Return *document* with what was typed into the form of :func:`part_of`."""
    edited = deepcopy(dict(document))
    criteria = edited["sections"][place]["criteria"]
    section = _section(typed, document)
    section["criteria"] = [*criteria[:first], *section["criteria"], *criteria[first + MAX_CRITERIA :]]
    edited["sections"][place] = section
    _give_ids(edited["sections"])
    return edited


def with_general(document: JSONMapping, fields: SpecificationFields) -> JSONObject:
    """Return *document* with the scale, the bands and the choice for reports that were typed."""
    sections = document["sections"]
    made = document_of(
        SpecificationFields(fields.scale_min, fields.scale_max, fields.bands, reports=fields.reports), document
    )
    return {**made, "sections": deepcopy(sections)}


def new_section() -> JSONObject:
    """Return a section to be filled in, with one criterion."""
    return {"id": "", "title": "", "weight": 1, "criteria": [new_criterion()]}


def new_criterion() -> JSONObject:
    """Return a criterion to be filled in."""
    return {"id": "", "title": "", "weight": 1, "requirement": ""}


def document_of(fields: SpecificationFields, stored: JSONMapping) -> JSONObject:
    """
    Return the specification that the fields describe; it may be invalid.

    Args:
        stored: the specification that the form was opened with: what the form does not show comes from there.
    """
    made = deepcopy(dict(stored))
    scale = dict(stored["scale"])
    for name, text in (("min", fields.scale_min), ("max", fields.scale_max)):
        scale[name] = _kept_number(text, scale.get(name))
    made["scale"] = scale
    _set_bands(made, fields, stored)
    if fields.reports and fields.reports != stored.get("reports", REPORTS[0]):
        made["reports"] = fields.reports
    made["sections"] = [_section(section, stored) for section in fields.sections]
    _give_ids(made["sections"])
    return made


def _set_bands(made: JSONObject, fields: SpecificationFields, stored: JSONMapping) -> None:
    former = (stored.get("overall") or {}).get("bands") or []
    bands = []
    for origin, least, label in fields.bands:
        if not least.strip() and not label.strip():
            continue
        band = dict(former[int(origin)]) if _is_place(origin, former) else {}
        bands.append({**band, "min": _kept_number(least, band.get("min")), "label": label})
    if bands != former:
        overall = dict(stored.get("overall") or {"method": "weighted_mean"})
        overall["bands"] = bands
        if not bands:
            del overall["bands"]
        made["overall"] = overall


def _section(fields: SectionFields, stored: JSONMapping) -> JSONObject:
    former = stored["sections"][int(fields.origin)] if _is_place(fields.origin, stored["sections"]) else {}
    made = {**deepcopy(former), "id": fields.id.strip() or former.get("id", ""), "title": fields.title}
    made["weight"] = _kept_number(fields.weight, former.get("weight"))
    made["criteria"] = [_criterion(criterion, stored) for criterion in fields.criteria]
    return made


def _criterion(fields: CriterionFields, stored: JSONMapping) -> JSONObject:
    former = _former(fields.origin, stored)
    made = {**deepcopy(former), "id": fields.id.strip() or former.get("id", "")}
    made["weight"] = _kept_number(fields.weight, former.get("weight"))
    _set_texts(made, fields, former)
    if fields.evaluator != former.get("evaluator", EVALUATORS[0]):
        made["evaluator"] = fields.evaluator
    _set_levels(made, fields, former)
    _set_members(made, "gate", {"minLevel": fields.gate_level, "capsOverall": fields.gate_cap}, former)
    _set_members(made, "evidence", {"minCitations": fields.citations}, former)
    _set_sources(made, fields, former)
    return made


def _set_texts(made: JSONObject, fields: CriterionFields, former: JSONObject) -> None:
    """Set the texts that were edited; an optional one that was emptied is left out."""
    for name in _TEXTS:
        text = fields.texts[name]
        if text != _lines(former.get(name) or ""):
            made[name] = text
        if name in _NEEDED:
            made.setdefault(name, text)
        elif not text and former.get(name):
            del made[name]


def _set_sources(made: JSONObject, fields: CriterionFields, former: JSONObject) -> None:
    """Set the sources of evidence if others were chosen; without any, the member is left out."""
    sources = [source for source in SOURCES if source in fields.sources]
    former_sources = (former.get("evidence") or {}).get("sources") or ()
    if set(sources) == set(former_sources):
        return
    evidence = {**(made.get("evidence") or {}), "sources": sources}
    if not sources:
        del evidence["sources"]
    made["evidence"] = evidence


def _former(origin: str, stored: JSONMapping) -> JSONObject:
    section, _, number = origin.partition(".")
    if not _is_place(section, stored["sections"]):
        return {}
    criteria = stored["sections"][int(section)]["criteria"]
    return dict(criteria[int(number)]) if _is_place(number, criteria) else {}


def _set_levels(made: JSONObject, fields: CriterionFields, former: JSONObject) -> None:
    """Set the levels whose descriptors were edited; without any descriptor, the member is left out."""
    before = {level: _lines(text) for level, text in _descriptors(former).items()}
    after = {level: text for level, text in fields.levels.items() if text.strip()}
    if before == after:
        return
    former_levels = {_shown(level["level"]): level for level in former.get("levels") or ()}
    levels = []
    for level, text in after.items():
        row = dict(former_levels.get(level, {"level": _number(level)}))
        if text != before.get(level):
            row["descriptor"] = text
        levels.append(row)
    made["levels"] = levels
    if not levels:
        del made["levels"]


def _set_members(made: JSONObject, name: str, texts: Mapping[str, str], former: JSONObject) -> None:
    """Set the numbers of an object; without any, an object that has nothing else is left out."""
    before = former.get(name) or {}
    if all(text.strip() == _shown(before.get(member)) for member, text in texts.items()):
        return
    value = {member: number for member, number in before.items() if member not in texts}
    for member, text in texts.items():
        if text.strip():
            value[member] = _kept_number(text, before.get(member))
    made[name] = value
    if not value:
        del made[name]


def _give_ids(sections: list[JSONObject]) -> None:
    """Derive an id from the title for each section and criterion without one."""
    taken = set()
    for section in sections:
        taken.add(section["id"])
        taken.update(criterion["id"] for criterion in section["criteria"])
    for section in sections:
        _give_id(section, "", taken)
        for criterion in section["criteria"]:
            _give_id(criterion, f"{section['id']}.", taken)


def _give_id(owner: JSONObject, start: str, taken: set[str]) -> None:
    if owner["id"] or not owner["title"].strip():
        return
    base, number = f"{start}{slug_from_name(owner['title'])}", 1
    owner["id"] = base
    while owner["id"] in taken:
        number += 1
        owner["id"] = f"{base}-{number}"
    taken.add(owner["id"])


def _is_place(text: str, rows: list[Any]) -> bool:
    place = whole_number(text, 5)
    return place is not None and place < len(rows)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _shown(value: object) -> str:
    return "" if value is None else f"{value}"


def _kept_number(text: str, former: object) -> Any:
    """Return the former value if *text* shows it, a number, or what was typed: the validation says what is wrong."""
    if text.strip() == _shown(former) and former is not None:
        return former
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> int | float | None:
    if not text.isascii() or len(text) > 20:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e12 else None  # neither infinite nor NaN
