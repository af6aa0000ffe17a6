"""
A person: every field, once.

Source: service document, Person.
"""

from typing import Final

from muniment.schema.company import CSV_LAST, CSV_NOTE, UPDATED
from muniment.schema.company_parts import logo_field
from muniment.schema.filters import Filter, Range
from muniment.schema.kinds import MOMENT, Integer, Items, PictureLink, Slug, Text
from muniment.schema.record import Field, Record

COMPANY_OF_POSITION: Final = Record(
    "",
    (
        Field("id", Slug(), "Slug", example="blue-river-trust"),
        Field("name", Text(), "Name", example="Blue River Trust"),
        Field("slug", Slug(), "Slug", example="blue-river-trust"),
        Field("symbol", Text(), "Token symbol", example="BLUE"),
        Field("icon", PictureLink(), "Logo", summary="none"),
        logo_field(),
    ),
)

POSITION_OF_PERSON: Final = Record(
    "", (Field("title", Text(), "Position", example="Steward"), Field("company", COMPANY_OF_POSITION, "Company"))
)

PERSON: Final = Record(
    "Person",
    (
        Field(
            "documentId",
            Text(),
            "Document id",
            example="01jexample0000000000000000",
            editable=False,
            summary="none",
        ),
        Field(
            "name", Text(200, strip=True, line=True), "Name", example="Ada Fluss", csv=2, required=True, order="name"
        ),
        Field("slug", Slug(), "Slug", "Stable identifier.", example="ada-fluss", csv=1, required=True, editable=False),
        Field(
            "bio",
            Text(20_000, lines=6),
            "About",
            "You can use Markdown.",
            csv=CSV_LAST,
            null=True,
            description="Markdown.",
        ),
        Field(
            "companyCount",
            Integer(),
            "Companies",
            "Reviewed companies where the person holds a position; in lists only.",
            example=1,
            column="",
            imported=False,
            editable=False,
            order="companies",
            range=Range("minCompanies", "The least number of companies with a position."),
        ),
        Field(
            "positions",
            Items(POSITION_OF_PERSON),
            "Positions",
            "In the detail only.",
            column="",
            csv=CSV_NOTE,
            imported=False,
            editable=False,
            filters=(
                Filter(
                    "Has a position at this company (slug or name).",
                    "company",
                    member="company.name",
                    key="company.slug",
                    counted=False,
                    example="blue-river-trust",
                ),
                Filter(
                    "Has a position with these words in its title.",
                    "title",
                    member="title",
                    in_text=True,
                    example="Steward",
                ),
            ),
        ),
        Field(
            "updatedAt",
            MOMENT,
            "Updated",
            example="2026-01-31T09:30:00.000000Z",
            editable=False,
            order="updated",
            range=UPDATED,
            summary="none",
        ),
    ),
    limits_on_import="warn",
    table=True,
)


def profile(person: Record) -> Record:
    """Return the record of a profile, as the person sees it: what is stored, and its version."""
    stored = (field for field in person.fields if field.imported and field.name != "updatedAt")
    return Record("Profile", (*stored, Field("version", Integer(), "Version", column="version", required=True)))
