"""
The company and profile tools of the owner-scoped server, a few lines each over operations that the pages use too.

Source: tools, Owner-scoped server; decisions, sections 3 to 5.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from muniment.accounts.operations import account_of
from muniment.accounts.scopes import in_order
from muniment.kernel.actor import SCOPES
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.wire import timestamp
from muniment.mcp.declarations import Arguments, Caller, Tool
from muniment.mcp.tools import output_schemas, truncation
from muniment.oauth.token_authentication import Bridge
from muniment.registry.company import operations
from muniment.registry.company.company_change import CompanyChange
from muniment.registry.models import Person, State
from muniment.registry.people import profiles
from muniment.schema.form_options import form_options
from muniment.schema.kinds import ANSWER, CHANGE
from muniment.schema.objects import Schema
from muniment.schema.person import profile
from muniment.schema.record import nullable

_encode = msgspec.json.encode

_SLUG: Final = {"type": "string", "minLength": 1, "maxLength": 200, "description": "id of a list_my_companies item"}
_PAGE: Final[dict[str, JSONMapping]] = {
    "page": {"type": "integer", "minimum": 1, "maximum": 10**9, "default": 1},
    "pageSize": {"type": "integer", "minimum": 1, "maximum": 100, "default": 25},
}
_DRY: Final = {"type": "boolean", "default": False, "description": "return the diff without changing anything"}


class ManageTools:
    """
    The handlers. Each runs one operation in a thread, and formats its answer there too.

    Args:
        schema: of the registry's objects.
    """

    def __init__(self, call: Bridge, base_url: str, schema: Schema) -> None:
        self._call = call
        self._base_url = base_url
        self._form_options = _encode({"data": form_options(schema)})
        self._profile = profile(schema.person)

    def list_my_companies(self, arguments: Arguments, caller: Caller) -> Awaitable[bytes]:
        def work() -> bytes:
            found = operations.list_companies(
                caller.owner, page=arguments.get("page", 1), page_size=arguments.get("pageSize", 25)
            )
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
            return truncation.page(items, truncation.paging(found), lambda item: self._own_url(item["id"]))

        return self._call(work)

    def get_my_company(self, arguments: Arguments, caller: Caller) -> Awaitable[bytes]:
        def work() -> bytes:
            found = operations.get_company(caller.owner, arguments["slug"])
            whole = {
                **found.bundle,
                "state": found.state,
                "version": found.version,
                "pendingChanges": found.pending_changes,
                "reviewerNote": found.reviewer_note or None,
                "publicUrl": self._public_url(found.slug) if found.published else None,
            }
            return truncation.bundle(_encode({"data": whole}), self._own_url(found.slug))

        return self._call(work)

    def update_my_company(self, arguments: Arguments, caller: Caller) -> Awaitable[bytes]:
        def work() -> bytes:
            done = operations.update_company(
                caller.owner,
                arguments["slug"],
                CompanyChange(arguments["changes"]),
                expected_version=arguments.get("expectedVersion"),
                dry_run=arguments.get("dryRun", False),
            )
            company = dict(done.company.bundle["company"])
            for member in ("body", "description"):
                truncation.cut_text(company, member, 300, self._own_url(done.company.slug))
            company = truncation.facts(company, self._own_url(done.company.slug))
            return _encode(
                {
                    "data": {
                        "company": company,
                        "version": done.version,
                        "applied": done.applied,
                        "awaitingReview": done.awaiting_review,
                        "diff": _fitting(done.diff),
                    }
                }
            )

        return self._call(work)

    def get_my_profile(self, _: Arguments, caller: Caller) -> Awaitable[bytes]:
        def work() -> bytes:
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
            return truncation.record(_encode({"data": answer}), f"{self._base_url}/manage/profile", "companies")

        return self._call(work)

    def update_my_profile(self, arguments: Arguments, caller: Caller) -> Awaitable[bytes]:
        def work() -> bytes:
            change = profiles.ProfileChange(arguments["changes"])
            done = profiles.update_profile(caller.owner, change, dry_run=arguments.get("dryRun", False))
            person = self._person(done.person)
            truncation.cut_text(person, "bio", 300, f"{self._base_url}/manage/profile")
            return _encode({"data": {"person": person, "applied": done.applied, "diff": _fitting(done.diff)}})

        return self._call(work)

    def list_company_form_options(self, _: Arguments, __: Caller) -> bytes:
        return self._form_options

    def _person(self, row: Person) -> JSONObject:
        declared = {name: value for name, value in row.extra.items() if name in self._profile.by_name}
        return self._profile.published({**vars(row), "extra": declared}, {})

    def _public_url(self, slug: str) -> str:
        return f"{self._base_url}/companies/{quote(slug, safe='')}"

    def _own_url(self, slug: str) -> str:
        return f"{self._base_url}/manage/companies/{quote(slug, safe='')}"


def _fitting(diff: Mapping[str, JSONMapping]) -> dict[str, JSONObject]:
    """Return a diff that fits: long texts are truncated, long lists show the beginning and their length."""
    for characters, entries in ((2_000, 20), (500, 5), (100, 1)):
        fitted = {
            name: {side: _short(value, characters, entries) for side, value in sides.items()}
            for name, sides in diff.items()
        }
        if len(_encode(fitted)) <= truncation.BUDGET_BYTES // 2:
            return fitted
    return {name: {"truncated": True} for name in diff}


def _short(value: Any, characters: int, entries: int) -> Any:
    if isinstance(value, str) and len(value) > characters:
        return value[:characters].rstrip() + "…"
    if isinstance(value, list) and len(value) > entries:
        return {"first": value[:entries], "total": len(value), "truncated": True}
    return value


def _tool(name: str, title: str, description: str, *, scope: str, **rest: Any) -> Tool:
    return Tool(name=name, title=title, description=description, scope=scope, **rest)


_READS: Final = {"read_only": True, "idempotent": True}


def _tools(tools: ManageTools, schema: Schema) -> tuple[Tool, ...]:
    pending = output_schemas.pending(schema)
    listing = output_schemas.object_of(
        {
            **dict.fromkeys(("id", "name"), output_schemas.STRING),
            "state": output_schemas.one_of(*State.values),
            "role": output_schemas.STRING,
            "version": output_schemas.INTEGER,
            "updatedAt": output_schemas.MOMENT,
            "pendingChanges": pending,
        }
    )
    rounds = schema.bundle.by_name["fundingRounds"].schema(ANSWER)
    whole = output_schemas.bundle(
        schema,
        fundingRounds=rounds,
        state=output_schemas.one_of(*State.values),
        version=output_schemas.INTEGER,
        pendingChanges=pending,
        reviewerNote=nullable(output_schemas.STRING),
        reviewerNoteTruncated=output_schemas.BOOLEAN,
        reviewerNoteUrl=output_schemas.STRING,
        publicUrl=nullable(output_schemas.STRING),
    )
    person = output_schemas.record_of(profile(schema.person))
    names = output_schemas.list_of(output_schemas.STRING)
    return (
        _tool(
            "list_my_companies",
            "List my companies",
            "Listings that you own, in any state, last changed first, with changes pending review.",
            scope="companies:read",
            arguments=_PAGE,
            answer=output_schemas.paged(listing),
            handler=tools.list_my_companies,
            **_READS,
        ),
        _tool(
            "get_my_company",
            "Get my company",
            "One of your listings with its state and version. Long lists show the first 100, with …Total.",
            scope="companies:read",
            arguments={"slug": _SLUG},
            required=("slug",),
            answer=output_schemas.single({**whole, "required": ["company", "state", "version", "pendingChanges"]}),
            handler=tools.get_my_company,
            **_READS,
        ),
        _tool(
            "update_my_company",
            "Update my company",
            "Change fields of one of your listings. On a published one, changes to name, symbol or type need review; "
            "others go live at once. Changes can be reverted on the page. Try dryRun first.",
            scope="companies:write",
            arguments={
                "slug": _SLUG,
                "changes": {**schema.company_change.definition(CHANGE), "description": "only the fields to change"},
                "expectedVersion": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 2**31 - 1,
                    "description": "fail if the listing has another version",
                },
                "dryRun": _DRY,
            },
            required=("slug", "changes"),
            validated_later=("changes",),
            answer=output_schemas.single(
                output_schemas.object_of(
                    {
                        "company": output_schemas.record_of(schema.company),
                        "version": output_schemas.INTEGER,
                        "applied": names,
                        "awaitingReview": names,
                        "diff": output_schemas.DIFF,
                    }
                )
            ),
            handler=tools.update_my_company,
            destructive=True,
            idempotent=True,
        ),
        _tool(
            "get_my_profile",
            "Get my profile",
            "Your public profile, email address, companies (list_my_companies lists all) and scopes.",
            scope="profile:read",
            arguments={},
            answer=output_schemas.single(
                output_schemas.object_of(
                    {
                        "person": nullable(person),
                        "email": output_schemas.STRING,
                        "companies": output_schemas.list_of(
                            output_schemas.object_of(dict.fromkeys(("id", "name", "role"), output_schemas.STRING))
                        ),
                        "scopes": output_schemas.list_of(output_schemas.one_of(*SCOPES)),
                        "companiesTotal": output_schemas.INTEGER,
                    },
                    optional=("companiesTotal",),
                )
            ),
            handler=tools.get_my_profile,
            **_READS,
        ),
        _tool(
            "update_my_profile",
            "Update my profile",
            "Change the name or bio of your public profile; published at once, with a history.",
            scope="profile:write",
            arguments={"changes": schema.profile_change.definition(CHANGE), "dryRun": _DRY},
            required=("changes",),
            validated_later=("changes",),
            answer=output_schemas.single(
                output_schemas.object_of({"person": person, "applied": names, "diff": output_schemas.DIFF})
            ),
            handler=tools.update_my_profile,
            destructive=True,
            idempotent=True,
        ),
        _tool(
            "list_company_form_options",
            "List form options",
            "The values and lengths that update_my_company accepts. Fields named in open accept other values too.",
            scope="companies:read",
            arguments={},
            answer=output_schemas.single(output_schemas.form_options(schema)),
            handler=tools.list_company_form_options,
            **_READS,
        ),
    )


def company_tools(call: Bridge, base_url: str, schema: Schema) -> tuple[Tool, ...]:
    """
    Return the tools for companies and the profile.

    Args:
        call: runs an operation in a thread.
        base_url: the public URL, without a trailing slash.
        schema: of the registry's objects.
    """
    return _tools(ManageTools(call, base_url, schema), schema)
