"""
The registry's schema: the records of all its objects, as one value that every surface is given.

An instance may declare further fields; what they hold is kept among the additional members of the open object.
"""

from functools import cached_property
from typing import Final

from msgspec import Struct, structs

from muniment.schema import company as company_
from muniment.schema.company_parts import funding_round
from muniment.schema.filters import Listing
from muniment.schema.framework import FRAMEWORK, framework_line
from muniment.schema.kinds import Integer, Text
from muniment.schema.person import PERSON
from muniment.schema.record import Field, Record, change_of


class Schema(Struct, frozen=True, dict=True):
    """The records of the registry's objects."""

    company: Record
    person: Record
    framework: Record
    funding_round: Record

    @cached_property
    def bundle(self) -> Record:
        """A company with its parts: the detail answer, and a line of import."""
        return company_.bundle(self.company, self.funding_round)

    @cached_property
    def framework_line(self) -> Record:
        return framework_line(self.framework)

    @cached_property
    def company_change(self) -> Record:
        return change_of("CompanyChange", self.company, self.bundle)

    @cached_property
    def framework_change(self) -> Record:
        return change_of("FrameworkChange", self.framework)

    @cached_property
    def profile_change(self) -> Record:
        return change_of("ProfileChange", self.person)

    @cached_property
    def listings(self) -> dict[str, Listing]:
        """The lists by kind: how each is filtered and sorted."""
        parts = (*self.company.fields, *(field for field in self.bundle.fields if field.filters))
        fields = {"company": parts, "person": self.person.fields, "framework": self.framework.fields}
        return {kind: Listing(kind, each) for kind, each in fields.items()}

    @cached_property
    def company_fields(self) -> dict[str, Field]:
        """The fields of a company and its parts, by name."""
        return {**self.bundle.by_name, **self.company.by_name}

    def declare(self, *, company: tuple[Field, ...] = (), person: tuple[Field, ...] = ()) -> "Schema":
        """
        Return a schema with further fields.

        Raises:
            ValueError: a field of that name exists.
        """
        names = {**self.company.by_name, **self.bundle.by_name}
        taken = [each.name for each in company if each.name in names]
        taken += [each.name for each in person if each.name in self.person.by_name]
        if taken:
            raise ValueError(f"fields of these names exist: {', '.join(taken)}")
        return structs.replace(self, company=_with(self.company, company), person=_with(self.person, person))


def _with(record: Record, declared: tuple[Field, ...]) -> Record:
    fields = (structs.replace(each, column="") for each in declared)
    return structs.replace(record, fields=(*record.fields, *fields))


def registry_schema(currency: str) -> Schema:
    return Schema(company_.company(currency), PERSON, FRAMEWORK, funding_round(currency))


STATS: Final = Record(
    "Stats",
    (
        Field("total", Integer(), "Companies", "Reviewed companies.", example=1, required=True),
        Field(
            "projectsRaising", Integer(), "Raising", "Companies with an open funding round.", example=0, required=True
        ),
        Field("totalTreasury", Text(), "Treasury", "Combined treasury, formatted.", example="$1.2M", required=True),
        Field("founders", Integer(), "People", "People profiles.", example=1, required=True),
        Field("frameworks", Integer(), "Frameworks", "Assessment frameworks of both kinds.", example=1, required=True),
    ),
)
