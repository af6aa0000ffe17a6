"""
The parts of a company: links, addresses, token distribution, proposals, positions, cap table, funding rounds.

Source: service document, Company, Distribution, Proposal, Position, CapTableEntry; decisions, section 2.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import marked
from muniment.schema.item_lists import ITEM_ID, ItemList
from muniment.schema.kinds import (
    DATE,
    MOMENT,
    Boolean,
    Choice,
    Country,
    Day,
    Email,
    Integer,
    Items,
    Kind,
    Money,
    Number,
    Profile,
    Slug,
    Text,
)
from muniment.schema.record import Field, Record
from muniment.schema.validation import Path, Validation

PROOF_METHODS: Final = ("dns", "file", "mail")
EVALUATORS: Final = ("rules", "model", "plugin")
_SUMMARY: Final = "https://registry.example/companies/blue-river-trust/assessments/"
LOGO: Final = Record(
    "Logo",
    (
        Field(
            "url",
            Text(),
            "Address",
            example="https://registry.example/pictures/0f1e2d3c4b5a69788796a5b4c3d2e1f0-512.webp",
            required=True,
        ),
        Field("width", Integer(), "Width", "In pixels.", example=512, required=True),
        Field("height", Integer(), "Height", "In pixels.", example=512, required=True),
    ),
)
"""A logo that this registry serves."""
_NAME: Final = Text(line=True)
_SHARE: Final = Number(0, 100)
_VOTES: Final = Number(0, 1e40)
"""Votes of tokens are fractions, or counted in the token's smallest unit."""
_ROW_BYTES: Final = 4 << 10
PROPOSAL_STATUSES: Final = ("active", "passed", "failed", "pending")


def person_key(slug: str | None, name: str | None) -> tuple[str, str]:
    """
    Return what tells the people of one listing apart: the slug, or the name of a person without a profile.

    A listing that names two people alike without a profile counts one: nothing says that they are two.
    """
    return (slug, "") if slug else ("", " ".join((name or "").split()).casefold())


def count_people(positions: Iterable[JSONObject]) -> int:
    """Return how many different people *positions* name: a person with three titles counts once."""
    people = (position.get("person") or {} for position in positions)
    return len({person_key(person.get("slug"), person.get("name")) for person in people})


def logo_field() -> Field:
    return Field(
        "logo",
        LOGO,
        "Hosted logo",
        "The logo as this registry serves it; absent if it has none.",
        column="",
        csv=0,
        imported=False,
        editable=False,
        summary="none",
    )


def _texts(kind: Kind, **labels: str) -> tuple[Field, ...]:
    return tuple(Field(name, kind, label, null=True) for name, label in labels.items())


SOCIALS: Final = Record(
    "Socials",
    (
        *_texts(Email(300, line=True), email="Email"),
        *_texts(Text(300, line=True), phone_number="Phone"),
        *_texts(
            Profile(300, line=True),
            facebook="Facebook",
            instagram="Instagram",
            tiktok="TikTok",
            linkedin="LinkedIn",
            youtube="YouTube",
            twitter="X (Twitter)",
        ),
    ),
    others="refuse",
    whole=True,
    partial=True,
)

ADDRESS: Final = Record(
    "Address",
    (
        ITEM_ID,
        *_texts(
            Text(200),
            address_1=marked("Street"),
            address_2=marked("Address line 2"),
            city=marked("City"),
            state=marked("State or region"),
            zip=marked("Postal code"),
        ),
        Field("country", Country(), "Country", "ISO 3166 code of two letters.", example="FR", null=True),
    ),
    others="refuse",
    whole=True,
)
ADDRESSES: Final = ItemList(
    ADDRESS,
    10,
    name="address",
    identity=lambda row: "\0".join(str(row.get(each.name) or "") for each in ADDRESS.values if each.name != "country"),
)


def _name(row: JSONMapping) -> str:
    return str(row.get("name") or "")


POOL: Final = Record(
    "",
    (
        ITEM_ID,
        Field("name", _NAME, "Pool", example="Community"),
        Field("percentage", _SHARE, "Percent", example=60),
    ),
)

POOLS: Final = ItemList(POOL, 50, name="pool", identity=_name, share="percentage")

DISTRIBUTION: Final = Record(
    "Distribution",
    (
        Field("method", Text(), "Distribution method", example="airdrop"),
        Field("details", Text(lines=3), "Distribution details"),
        Field("schedule", Text(), "Distribution schedule"),
        Field("vestingPeriod", Text(), "Vesting period"),
        Field("pools", POOLS, "Pools"),
    ),
    partial=True,
)

VOTES: Final = Record(
    "", (Field("for", _VOTES, "Votes for", example=12), Field("against", _VOTES, "Votes against", example=1))
)

PROPOSAL: Final = Record(
    "Proposal",
    (
        structs.replace(ITEM_ID, example="1"),
        Field("title", _NAME, "Title", example="Plant willows"),
        Field("status", Choice(PROPOSAL_STATUSES), "Status", example="passed"),
        Field("votes", VOTES, "Votes"),
        Field("endDate", Day(), "End date", example="2025-06-30"),
    ),
)
PROPOSALS: Final = ItemList(
    PROPOSAL,
    2_000,
    name="proposal",
    own_ids=True,
    row_bytes=_ROW_BYTES,
    merged=("votes",),
    identity=lambda row: str(row.get("title") or ""),
)


def _names_a_person(found: JSONObject, path: Path, validation: Validation) -> None:
    if not found.get("slug") and not (found.get("name") or "").strip():
        validation.refuse((*path, "slug"), "is missing, and so is a name")


PERSON_OF_POSITION: Final = Record(
    "",
    (
        Field("name", _NAME, "Name", example="Ada Fluss"),
        Field(
            "slug",
            Slug(),
            "Link to existing profile",
            "Of an existing profile.",
            example="ada-fluss",
            description="For GET /api/v1/people/{slug}.",
        ),
    ),
    check=_names_a_person,
)

POSITION: Final = Record(
    "Position",
    (
        ITEM_ID,
        Field("title", _NAME, "Position", example="Steward"),
        Field("person", PERSON_OF_POSITION, "Person", required=True, promised=False),
    ),
)


def _person_and_title(row: JSONMapping) -> str:
    person = row.get("person") or {}
    return f"{person.get('slug') or person.get('name')}\0{row.get('title') or ''}"


POSITIONS: Final = ItemList(POSITION, 2_000, name="position", row_bytes=_ROW_BYTES, identity=_person_and_title)

CAP_TABLE_ENTRY: Final = Record(
    "CapTableEntry",
    (
        ITEM_ID,
        Field("address", _NAME, "Address", example="0x00000000000000000000000000000000000000b1"),
        Field("name", _NAME, "Name", example="Treasury"),
        Field("tokens", _NAME, "Tokens", example="500000"),
        Field("percentage", _SHARE, "Percent"),
    ),
)
CAP_TABLE: Final = ItemList(
    CAP_TABLE_ENTRY,
    10_000,
    name="holder",
    row_bytes=_ROW_BYTES,
    identity=lambda row: str(row.get("address") or row.get("name") or ""),
    share="percentage",
)


VERIFIED_DOMAIN: Final = Record(
    "VerifiedDomain",
    (
        Field(
            "domain",
            Text(),
            "Domain",
            "The host of the website, with the website's path where many organizations share the host.",
            example="blue-river.example",
            promised=True,
        ),
        Field(
            "method",
            Choice(PROOF_METHODS),
            "Method",
            "A DNS record, a file on the website, or a code mailed to the domain.",
            example="dns",
            promised=True,
        ),
        Field(
            "verifiedAt",
            MOMENT,
            "Verified",
            "When the proof was last found.",
            example="2026-01-31T09:30:00.000000Z",
            promised=True,
        ),
    ),
)


FORMER_NAME: Final = Record(
    "FormerName",
    (
        Field("name", Text(200, strip=True, line=True), "Name", example="Blue River Fund", required=True),
        Field("until", Day(), "Until", "The day on which the name changed.", example="2025-06-30"),
    ),
    others="ignore",
)
FORMER_NAMES: Final = Items(FORMER_NAME, 50)


SCORE: Final = (
    Field("score", Number(0, 100), "Score", "From 0 to 100.", example=72.5, promised=True),
    Field("grade", Text(), "Grade", "The framework's name for the score; absent if it has none.", example="B"),
    Field(
        "assessedAt",
        MOMENT,
        "Assessed",
        "When the report was made.",
        example="2026-01-31T09:30:00.000000Z",
        promised=True,
    ),
    Field(
        "previousScore",
        Number(0, 100),
        "Previous score",
        "The published score that this one replaced; absent if it is the first.",
        example=64,
    ),
    Field("previousAssessedAt", MOMENT, "Previously assessed", "When the report of the previous score was made."),
    Field(
        "url", Text(), "Summary", "The page of the published summary.", example=f"{_SUMMARY}river-score", promised=True
    ),
)
"""The members of a published score, with the company as with the framework."""
ASSESSMENT: Final = Record(
    "Assessment",
    (
        Field(
            "frameworkId",
            Slug(),
            "Framework",
            "For GET /api/v1/frameworks/{frameworkId}.",
            example="river-score",
            promised=True,
        ),
        Field("frameworkName", Text(), "Framework", example="River score", promised=True),
        *SCORE,
        Field(
            "specificationVersion", Integer(), "Version", "The version of the specification.", example=3, promised=True
        ),
        Field(
            "evaluator",
            Choice(EVALUATORS),
            "Assessed by",
            "Rules alone, also a language model, or an evaluator that this registry has added.",
            example="rules",
            promised=True,
        ),
        Field(
            "sections",
            Items(
                Record(
                    "",
                    (
                        Field("title", Text(), "Section", example="Governance", promised=True),
                        Field("score", Number(0, 100), "Score", "Absent if no criterion applies.", example=80),
                    ),
                )
            ),
            "Sections",
            "The score of each section; absent if the owners publish the overall score alone.",
        ),
    ),
)
"""A report itself is private: what its owners publish of it is here."""


def funding_round(currency: str) -> Record:
    """Return the record of a funding round, which is open from its opening date up to its closing date."""
    return Record(
        "FundingRound",
        (
            structs.replace(ITEM_ID, column="item_id"),
            Field("name", Text(200, line=True), "Name", example="Seed"),
            Field(
                "target", Money(40, currency), "Target", "For example $1.2M.", example="$2.5M", column="target_minor"
            ),
            Field("opened", DATE, "Opened", example="2026-01-31", column="opened_on"),
            Field("closed", DATE, "Closed", "From this date on it is closed.", column="closed_on"),
            Field("public", Boolean(), "Public", "False: name and target are private.", column="", clearable=False),
        ),
        others="refuse",
        others_on_import="ignore",  # files of other registries tell more about a round than is kept here
        partial=True,
        table=True,
        check=_closes_after_it_opens,
    )


def _closes_after_it_opens(found: JSONObject, path: Path, validation: Validation) -> None:
    if found.get("opened") and found.get("closed") and found["closed"] < found["opened"]:
        validation.refuse((*path, "closed"), "is before opened")


def funding_rounds(record: Record) -> ItemList:
    return ItemList(record, 200, name="round", identity=_name)
