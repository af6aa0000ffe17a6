"""
The profile tools of the owner-scoped server.

Source: tools, Owner-scoped server; decisions, section 5.
"""

from functools import partial
from typing import Any, Final

from muniment.accounts.operations import account_of
from muniment.accounts.scopes import in_order
from muniment.kernel.actor import SCOPES, Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.mcp import web_pages
from muniment.mcp.declarations import Arguments, Caller, Marked, Tool
from muniment.mcp.tools import answers, output_schemas
from muniment.mcp.tools.answers import FIELDS, Members
from muniment.mcp.tools.output_schemas import INTEGER, STRING, list_of, object_of, one_of, single, strings
from muniment.mcp.tools.owner.tool import (
    CHANGES,
    DRY,
    DRY_RUN,
    ENTRY,
    EXPECTED_VERSION,
    UNDO,
    lead_from_pictures,
    owner_tool,
    revert_arguments,
    shown_entries,
    undo,
)
from muniment.oauth.token_authentication import Bridge
from muniment.registry import provenance
from muniment.registry.company import listings
from muniment.registry.models import Company, Person
from muniment.registry.people import positions, profiles
from muniment.schema.kinds import CHANGE
from muniment.schema.objects import Schema
from muniment.schema.person import profile
from muniment.schema.record import nullable

_IDS: Final = {"type": "array", "items": {"type": "string"}}
_ANSWERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"confirm": _IDS, "decline": _IDS, "end": _IDS},
    "additionalProperties": False,
}
_NAMES: Final = list_of(STRING)
_HISTORY_ROWS: Final = 50
_MEMBERS: Final = Members(("person", "email", "companies", "scopes", "positions", "history"))


class ProfileTools:
    """The handlers."""

    def __init__(self, base_url: str, schema: Schema) -> None:
        self._base_url = base_url
        self._profile = profile(schema.person)

    def get_my_profile(self, arguments: Arguments, caller: Caller) -> Marked:
        actor = caller.actor
        person = profiles.get_profile(actor)
        companies = listings.list_companies(actor, page_size=100)
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
        if arguments.get("history", False):
            answer["history"] = shown_entries(profiles.profile_history(actor, page_size=_HISTORY_ROWS).items)
        (answer,) = _MEMBERS.chosen([answer], arguments)
        content = answers.record(answer, f"{self._base_url}/manage/profile", "companies")
        return Marked(content, answers.encoded_marks(marks))

    @staticmethod
    def _positions(actor: Actor) -> JSONObject:
        held = positions.list_positions(actor)
        shown = []
        for position in held[: answers.MAX_LISTED]:
            company = {"id": position.company.slug, "name": position.company.name}
            shown.append({"id": position.id, "title": position.title, "company": company, "state": position.state})
        answer: JSONObject = {"positions": shown}
        if len(shown) < len(held):
            answer["positionsTotal"] = len(held)
        return answer

    def update_my_profile(self, arguments: Arguments, caller: Caller) -> Marked:
        arguments = _told(arguments)
        if len(arguments.keys() & {"changes", "positions", "revert"}) != 1:
            raise BadRequest("The call needs changes, positions or revert.", "Send one of them in each call.")
        page = f"{self._base_url}{web_pages.PROFILE}"
        try:
            done = self._update(arguments, caller.actor)
        except BadRequest as refusal:
            lead_from_pictures(refusal, arguments, page)
            raise
        person = self._person(done.person)
        answers.cut_text(person, "bio", 300, f"{self._base_url}/manage/profile")
        shown: JSONObject = {"person": person, "applied": done.applied, "diff": answers.shown(done.diff)}
        if done.entry_id is not None:
            shown["undo"] = undo("update_my_profile", done.entry_id)
        answer = answers.dry_marked(shown, arguments)
        return answers.marked(answer, {("person", done.person.slug): provenance.mark(vars(done.person))})

    @staticmethod
    def _update(arguments: Arguments, actor: Actor) -> profiles.ProfileUpdate:
        """Apply the changes of a call, answer positions, or revert a change of the history."""
        dry_run = arguments.get("dryRun", False)
        expected = arguments.get("expectedVersion")
        if "revert" in arguments:
            overwrite = arguments.get("overwrite", False)
            return profiles.revert_profile(
                actor, arguments["revert"], expected_version=expected, overwrite=overwrite, dry_run=dry_run
            )
        if "positions" in arguments:
            positions.answer_positions(actor, **_answers(arguments["positions"]), dry_run=dry_run)
        change = profiles.ProfileChange(arguments.get("changes", {}))
        return profiles.update_profile(actor, change, expected_version=expected, dry_run=dry_run)

    def _person(self, row: Person) -> JSONObject:
        declared = {name: value for name, value in row.extra.items() if name in self._profile.by_name}
        return self._profile.published({**vars(row), "extra": declared}, {})


def _told(arguments: Arguments) -> Arguments:
    """Return the arguments without changes and answers that say nothing, if another of them does."""
    positions = arguments.get("positions")
    if isinstance(positions, dict):
        answers = {name: ids for name, ids in positions.items() if ids is not None and ids != []}
        arguments = {**arguments, "positions": answers}
    empty = {name for name in ("changes", "positions") if arguments.get(name) == {}}
    if empty and arguments.keys() & ({"changes", "positions", "revert"} - empty):
        return {name: value for name, value in arguments.items() if name not in empty}
    return arguments


def _answers(given: Any) -> dict[str, list[str]]:
    """Return lists of ids of positions by the answer, or raise BadRequest."""
    is_known = isinstance(given, dict) and bool(given) and given.keys() <= _ANSWERS["properties"].keys()
    if not is_known or not all(map(_is_list_of_texts, given.values())):
        raise BadRequest("positions has no lists of ids.", 'Send {"confirm": [ids], "decline": [ids], "end": [ids]}.')
    answers_by_kind: dict[str, list[str]] = given
    return answers_by_kind


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def profile_tools(call: Bridge, base_url: str, schema: Schema) -> tuple[Tool, ...]:
    """Return the tools for the profile."""
    tools = ProfileTools(base_url, schema)
    tool = partial(owner_tool, call=call)
    person = output_schemas.record_of(profile(schema.person))
    return (
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
                        "history": list_of(ENTRY),
                    },
                    optional=(*tuple(_MEMBERS.names), "companiesTotal", "positionsTotal"),
                )
            ),
            arguments={
                "history": {"type": "boolean", "default": False, "description": "also its latest changes"},
                **FIELDS,
            },
        ),
        tool(
            tools.update_my_profile,
            "Update my profile",
            "Change the name or bio of your public profile, or answer positions by the ids of get_my_profile: confirm, "
            "decline or end them. Published at once.",
            "profile:write",
            single(
                object_of(
                    {"person": person, "applied": _NAMES, "diff": output_schemas.DIFF, "undo": UNDO, **DRY},
                    optional=("undo", *DRY),
                )
            ),
            arguments={
                "changes": schema.profile_change.definition(CHANGE),
                "positions": _ANSWERS,
                **revert_arguments("get_my_profile history"),
                "expectedVersion": EXPECTED_VERSION,
                "dryRun": DRY_RUN,
            },
            **CHANGES,
        ),
    )
