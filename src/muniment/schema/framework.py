"""
An assessment framework: every field, once. Its specification has a form of its own.

Source: service document, Framework and FrameworkDetail.
"""

from typing import Final

from muniment.kernel.json import JSONObject
from muniment.schema.company import CSV_LAST
from muniment.schema.company_parts import SCORE, logo_field
from muniment.schema.filters import Filter
from muniment.schema.kinds import DATE, MOMENT, Anything, Boolean, Choice, Integer, Items, PictureLink, Slug, Text
from muniment.schema.record import Field, Record
from muniment.schema.validation import Path, Validation

KINDS: Final = ("score", "program")

COMPANY_OF_FRAMEWORK: Final = Record(
    "FrameworkCompany",
    (
        Field("id", Slug(), "Slug", unless="slug"),
        Field("name", Text(), "Name", imported=False),
        Field("slug", Slug(), "Slug", null=True),
        Field("symbol", Text(), "Token symbol", null=True, imported=False),
        Field("icon", PictureLink(), "Logo", imported=False, summary="none"),
        logo_field(),
    ),
    others="ignore",
)
"""The company of a framework; an import reads only its slug."""

RANKED_SCORE: Final = Record(
    "RankedScore",
    (
        Field("rank", Integer(), "Rank", "Equal scores share one.", example=1, promised=True),
        Field("company", COMPANY_OF_FRAMEWORK, "Company", promised=True),
        *SCORE,
    ),
)
"""A published score among those of its framework."""
TOP_SCORES: Final = 10
"""Scores in the answer for one framework; all have an address of their own."""


def _programs_have_a_company(found: JSONObject, path: Path, validation: Validation) -> None:
    company = found.get("company") or {}
    if found.get("kind") == "program" and not (company.get("slug") or company.get("id")):
        validation.refuse((*path, "company"), "is missing: a program needs the company that runs it")
    check_dates(found, path, validation)


def check_dates(found: JSONObject, path: Path, validation: Validation) -> None:
    """Judge the days on which a program opens and closes; a score has none."""
    opens, closes = found.get("opensOn"), found.get("closesOn")
    if found.get("kind") == "score":
        for name in ("opensOn", "closesOn"):
            if found.get(name):
                validation.refuse((*path, name), "is only for programs")
    elif opens and closes and opens > closes:
        validation.refuse((*path, "closesOn"), "is before opensOn")


FRAMEWORK: Final = Record(
    "Framework",
    (
        Field("frameworkId", Slug(), "Id", example="river-score", column="slug", csv=1, required=True, editable=False),
        Field("frameworkName", Text(strip=True), "Name", example="River score", column="name", csv=2, required=True),
        Field(
            "description",
            Text(lines=6),
            "Summary",
            "What the framework assesses, Markdown; empty until it is authored.",
            example="How well an organization looks after a river.",
            csv=CSV_LAST,
            promised=True,
        ),
        Field(
            "kind",
            Choice(KINDS),
            "Kind",
            example="score",
            required=True,
            editable=False,
            filters=(Filter("Of this kind."),),
        ),
        Field(
            "isOpen",
            Boolean(),
            "Open",
            "False until the specification is authored.",
            example=True,
            column="",
            promised=True,
            editable=False,
            filters=(Filter("Whether they can be run."),),
        ),
        Field("opensOn", DATE, "Opens", "The first day of a program's applications.", example="2026-09-01"),
        Field("closesOn", DATE, "Closes", "The last day of a program's applications.", example="2026-11-30"),
        Field(
            "company",
            COMPANY_OF_FRAMEWORK,
            "Company",
            "The company behind the framework.",
            column="",
            csv=0,
            null=True,
            editable=False,
            filters=(
                Filter(
                    "Of this company (slug or name).",
                    member="name",
                    key="slug",
                    example="blue-river-trust",
                ),
            ),
        ),
        Field(
            "companyDescription",
            Text(),
            "Company's description",
            "The company's own description, Markdown.",
            column="",
            csv=0,
            shown=False,
            imported=False,
            editable=False,
            summary="none",
        ),
        Field(
            "scoreCount",
            Integer(),
            "Published scores",
            "Companies that have published their score; absent if none has.",
            example=1,
            column="",
            csv=0,
            imported=False,
            editable=False,
        ),
        Field(
            "topScores",
            Items(RANKED_SCORE),
            "Best scores",
            f"The best {TOP_SCORES} of the published scores; /api/v1/frameworks/{{frameworkId}}/scores has all.",
            column="",
            csv=0,
            shown=False,
            imported=False,
            editable=False,
        ),
        Field("updatedAt", MOMENT, "Updated", csv=0, editable=False, summary="none"),
    ),
    check=_programs_have_a_company,
    table=True,
)


def framework_line(framework: Record) -> Record:
    """Return the record of a line of frameworks.jsonl: a framework, and what is private of it."""
    return Record(
        "",
        (
            Field("framework", framework, "Framework", required=True),
            Field("specification", Anything(), "Specification"),
            Field("runCost", Integer(), "Cost of a run", column="run_cost"),
            Field("updatedAt", MOMENT, "Updated"),
        ),
        others="ignore",
    )
