"""
The values and lengths that an owner's form takes: shown by both tool servers, applied by whoever edits.

Pure: no table is asked. A member named in `open` suggests values and takes others too.

Source: tools, list_company_form_options; service document, Company.
"""

from typing import Any, Final

STATUSES: Final = ("active", "upcoming", "inactive")
TYPES: Final = (
    "corporation",
    "DAO",
    "non-profit",
    "cooperative",
    "foundation",
    "accelerator",
    "incubator",
    "VC",
    "open source project",
    "government",
    "other",
)
INDUSTRIES: Final = (
    "Agriculture",
    "Arts and culture",
    "Blockchain",
    "Climate",
    "Education",
    "Energy",
    "Finance",
    "Health",
    "Infrastructure",
    "Logistics",
    "Manufacturing",
    "Media",
    "Nonprofit",
    "Real estate",
    "Research",
    "Software",
)
ORG_KINDS: Final = ("project", "startup", "company", "cooperative", "protocol", "foundation", "fund", "community")
THEMES: Final = (
    "climate",
    "community",
    "defi",
    "education",
    "energy",
    "governance",
    "health",
    "infrastructure",
    "open-source",
    "privacy",
    "public-goods",
    "research",
    "social",
)
SOCIALS: Final = ("email", "phone_number", "facebook", "instagram", "tiktok", "linkedin", "youtube", "twitter")
ADDRESS: Final = ("address_1", "address_2", "city", "state", "zip")
OPEN: Final = ("type", "industry", "orgKind", "themes")
MAX_CHARACTERS: Final = {
    "name": 200,
    "symbol": 32,
    "type": 100,
    "industry": 100,
    "orgKind": 100,
    "themes": 60,
    "description": 2_000,
    "body": 50_000,
    "website": 500,
    "dao_website": 500,
    "treasury": 40,
    "socials": 300,
    "address": 200,
}
"""Of a text; of one entry in themes; of one value in socials and address."""
MAX_ENTRIES: Final = {
    "themes": 30,
    "address": 10,
    "pools": 50,
    "positions": 500,
    "proposals": 500,
    "capTable": 5_000,
}


def form_options() -> dict[str, Any]:
    """Give the options as both tool servers show them."""
    return {
        "status": list(STATUSES),
        "type": list(TYPES),
        "industry": list(INDUSTRIES),
        "orgKind": list(ORG_KINDS),
        "themes": list(THEMES),
        "socials": list(SOCIALS),
        "address": list(ADDRESS),
        "open": list(OPEN),
        "limits": {"characters": dict(MAX_CHARACTERS), "entries": dict(MAX_ENTRIES)},
    }
