"""Read lines of import files by the schema into table columns. Pure: no database access."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from muniment.kernel.json import JSONObject
from muniment.registry.company.parts import PositionRow, RoundRow
from muniment.registry.frameworks.specification import faults_of
from muniment.schema.company import bundle_breaches
from muniment.schema.objects import Schema
from muniment.schema.record import Record
from muniment.schema.validation import Breach, Fault, Validation


@dataclass(slots=True)
class CompanyRow:
    """
    A company's line. ``columns`` are the table's; a part that is None was not given and stays unchanged.

    ``broken`` are the rules that its values break, of ``line``. ``given`` are the members of its object.
    ``only_lists``: it comes from a file of lists, and says nothing about the listing itself.
    """

    slug: str
    columns: JSONObject
    positions: list[PositionRow] | None = None
    proposals: list[JSONObject] | None = None
    cap_table: list[JSONObject] | None = None
    funding_rounds: list[RoundRow] | None = None
    updated_at: datetime | None = None
    line: JSONObject = field(default_factory=dict)
    broken: list[Breach] = field(default_factory=list)
    given: frozenset[str] = frozenset()
    only_lists: bool = False
    left_out_places: list[int] = field(default_factory=list)
    """The places in the file of the positions that are left out."""

    def place_in_file(self, index: int) -> int:
        """Return the place in the file of the position that is at *index* among those that remain."""
        place = index
        for left_out in sorted(self.left_out_places):
            if left_out <= place:
                place += 1
        return place


@dataclass(slots=True)
class PersonRow:
    """A person's line. ``broken`` are the rules that its values break. ``given`` are the members that the line has."""

    slug: str
    columns: JSONObject
    updated_at: datetime | None = None
    broken: list[Breach] = field(default_factory=list)
    given: frozenset[str] = frozenset()


@dataclass(slots=True)
class FrameworkRow:
    """A framework's line. ``specification`` None: not given."""

    slug: str
    columns: JSONObject
    company: str = ""
    is_open: bool | None = None
    specification: JSONObject | None = None
    updated_at: datetime | None = None


def read_company(line: JSONObject, schema: Schema, validation: Validation) -> CompanyRow | None:
    """Read a line of companies.jsonl; no row if it has faults."""
    found = validation.parse(schema.bundle, line)
    if validation.faults:
        return None
    broken = _judge((*schema.bundle.breaches(line, ()), *bundle_breaches(line)), validation)
    columns = _company_columns(found["company"], schema)
    updated_at = columns.pop("updated_at")
    if "formerNames" not in line["company"]:
        del columns["former_names"]  # those that are known here stay
    if "distribution" in line:
        columns["distribution"] = found.get("distribution")
    row = CompanyRow(
        columns.pop("slug"),
        columns,
        updated_at=found.get("updatedAt") or updated_at,
        line=line if broken else {},
        broken=broken,
        given=frozenset(line["company"]),
    )
    # A list that the line does not name stays as it is stored.
    if "positions" in line:
        row.positions = [PositionRow.from_document(position) for position in found.get("positions", [])]
    if "proposals" in line:
        row.proposals = found.get("proposals", [])
    if "capTable" in line:
        row.cap_table = found.get("capTable", [])
    if "fundingRounds" in line:
        rounds = found.get("fundingRounds", [])
        row.funding_rounds = [RoundRow.from_document(round_, schema.funding_round) for round_ in rounds]
    return row


def _company_columns(company: JSONObject, schema: Schema) -> JSONObject:
    columns = schema.company.columns(company)
    if columns["reviewed_at"] is None:
        del columns["reviewed_at"]  # a review here stays
    # createdAt is a month, of which the first day is stored; listedAt has the day itself.
    columns["listed_month_only"] = bool(columns["listed_on"] and not company.get("listedAt"))
    return columns


def read_lists(line: JSONObject, schema: Schema, validation: Validation) -> CompanyRow | None:
    """Read the rows that a file of lists has of one listing, in the form of a line of companies.jsonl."""
    row = read_company(line, schema, validation)
    if row is not None:
        row.only_lists = True
    return row


def _judge(breaches: Iterable[Breach], validation: Validation) -> list[Breach]:
    """Warn of broken limits, and return the other breaches."""
    every = list(breaches)
    validation.judge(breach for breach in every if breach.warns)
    return [breach for breach in every if not breach.warns]


def read_person(line: JSONObject, schema: Schema, validation: Validation) -> PersonRow | None:
    """Read a line of people.jsonl; no row if it has faults."""
    found = validation.parse(schema.person, line)
    if validation.faults:
        return None
    broken = _judge(schema.person.breaches(line, ()), validation)
    columns = schema.person.columns(found)
    updated_at = columns.pop("updated_at")
    return PersonRow(columns.pop("slug"), columns, updated_at, broken, frozenset(line))


def columns_of(record: Record, given: frozenset[str]) -> set[str]:
    """Return the columns of the members *given* by a line; declared fields are in that of the additional members."""
    own_fields = {name: field for name, field in record.by_name.items() if not field.is_additional}
    columns = {field.column for name, field in own_fields.items() if name in given}
    if "listed_on" in columns:
        columns.add("listed_month_only")  # it says how exact that day is
    if given - own_fields.keys():
        columns.add("extra")
    return columns


def read_framework(line: JSONObject, schema: Schema, validation: Validation) -> FrameworkRow | None:
    """Read a line of frameworks.jsonl; no row if it has faults."""
    found = validation.read(schema.framework_line, line)
    specification = line.get("specification")
    if isinstance(specification, dict):
        validation.faults += [Fault(f"specification.{path}", reason) for path, reason in faults_of(specification)]
    if validation.faults:
        return None
    framework = found["framework"]
    company, is_open = framework.pop("company", {}), framework.pop("isOpen", None)
    columns = schema.framework.columns(framework)
    updated_at = columns.pop("updated_at")
    if "runCost" in found:
        columns["run_cost"] = found["runCost"]
    return FrameworkRow(
        columns.pop("slug"),
        columns,
        company.get("slug") or company.get("id") or "",
        is_open,
        specification,
        found.get("updatedAt") or updated_at,
    )
