"""
Validate the private specification of a framework. Pure.

Source: assessment-spec/1.
"""

from collections.abc import Iterator
from typing import Final, TypeGuard

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.texts import first_text_fault

SCHEMA: Final = "assessment-spec/1"
COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=", "in", "exists")
PHRASES: Final = ("anyPhrase", "allPhrases")
SOURCES: Final = ("profile", "positions", "proposals", "capTable", "distribution", "documents")
EVALUATORS: Final = ("auto", "rules", "model")
METHODS: Final = ("weighted_mean",)
REPORTS: Final = ("scores", "titles", "remediation")
"""The levels of detail of reports: see :mod:`muniment.assessments.report_views`."""
MAX_NUMBER: Final = 10**12
MAX_DEPTH: Final = 50

Found = Iterator[tuple[str, str]]


def faults_of(specification: object) -> list[tuple[str, str]]:
    """
    Return every fault of *specification*, each as a field's path and what is wrong.

    Returns:
        An empty list if the specification is valid. The path of the whole document is ``$``.
    """
    if not isinstance(specification, dict):
        return [("$", "is not an object")]
    if _is_deep(specification):
        return [("$", Phrase("is nested more than {limit} levels deep", limit=MAX_DEPTH))]
    faults = list(_document(specification))
    text_fault = first_text_fault(specification)
    if text_fault:
        faults.append(text_fault)
    return faults


def _document(document: JSONObject) -> Found:
    if document.get("schema") != SCHEMA:
        yield "schema", Phrase('is not "{schema}"', schema=SCHEMA)
    version = document.get("version")
    if not _is_integer(version) or not 1 <= version < 2**31:
        yield "version", "is not a positive integer"
    yield from _scale(document.get("scale"))
    yield from _overall(document.get("overall"))
    if document.get("reports", REPORTS[0]) not in REPORTS:
        yield "reports", Phrase("is not one of {words}", words=", ".join(REPORTS))
    sections = document.get("sections")
    if not isinstance(sections, list) or not sections:
        yield "sections", "is not a list of at least one section"
        return
    bounds = _bounds_of(document.get("scale"))
    seen: dict[str, str] = {}
    for index, section in enumerate(sections):
        yield from _section(section, f"sections[{index}]", bounds, seen)


def _scale(scale: object) -> Found:
    if not isinstance(scale, dict):
        yield "scale", "is not an object of min and max"
        return
    missing = [key for key in ("min", "max") if not _is_number(scale.get(key))]
    for key in missing:
        yield f"scale.{key}", "is not a number"
    if not missing and scale["min"] >= scale["max"]:
        yield "scale.max", "is not greater than scale.min"


def _bounds_of(scale: object) -> tuple[float, float]:
    """Return the lowest and the highest level; two equal ones if the scale does not say them."""
    if isinstance(scale, dict):
        low, high = scale.get("min"), scale.get("max")
        if _is_number(low) and _is_number(high):
            return low, high
    return 0.0, 0.0


def _overall(overall: object) -> Found:
    if overall is None:
        return
    if not isinstance(overall, dict):
        yield "overall", "is not an object"
        return
    if overall.get("method", METHODS[0]) not in METHODS:
        yield "overall.method", Phrase("is not one of {methods}", methods=", ".join(METHODS))
    if overall.get("bands") is not None:
        yield from _bands(overall["bands"])


def _bands(bands: object) -> Found:
    if not isinstance(bands, list) or not bands:
        yield "overall.bands", "is not a list of bands"
        return
    lowest: set[float] = set()
    for index, band in enumerate(bands):
        path = f"overall.bands[{index}]"
        if not isinstance(band, dict):
            yield path, "is not an object of min and label"
            continue
        if not _is_number(band.get("min")) or not 0 <= band["min"] <= 100:
            yield f"{path}.min", "is not a number from 0 to 100"
        elif band["min"] in lowest:
            yield f"{path}.min", "is the min of another band"
        else:
            lowest.add(band["min"])
        if not _is_text(band.get("label")):
            yield f"{path}.label", "is not text"


def _section(section: object, path: str, scale: tuple[float, float], seen: dict[str, str]) -> Found:
    if not isinstance(section, dict):
        yield path, "is not an object"
        return
    yield from _id(section, path, seen)
    if not _is_text(section.get("title")):
        yield f"{path}.title", "is not text"
    yield from _weight(section, path)
    criteria = section.get("criteria")
    if not isinstance(criteria, list) or not criteria:
        yield f"{path}.criteria", "is not a list of at least one criterion"
        return
    for index, criterion in enumerate(criteria):
        yield from _criterion(criterion, f"{path}.criteria[{index}]", scale, seen)


def _criterion(criterion: object, path: str, scale: tuple[float, float], seen: dict[str, str]) -> Found:
    if not isinstance(criterion, dict):
        yield path, "is not an object"
        return
    yield from _id(criterion, path, seen)
    for key in ("title", "requirement"):
        if not _is_text(criterion.get(key)):
            yield f"{path}.{key}", "is not text"
    yield from _weight(criterion, path)
    for key in ("guidance", "remediation"):
        if criterion.get(key) is not None and not isinstance(criterion[key], str):
            yield f"{path}.{key}", "is not text"
    if criterion.get("evaluator", "auto") not in EVALUATORS:
        yield f"{path}.evaluator", Phrase("is not one of {evaluators}", evaluators=", ".join(EVALUATORS))
    yield from _levels(criterion.get("levels"), f"{path}.levels", scale)
    yield from _gate(criterion.get("gate"), f"{path}.gate", scale)
    yield from _evidence(criterion.get("evidence"), f"{path}.evidence")
    if criterion.get("appliesIf") is not None:
        yield from _condition(criterion["appliesIf"], f"{path}.appliesIf")
    if criterion.get("checks") is not None:
        yield from _checks(criterion["checks"], f"{path}.checks", scale)


def _checks(checks: object, path: str, scale: tuple[float, float]) -> Found:
    if not isinstance(checks, list):
        yield path, "is not a list"
        return
    for index, check in enumerate(checks):
        at = f"{path}[{index}]"
        yield from _condition(check, at)
        if isinstance(check, dict):
            yield from _level(check.get("level"), f"{at}.level", scale)


def _levels(levels: object, path: str, scale: tuple[float, float]) -> Found:
    if levels is None:
        return
    if not isinstance(levels, list):
        yield path, "is not a list"
        return
    given: set[float] = set()
    for index, level in enumerate(levels):
        at = f"{path}[{index}]"
        if not isinstance(level, dict):
            yield at, "is not an object of level and descriptor"
            continue
        yield from _level(level.get("level"), f"{at}.level", scale)
        if not _is_text(level.get("descriptor")):
            yield f"{at}.descriptor", "is not text"
        if _is_number(level.get("level")):
            if level["level"] in given:
                yield f"{at}.level", "is described twice"
            given.add(level["level"])


def _gate(gate: object, path: str, scale: tuple[float, float]) -> Found:
    if gate is None:
        return
    if not isinstance(gate, dict):
        yield path, "is not an object of minLevel and capsOverall"
        return
    yield from _level(gate.get("minLevel"), f"{path}.minLevel", scale)
    if not _is_number(gate.get("capsOverall")) or not 0 <= gate["capsOverall"] <= 100:
        yield f"{path}.capsOverall", "is not a number from 0 to 100"


def _evidence(evidence: object, path: str) -> Found:
    if evidence is None:
        return
    if not isinstance(evidence, dict):
        yield path, "is not an object"
        return
    sources = evidence.get("sources")
    if sources is not None and not _is_list_of_sources(sources):
        yield f"{path}.sources", Phrase("is not a list of {sources}", sources=", ".join(SOURCES))
    least = evidence.get("minCitations")
    if least is not None and (not _is_integer(least) or least < 0):
        yield f"{path}.minCitations", "is not a non-negative integer"


def _is_list_of_sources(value: object) -> bool:
    return isinstance(value, list) and all(source in SOURCES for source in value)


def _condition(condition: object, path: str) -> Found:
    if not isinstance(condition, dict):
        yield path, "is not an object"
        return
    operation = condition.get("op")
    if operation in PHRASES:
        yield from _phrases(condition, path)
    elif operation in COMPARISONS:
        yield from _comparison(condition, path)
    else:
        yield f"{path}.op", Phrase("is not one of {words}", words=", ".join((*COMPARISONS, *PHRASES)))


def _phrases(condition: JSONObject, path: str) -> Found:
    terms = condition.get("terms")
    if not isinstance(terms, list) or not terms or not all(_is_text(term) for term in terms):
        yield f"{path}.terms", "is not a list of at least one text"
    if condition.get("in", "documents") not in SOURCES:
        yield f"{path}.in", Phrase("is not one of {sources}", sources=", ".join(SOURCES))


def _comparison(condition: JSONObject, path: str) -> Found:
    operation = condition["op"]
    if not _is_text(condition.get("path")):
        yield f"{path}.path", "is not the path of a field, such as company.teamSize"
    if operation == "exists":
        return
    value = condition.get("value")
    if "value" not in condition:
        yield f"{path}.value", "is missing"
    elif operation == "in" and not isinstance(value, list):
        yield f"{path}.value", "is not a list"
    elif operation in {"<", "<=", ">", ">="} and not _is_number(value):
        yield f"{path}.value", "is not a number"


def _id(owner: JSONObject, path: str, seen: dict[str, str]) -> Found:
    given = owner.get("id")
    if not _is_text(given):
        yield f"{path}.id", "is not text"
    elif given in seen:
        yield f"{path}.id", Phrase("is also the id of {place}", place=seen[given])
    else:
        seen[str(given)] = path


def _weight(owner: JSONObject, path: str) -> Found:
    if not _is_number(owner.get("weight")) or owner["weight"] <= 0:
        yield f"{path}.weight", "is not a number greater than 0"


def _level(level: object, path: str, scale: tuple[float, float]) -> Found:
    low, high = scale
    if low >= high:  # the scale has a fault of its own, so that only the type can be judged
        if not _is_number(level):
            yield path, "is not a number"
    elif not _is_number(level) or not low <= level <= high:
        yield path, Phrase("is not a number from {low:g} to {high:g}", low=low, high=high)


def _is_deep(value: object) -> bool:
    """Return whether *value* is nested too deeply; iterative, because recursion would overflow."""
    layer = [value]
    for _ in range(MAX_DEPTH):
        members: list[object] = []
        for container in layer:
            if isinstance(container, dict):
                members += container.values()
            elif isinstance(container, list):
                members += container
        if not members:
            return False
        layer = members
    return True


def _is_integer(value: object) -> TypeGuard[int]:
    """Return whether *value* is an integer in JSON; for Python, true and false are integers too."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether *value* is a finite number within bounds."""
    return (isinstance(value, float) or _is_integer(value)) and -MAX_NUMBER <= value <= MAX_NUMBER


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
