"""
The company and profile tools of the owner-scoped server, a few lines each over operations that the pages use too.

Source: tools, Owner-scoped server; decisions, sections 3 to 5.
"""

from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from muniment.accounts.operations import account_of
from muniment.accounts.scopes import in_order
from muniment.kernel.actor import SCOPES, Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.kernel.wire import picture_address, timestamp, with_picture_addresses
from muniment.mcp import provenance as marking
from muniment.mcp.declarations import Arguments, Caller, Marked, Tool
from muniment.mcp.tools import output_schemas, owner_bundle, truncation
from muniment.mcp.tools.form_options import form_options_tool
from muniment.mcp.tools.output_schemas import (
    BOOLEAN,
    INTEGER,
    MOMENT,
    STRING,
    list_of,
    object_of,
    one_of,
    paged,
    single,
    strings,
)
from muniment.mcp.tools.owner_tool import PAGE, SLUG, owner_tool, page_of
from muniment.oauth.token_authentication import Bridge
from muniment.registry import provenance
from muniment.registry.company import operations
from muniment.registry.company.company_change import CompanyChange
from muniment.registry.models import Company, Person, State
from muniment.registry.people import positions, profiles
from muniment.schema.kinds import ANSWER, CHANGE
from muniment.schema.objects import Schema
from muniment.schema.person import profile
from muniment.schema.record import nullable

_encode = msgspec.json.encode

_DRY: Final = {"type": "boolean", "default": False, "description": "return the diff without changing anything"}
_EXPECTED_VERSION: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**31 - 1,
    "description": "fail if another version is stored",
}
_EXPECTED_TOTALS: Final = {
    "type": "object",
    "description": 'to replace a list by a shorter one: its stored rows, such as {"positions": 150}',
}
_CHANGES: Final[dict[str, Any]] = {
    "validated_later": ("changes", "positions", "expectedTotals"),
    "destructive": True,
    "idempotent": True,
}
_REVERT: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 10**15,
    "description": "instead of changes: undo the entry with this id of get_my_company parts history",
}
_OVERWRITE: Final = {
    "type": "boolean",
    "default": False,
    "description": "revert although later changes touched the same fields",
}
_HISTORY_ROWS: Final = 500
_IDS: Final = {"type": "array", "items": {"type": "string"}}
_ANSWERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"confirm": _IDS, "decline": _IDS, "end": _IDS},
    "additionalProperties": False,
}
_NAMES: Final = list_of(STRING)
_MARKS: Final = output_schemas.cut_marks("note")
_ENTRY: Final = object_of(
    {"id": INTEGER, "at": MOMENT, **strings("action", "via"), "fields": _NAMES, "note": nullable(STRING), **_MARKS},
    optional=tuple(_MARKS),
)


class ManageTools:
    """The handlers. Each runs one operation and formats its answer."""

    def __init__(self, base_url: str, schema: Schema) -> None:
        self._base_url = base_url
        self._profile = profile(schema.person)

    def list_my_companies(self, arguments: Arguments, caller: Caller) -> Marked:
        found = operations.list_companies(caller.owner, **page_of(arguments))
        items = [
            {
                "id": each.slug,
                "name": each.name,
                "state": each.state,
                "role": each.role,
                "version": each.version,
                "updatedAt": timestamp(each.updated_at),
                "pendingChanges": each.pending_changes,
            }
            for each in found.items
        ]
        content = truncation.page(items, truncation.paging(found), lambda item: self._own_url(item["id"]))
        marks = {each.slug: each.provenance for each in found.items}
        return Marked(content, marking.encode({("company", key): marks[key] for key in marking.keys(content)}))

    def get_my_company(self, arguments: Arguments, caller: Caller) -> Marked:
        found = operations.get_company(caller.owner, arguments["slug"])
        public_url = f"{self._base_url}/companies/{quote(found.slug, safe='')}"
        whole = {
            **found.bundle,
            "state": found.state,
            "version": found.version,
            "pendingChanges": found.pending_changes,
            "reviewerNote": found.reviewer_note or None,
            "publicUrl": public_url if found.published else None,
        }
        if owner_bundle.HISTORY in arguments.get("parts", ()):
            whole[owner_bundle.HISTORY] = self._history(arguments, caller)
        plain = msgspec.json.decode(with_picture_addresses(_encode(whole), self._base_url))
        window = {name: arguments[name] for name in ("parts", "offset", "limit") if name in arguments}
        answer = owner_bundle.fit(plain, self._own_url(found.slug), **window)
        return marking.mark(answer, {("company", found.slug): found.provenance})

    @staticmethod
    def _history(arguments: Arguments, caller: Caller) -> list[JSONObject]:
        slug = arguments["slug"]
        found = operations.company_history(caller.owner, slug, page_size=_HISTORY_ROWS, with_values=False)
        return [
            {
                "id": entry.pk,
                "at": timestamp(entry.at),
                "action": entry.action,
                "fields": entry.changed,
                "via": entry.credential or entry.via,
                "note": entry.note or None,
            }
            for entry in found.items
        ]

    def update_my_company(self, arguments: Arguments, caller: Caller) -> Marked:
        dry_run = arguments.get("dryRun", False)
        done = self._update(arguments, caller, dry_run=dry_run)
        company, url = dict(done.company.bundle["company"]), self._own_url(done.company.slug)
        for member in ("body", "description"):
            truncation.cut_text(company, member, 300, url)
        if "icon" in company:
            company["icon"] = picture_address(company["icon"], self._base_url)
        answer = {
            "company": truncation.facts(company, url),
            "version": done.version,
            "applied": done.applied,
            "awaitingReview": done.awaiting_review,
            "withdrawn": done.withdrawn,
            **({"awaitingPeople": done.awaiting_people} if done.awaiting_people else {}),
            "diff": truncation.diff(done.diff),
            **_dry(dry_run),
        }
        return marking.mark(answer, {("company", done.company.slug): done.company.provenance})

    @staticmethod
    def _update(arguments: Arguments, caller: Caller, *, dry_run: bool) -> operations.CompanyUpdate:
        """Apply the changes of a call, or revert a change of the history."""
        if ("changes" in arguments) == ("revert" in arguments):
            raise BadRequest("The call needs either changes or revert.", "Send changes with the fields to change.")
        expected = arguments.get("expectedVersion")
        if "revert" in arguments:
            return operations.revert_company(
                caller.owner,
                arguments["slug"],
                arguments["revert"],
                expected_version=expected,
                overwrite=arguments.get("overwrite", False),
                dry_run=dry_run,
            )
        return operations.update_company(
            caller.owner,
            arguments["slug"],
            CompanyChange(arguments["changes"]),
            expected_version=expected,
            expected_totals=arguments.get("expectedTotals"),
            dry_run=dry_run,
        )

    def get_my_profile(self, _: Arguments, caller: Caller) -> Marked:
        actor = caller.owner
        person = profiles.get_profile(actor)
        companies = operations.list_companies(actor, page_size=100)
        answer: JSONObject = {
            "person": self._person(person) if person else None,
            "email": account_of(actor).email,
            "companies": [{"id": each.slug, "name": each.name, "role": each.role} for each in companies.items],
            "scopes": in_order(actor.scopes),
        }
        if companies.page_count > 1:
            answer["companiesTotal"] = companies.total
        marks = {("company", each.slug): each.provenance for each in companies.items}
        if person:
            marks["person", person.slug] = provenance.mark(vars(person))
            answer |= self._positions(actor)
            named = provenance.marks(Company, (each["company"]["id"] for each in answer["positions"]))
            marks |= {("company", key): mark for key, mark in named.items()}
        content = truncation.record(_encode({"data": answer}), f"{self._base_url}/manage/profile", "companies")
        return Marked(content, marking.encode(marks))

    @staticmethod
    def _positions(actor: Actor) -> JSONObject:
        held = positions.list_positions(actor)
        shown = [
            {
                "id": each.id,
                "title": each.title,
                "company": {"id": each.company.slug, "name": each.company.name},
                "state": each.state,
            }
            for each in held[: truncation.MAX_LISTED]
        ]
        return {"positions": shown, **({"positionsTotal": len(held)} if len(shown) < len(held) else {})}

    def update_my_profile(self, arguments: Arguments, caller: Caller) -> Marked:
        if ("changes" in arguments) == ("positions" in arguments):
            raise BadRequest("The call needs either changes or positions.", "Send one of them in each call.")
        dry_run = arguments.get("dryRun", False)
        if "positions" in arguments:
            positions.answer_positions(caller.owner, **_answers(arguments["positions"]), dry_run=dry_run)
        change = profiles.ProfileChange(arguments.get("changes", {}))
        expected = arguments.get("expectedVersion")
        done = profiles.update_profile(caller.owner, change, expected_version=expected, dry_run=dry_run)
        person = self._person(done.person)
        truncation.cut_text(person, "bio", 300, f"{self._base_url}/manage/profile")
        answer = {"person": person, "applied": done.applied, "diff": truncation.diff(done.diff), **_dry(dry_run)}
        return marking.mark(answer, {("person", done.person.slug): provenance.mark(vars(done.person))})

    def _person(self, row: Person) -> JSONObject:
        declared = {name: value for name, value in row.extra.items() if name in self._profile.by_name}
        return self._profile.published({**vars(row), "extra": declared}, {})

    def _own_url(self, slug: str) -> str:
        return f"{self._base_url}/manage/companies/{quote(slug, safe='')}"


def _dry(dry_run: bool) -> JSONObject:  # noqa: FBT001 - private to this module
    """Return the member that marks a dry run's answer, so that no client reads it as done."""
    return {"dryRun": True} if dry_run else {}


def _answers(given: Any) -> dict[str, list[str]]:
    """Return lists of ids of positions by the answer, or raise BadRequest."""
    known = isinstance(given, dict) and bool(given) and given.keys() <= _ANSWERS["properties"].keys()
    lists: dict[str, Any] = given if known else {"": None}
    if not all(isinstance(ids, list) and all(isinstance(each, str) for each in ids) for ids in lists.values()):
        raise BadRequest("positions has no lists of ids.", 'Send {"confirm": [ids], "decline": [ids], "end": [ids]}.')
    return lists


def company_tools(call: Bridge, base_url: str, schema: Schema) -> tuple[Tool, ...]:
    """Return the tools for companies and the profile."""
    tools = ManageTools(base_url, schema)
    tool = partial(owner_tool, call=call)
    pending = output_schemas.pending(schema)
    common = {"state": one_of(*State.values), "version": INTEGER, "pendingChanges": pending}
    whole = output_schemas.bundle(
        schema,
        fundingRounds=schema.bundle.by_name["fundingRounds"].schema(ANSWER),
        notShown={"type": "object", "additionalProperties": {"type": "object"}},
        **common,
        reviewerNote=nullable(STRING),
        **output_schemas.cut_marks("reviewerNote"),
        publicUrl=nullable(STRING),
        history=list_of(_ENTRY),
        historyTotal=INTEGER,
    )
    listing = {**strings("id", "name"), "state": one_of(*State.values), "role": STRING, "version": INTEGER}
    person = output_schemas.record_of(profile(schema.person))
    return (
        tool(
            tools.list_my_companies,
            "List my companies",
            "Listings that you own, in any state, last changed first, with changes pending review.",
            "companies:read",
            paged(object_of({**listing, "updatedAt": MOMENT, "pendingChanges": pending})),
            arguments=PAGE,
        ),
        tool(
            tools.get_my_company,
            "Get my company",
            "One of your listings with its state and version. Of long lists it shows the first rows; notShown says how "
            "many there are, and which arguments show the next.",
            "companies:read",
            single({**whole, "required": list(common)}),
            arguments={
                "slug": SLUG,
                "parts": {
                    "type": "array",
                    "items": {"type": "string", "enum": [*owner_bundle.PARTS, owner_bundle.HISTORY]},
                    "maxItems": len(owner_bundle.PARTS) + 1,
                    "description": "default: all but history",
                },
                "offset": {"type": "integer", "minimum": 0, "maximum": 10**6, "description": "of each list"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1_000, "description": "rows of each list"},
            },
            required=("slug",),
        ),
        tool(
            tools.update_my_company,
            "Update my company",
            "Change fields of one of your listings. On a published one, changes to name, symbol or type need review; "
            "others go live at once. Edit single rows of a list with "
            '{"add": [rows], "set": [rows with id], "remove": [ids]}. Try dryRun first.',
            "companies:write",
            single(
                object_of(
                    {
                        "company": output_schemas.record_of(schema.company),
                        "version": INTEGER,
                        "applied": _NAMES,
                        "awaitingReview": _NAMES,
                        "withdrawn": _NAMES,
                        "awaitingPeople": _NAMES,
                        "diff": output_schemas.DIFF,
                        "dryRun": BOOLEAN,
                    },
                    optional=("awaitingPeople", "dryRun"),
                )
            ),
            arguments={
                "slug": SLUG,
                "changes": {**schema.company_change.definition(CHANGE), "description": "only the fields to change"},
                "revert": _REVERT,
                "overwrite": _OVERWRITE,
                "expectedVersion": _EXPECTED_VERSION,
                "expectedTotals": _EXPECTED_TOTALS,
                "dryRun": _DRY,
            },
            required=("slug",),
            **_CHANGES,
        ),
        tool(
            tools.get_my_profile,
            "Get my profile",
            "Your profile with its positions, email address, companies (list_my_companies lists all) and scopes.",
            "profile:read",
            single(
                object_of(
                    {
                        "person": nullable(person),
                        "email": STRING,
                        "companies": list_of(object_of(strings("id", "name", "role"))),
                        "scopes": list_of(one_of(*SCOPES)),
                        "companiesTotal": INTEGER,
                        "positions": list_of(
                            object_of(
                                {
                                    **strings("id", "title"),
                                    "company": object_of(strings("id", "name")),
                                    "state": one_of(positions.REQUESTED, positions.CONFIRMED),
                                }
                            )
                        ),
                        "positionsTotal": INTEGER,
                    },
                    optional=("companiesTotal", "positions", "positionsTotal"),
                )
            ),
        ),
        tool(
            tools.update_my_profile,
            "Update my profile",
            "Change the name or bio of your public profile, or answer positions by the ids of get_my_profile: confirm, "
            "decline or end them. Published at once, with a history.",
            "profile:write",
            single(
                object_of(
                    {"person": person, "applied": _NAMES, "diff": output_schemas.DIFF, "dryRun": BOOLEAN},
                    optional=("dryRun",),
                )
            ),
            arguments={
                "changes": schema.profile_change.definition(CHANGE),
                "positions": _ANSWERS,
                "expectedVersion": _EXPECTED_VERSION,
                "dryRun": _DRY,
            },
            **_CHANGES,
        ),
        form_options_tool(
            schema,
            "The values and lengths that update_my_company accepts. Fields named in open accept other values too.",
            "companies:read",
        ),
    )
