"""
A company: every field, once. Its parts are in `company_parts`.

A limit (the length of a text, the number of entries) refuses an owner's change and warns on import: existing registries
hold a few values beyond the limits, and an import must not lose them. A value that cannot be true (a link that leads
nowhere, a control character in a name) is refused, and left out by an import.

Source: service document, Company.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from muniment.kernel.json import JSONMapping, JSONObject, bytes_of
from muniment.kernel.phrases.phrase import Phrase
from muniment.schema.company_parts import (
    ADDRESSES,
    ASSESSMENT,
    CAP_TABLE,
    DISTRIBUTION,
    FORMER_NAMES,
    POSITIONS,
    PROPOSALS,
    SOCIALS,
    VERIFIED_DOMAIN,
    funding_rounds,
    logo_field,
)
from muniment.schema.filters import Filter, Range
from muniment.schema.kinds import (
    DATE,
    MOMENT,
    MONTH,
    Amount,
    Boolean,
    Choice,
    Country,
    Integer,
    Items,
    Link,
    Money,
    PictureLink,
    Slug,
    Text,
)
from muniment.schema.record import Field, Record
from muniment.schema.validation import Breach, Path, Validation

STATUSES: Final = ("active", "upcoming", "inactive")
TYPES: Final = (
    *("corporation", "DAO", "non-profit", "cooperative", "foundation", "accelerator", "incubator", "VC"),
    *("open source project", "government", "other"),
)
INDUSTRIES: Final = (
    *("Agriculture", "Arts and culture", "Blockchain", "Climate", "Education", "Energy", "Finance", "Health"),
    *("Infrastructure", "Logistics", "Manufacturing", "Media", "Nonprofit", "Real estate", "Research", "Software"),
)
ORG_KINDS: Final = ("project", "startup", "company", "cooperative", "protocol", "foundation", "fund", "community")
THEMES: Final = (
    *("climate", "community", "defi", "education", "energy", "governance", "health", "infrastructure", "open-source"),
    *("privacy", "public-goods", "research", "social"),
)
MAX_OBJECT_BYTES: Final = 256 << 10
"""Maximum size of a company object with its distribution."""
MAX_LISTING_BYTES: Final = 3 << 20
"""Maximum size of a company object with all its parts."""
UPDATED: Final = Range("updatedSince", "Changed at this time or later, RFC 3339.")
TREASURY_NOTE: Final = "treasuryNote"
"""What an amount is that is no treasury: no list sorts or bounds by it, and no sum adds it."""
MAX_NOTE: Final = 60
"""Characters of a note, which pages show as the name of its figure."""
CSV_LAST: Final = 90
"""The place of a long text in the CSV export: after all other columns."""
CSV_NOTE: Final = 80
"""The place of a column that came later: before the long text, so that the others stay where they were."""
CSV_CONTACT: Final = 85


def with_qualifiers(names: Iterable[str]) -> list[str]:
    """Return the members that a client chose, with the note that says what a chosen amount is, if it is no treasury."""
    chosen = list(names)
    return [*chosen, TREASURY_NOTE] if {"treasury", "treasuryAmount"} & set(chosen) else chosen


def company(currency: str) -> Record:
    return Record("Company", _fields(currency), limits_on_import="warn", table=True)


def _fields(currency: str) -> tuple[Field, ...]:
    return (
        Field(
            "id",
            Slug(),
            "Slug",
            "Stable identifier, used in addresses.",
            example="blue-river-trust",
            column="slug",
            required=True,
            editable=False,
        ),
        Field(
            "name",
            Text(200, strip=True, line=True),
            "Name",
            example="Blue River Trust",
            required=True,
            review=True,
            order="name",
        ),
        Field(
            "symbol",
            Text(32, strip=True, line=True),
            "Token symbol",
            "For example HARB. Empty if there is no token.",
            description="Absent if there is no token.",
            example="BLUE",
            review=True,
            filters=(Filter("Whether they have a token.", "hasToken", presence=True),),
        ),
        Field(
            "teamSize",
            Integer(),
            "Team size",
            "Used only while no positions are listed.",
            description="The number of different people in the positions; without any, as the listing says.",
            example=1,
            order="team",
            range=Range("teamMin", "The least team size.", "teamMax", "The largest team size."),
        ),
        Field(
            "treasury",
            Money(40, currency),
            "Treasury",
            "For example $1.2M.",
            description="The funds that it holds. Beside a treasuryNote, the amount that the note names instead.",
            example="$1.2M",
            column="treasury_minor",
            unless="treasuryAmount",
            order="treasury",
            range=Range(
                "treasuryMin",
                "The least treasury, such as 1.5M.",
                "treasuryMax",
                "The largest treasury.",
            ),
        ),
        Field(
            "status",
            Choice(STATUSES),
            "Status",
            example="active",
            filters=(Filter("Any of these statuses.", several=True),),
        ),
        Field(
            "type",
            Text(100, strip=True, line=True, suggest=TYPES),
            "Type",
            "For example corporation or accelerator.",
            example="DAO",
            review=True,
            filters=(Filter("Any of these types.", several=True),),
        ),
        Field(
            "industry",
            Text(100, strip=True, line=True, suggest=INDUSTRIES),
            "Industry",
            example="Water",
            filters=(Filter("Any of these industries.", several=True),),
        ),
        Field(
            "orgKind",
            Text(100, strip=True, line=True, suggest=ORG_KINDS),
            "Subtype",
            "For example protocol.",
            example="foundation",
        ),
        Field(
            "themes",
            Items(Text(60, line=True, suggest=THEMES), 30, unique=True),
            "Themes",
            example=["public goods"],
            filters=(Filter("Any of these themes.", "theme", several=True),),
        ),
        Field(
            "description",
            Text(2_000, lines=3),
            "Summary",
            "One or two sentences.",
            example="Keeps the Blue River clean.",
        ),
        Field(
            "body",
            Text(50_000, lines=12),
            "Full description",
            "Markdown: headings, lists, links, tables.",
            csv=CSV_LAST,
            null=True,
            summary="item",
        ),
        Field(
            "website",
            Link(500, strip=True),
            "Website",
            "Starts with https://",
            example="https://blue-river.example",
            description="A URL, https or http.",
        ),
        Field(
            "dao_website",
            Link(500, strip=True),
            "DAO website",
            "Starts with https://",
            description="A URL, https or http.",
        ),
        Field(
            "createdAt",
            MONTH,
            "Listed",
            "Listing date as month and year.",
            example="March 2024",
            column="listed_on",
            editable=False,
            unless="listedAt",
        ),
        Field(
            "icon",
            PictureLink(2_000),
            "Logo",
            "Logo URL as the source gave it, perhaps of another site.",
            editable=False,
            summary="none",
        ),
        Field("socials", SOCIALS, "Links", csv=CSV_CONTACT, null=True),
        Field(
            "address",
            ADDRESSES,
            "Addresses",
            csv=CSV_CONTACT,
            null=True,
            filters=(
                Filter(
                    "Any of these countries, by two letters or name; also those of derivedCountries.",
                    "country",
                    several=True,
                    member="country",
                    example="FR",
                ),
                Filter(
                    "Any of these states or regions, by name or code: California, CA or US-CA.",
                    "state",
                    several=True,
                    member="state",
                    example="California",
                ),
                Filter(
                    "Any of these cities.",
                    "city",
                    several=True,
                    member="city",
                    counted=False,
                    example="Lisbon",
                ),
            ),
        ),
        Field(
            "derivedCountries",
            Items(Country()),
            "Derived countries",
            "Countries of addresses that name none, derived from state and postal code; absent if there are none.",
            example=["US"],
            column="",
            csv=0,
            imported=False,
            editable=False,
            summary="item",
        ),
        Field(
            "treasuryAmount",
            Amount(currency),
            "Treasury, exact",
            "The exact treasury, as a decimal number in text.",
            example={"amount": "1249999.99", "currency": currency},
            column="treasury_minor",
            summary="item",
        ),
        Field(
            TREASURY_NOTE,
            Text(MAX_NOTE, strip=True, line=True),
            "Treasury note",
            "Only if the amount is not a treasury: for example, sum of grants received.",
            description="What the amount is, if it is no treasury; it is then in no order, range or total.",
            example="sum of grants received",
            column="",
            csv=CSV_NOTE,
        ),
        Field(
            "listedAt",
            DATE,
            "Listed",
            "Listing date; absent if only the month is known.",
            example="2024-03-31",
            column="listed_on",
            editable=False,
            order="listed",
            is_sorted=False,
            range=Range(
                "listedFrom",
                "Listed on this date or later.",
                "listedTo",
                "Listed on this date or earlier.",
            ),
        ),
        Field(
            "raising",
            Boolean(),
            "Raising funds",
            "Whether a funding round is open.",
            example=False,
            column="",
            imported=False,
            editable=False,
            filters=(Filter("Whether a funding round is open."),),
        ),
        Field(
            "updatedAt",
            MOMENT,
            "Updated",
            "When the listing last changed.",
            example="2026-01-31T09:30:00.000000Z",
            editable=False,
            order="updated",
            range=UPDATED,
            summary="none",
        ),
        Field(
            "reviewedAt",
            MOMENT,
            "Reviewed",
            "When a reviewer last approved the listing or a change to it; absent if that is not known.",
            example="2026-01-31T09:30:00.000000Z",
            editable=False,
            summary="item",
        ),
        Field(
            "maintainedByOwner",
            Boolean(),
            "Maintained by its owner",
            "Whether an account owns the listing.",
            example=True,
            column="",
            imported=False,
            editable=False,
            summary="item",
        ),
        Field(
            "formerNames",
            FORMER_NAMES,
            "Former names",
            "Names that it had in this registry, the latest first; absent if there are none.",
            csv=0,
            editable=False,
            summary="item",
        ),
        logo_field(),
        Field(
            "verifiedDomain",
            VERIFIED_DOMAIN,
            "Verified domain",
            "The domain of the website, where an owner has proven to control it; otherwise absent.",
            column="",
            csv=0,
            imported=False,
            editable=False,
        ),
        Field(
            "assessments",
            Items(ASSESSMENT),
            "Assessments",
            "Scores that its owners have published, the latest first: one of each framework; absent if there are none.",
            column="",
            csv=0,
            imported=False,
            editable=False,
            summary="item",
        ),
    )


def bundle(company: Record, funding_round: Record) -> Record:
    """Return the record of a company with its parts: the detail answer, a line of import, and what owners edit."""
    return Record(
        "CompanyBundle",
        (
            Field("company", company, "Company", required=True, editable=False),
            Field("distribution", DISTRIBUTION, "Token distribution", column="distribution", null=True),
            Field(
                "positions",
                POSITIONS,
                "Team",
                "The team: people by slug, or by name if new.",
                description="The team.",
            ),
            Field("proposals", PROPOSALS, "Proposals"),
            Field(
                "capTable",
                CAP_TABLE,
                "Cap table",
                filters=(Filter("Whether they have a cap table.", "hasCapTable", presence=True),),
            ),
            Field("fundingRounds", funding_rounds(funding_round), "Funding rounds"),
            Field(
                "fundingRound",
                funding_round,
                "Funding round",
                "Changes the open round, or opens a new one. A closed date ends it on that day.",
                shown=False,
                imported=False,
                clearable=False,
            ),
            Field("updatedAt", MOMENT, "Updated", shown=False, editable=False),
        ),
        others="ignore",
        limits_on_import="warn",
        check=_has_one_open_round,
    )


def _has_one_open_round(found: JSONObject, path: Path, validation: Validation) -> None:
    rounds = found.get("fundingRounds") or ()
    if sum(not each.get("closed") for each in rounds) > 1:
        validation.refuse((*path, "fundingRounds"), "has more than one open round: give all but one a closed date")


def object_breaches(size: int, before: int = 0) -> Iterator[Breach]:
    """Yield the breach of a company object that is too large, and larger than *before*."""
    if size > max(before, MAX_OBJECT_BYTES):
        reason = Phrase(
            "has {size:,} bytes with its distribution; at most {limit:,} are allowed", size=size, limit=MAX_OBJECT_BYTES
        )
        yield Breach(("company",), reason, is_limit=True, warns=True)


def listing_breaches(size: int) -> Iterator[Breach]:
    """Yield the breach of a listing that is too large."""
    if size > MAX_LISTING_BYTES:
        reason = Phrase(
            "has {size:,} bytes with all its parts; at most {limit:,} are allowed", size=size, limit=MAX_LISTING_BYTES
        )
        yield Breach(("listing",), reason, is_limit=True, warns=True)


def bundle_breaches(bundle: JSONMapping) -> Iterator[Breach]:
    """Yield the breaches of a whole listing, in wire form."""
    company = bytes_of({**bundle["company"], "distribution": bundle.get("distribution")})
    yield from object_breaches(company)
    parts = ("positions", "proposals", "capTable", "fundingRounds")
    yield from listing_breaches(company + sum(bytes_of(bundle[name]) for name in parts if bundle.get(name)))
