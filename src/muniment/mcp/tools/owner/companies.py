"""
The company tools of the owner-scoped server, a few lines each over operations that the pages use too.

An owner writes back what was read. So a list that is short enough to be replaced whole is never cut; of a longer one an
answer shows chosen parts and rows from an offset on, and says what is not shown.

Source: tools, Owner-scoped server; decisions, sections 3 to 5.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject, encode
from muniment.kernel.problems import BadRequest
from muniment.kernel.wire import picture_address, timestamp, with_picture_addresses
from muniment.mcp.arguments import UNSHOWN, Addresses
from muniment.mcp.declarations import Arguments, Caller, Marked, Tool
from muniment.mcp.tools import answers, output_schemas
from muniment.mcp.tools.answers import DETAIL, FIELDS, Members, Shape
from muniment.mcp.tools.output_schemas import (
    INTEGER,
    MOMENT,
    STRING,
    cuttable,
    list_of,
    object_of,
    one_of,
    paged,
    single,
    some_of,
    strings,
)
from muniment.mcp.tools.owner.tool import (
    CHANGES,
    DRY,
    DRY_RUN,
    ENTRY,
    EXPECTED_VERSION,
    HISTORY_ROWS,
    PAGE,
    SLUG,
    UNDO,
    lead_from_pictures,
    owner_tool,
    page_of,
    rehearsal,
    revert_arguments,
    shown_entries,
    undo,
)
from muniment.oauth.token_authentication import Bridge
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange, is_short
from muniment.registry.models import State
from muniment.registry.review import workflow
from muniment.schema.company_parts import SOCIALS
from muniment.schema.item_lists import ItemList
from muniment.schema.kinds import ANSWER, CHANGE
from muniment.schema.objects import Schema
from muniment.schema.record import Record, nullable

PARTS: Final = ("company", "distribution", "positions", "proposals", "capTable", "fundingRounds")
HISTORY: Final = "history"
"""A part that only a call that names it shows."""
LISTS: Final = ("positions", "proposals", "capTable", "fundingRounds", HISTORY)
_LONGEST: Final = "capTable"
"""The list that a plain read leaves out if it is long: hardly any job needs its first rows."""
_ROOM_BYTES: Final = 8_000
"""Bytes reserved for the first rows of long lists: texts are cut before fewer rows are shown."""
_NOTE_BYTES: Final = 250
"""Bytes reserved for the note about one list that is not shown whole."""


def fit(
    data: JSONObject,
    url: str,
    *,
    parts: Collection[str] | None = None,
    offset: int = 0,
    limit: int | None = None,
    is_lean: bool = False,
) -> JSONObject:
    """
    Return the members of the answer.

    Args:
        data: the whole listing, as plain values.
        url: the URL of the page with the whole listing.
        parts: which of `PARTS` to include; None for all.
        offset: the first row to show of each list.
        limit: how many rows to show of each list; None for 100, and for all of a short list.
        is_lean: show only the number of rows of a long cap table, and how to get them.
    """
    chosen, lists = _chosen(data, parts)
    reads_rows = offset > 0 or limit is not None
    whole, long = _whole_and_long(lists, reads_rows=reads_rows, is_lean=is_lean)

    room = answers.BUDGET_BYTES - _NOTE_BYTES * len(lists)
    for rows in whole.values():
        room -= len(encode(rows))
    kept_for_rows = _ROOM_BYTES if len(whole) < len(lists) else 0
    room -= _cut(chosen, url, room - kept_for_rows)

    window = slice(offset, offset + (limit or answers.MAX_LISTED))
    shown = whole | _first_rows_of({name: rows[window] for name, rows in long.items()}, room, url)
    shown = {name: shown[name] for name in lists if name in shown}
    facts = {name: value for name, value in chosen.items() if name in PARTS}
    return {**facts, **shown, **chosen, **_totals(lists, shown, offset)}


def _chosen(data: JSONObject, parts: Collection[str] | None) -> tuple[JSONObject, dict[str, list[Any]]]:
    """Return the members of the listing that a call names, and apart from them its lists."""
    chosen = dict(data)
    if parts is not None:
        for name in PARTS:
            if name not in parts:
                chosen.pop(name, None)
    lists = {}
    for name in LISTS:
        if name in chosen:
            lists[name] = chosen.pop(name)
    return chosen, lists


def _whole_and_long(
    lists: Mapping[str, list[Any]], *, reads_rows: bool, is_lean: bool
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the lists that are shown whole, because the owner may write them back, and those with first rows only."""
    whole, long = {}, {}
    for name, rows in lists.items():
        if not reads_rows and is_short(rows):
            whole[name] = rows
        elif not (is_lean and name == _LONGEST):
            long[name] = rows
    return whole, long


def _first_rows_of(lists: Mapping[str, list[Any]], room: int, url: str) -> dict[str, list[Any]]:
    shown = {}
    for number, (name, rows) in enumerate(lists.items()):
        # Later lists may use the rest of this list's share.
        share = room // (len(lists) - number)
        shown[name], used_bytes = _first_rows(rows, share, url)
        room -= used_bytes
    return shown


def _totals(lists: Mapping[str, list[Any]], shown: Mapping[str, list[Any]], offset: int) -> JSONObject:
    """Return the length of each list, and notes about those that are not shown whole; nothing if all are."""
    notes = {}
    for name, rows in lists.items():
        shown_rows = shown.get(name, [])
        if len(shown_rows) < len(rows):
            notes[name] = _note(name, rows, shown_rows, offset)
    if not notes:
        return {}
    totals = {f"{name}Total": len(rows) for name, rows in lists.items()}
    return {**totals, "notShown": notes}


def _cut(chosen: JSONObject, url: str, room: int) -> int:
    """Shorten the texts of the listing until it takes *room* bytes, or only names are left; return its size."""
    size = len(encode(chosen))
    for characters in (40_000, 20_000, *answers.TEXT_STEPS):
        if size <= room:
            return size
        for part in (chosen, chosen.get("company"), chosen.get("distribution")):
            if part:
                answers.cut_texts(part, characters, url)
        size = len(encode(chosen))
    if size > room:
        chosen.pop("distribution", None)
        if "company" in chosen:
            chosen["company"] = answers.named(chosen["company"], url)
        size = len(encode(chosen))
    return size


def _first_rows(rows: Sequence[JSONObject], room: int, url: str) -> tuple[list[JSONObject], int]:
    """Return the first rows that fit into *room* bytes, at least one, and their size."""
    first_rows: list[JSONObject] = []
    used_bytes = 0
    for row in rows:
        size = len(encode(row)) + 1
        if first_rows and used_bytes + size > room:
            break
        if not first_rows and size > room:
            row = dict(row)  # noqa: PLW2901 - a copy that is cut
            answers.cut_texts(row, 500, url)
            size = len(encode(row)) + 1
        first_rows.append(row)
        used_bytes += size
    return first_rows, used_bytes


def _note(name: str, rows: Sequence[JSONObject], shown: Sequence[JSONObject], offset: int) -> JSONObject:
    """Return what of a list is not shown, and the arguments that show more of it."""
    end = offset + len(shown)
    note: JSONObject = {"total": len(rows), "offset": offset, "shown": len(shown)}
    if end < len(rows):
        note["next"] = {"parts": [name], "offset": end}
    return note


_EXPECTED_TOTALS: Final = {
    "type": "object",
    "description": 'to replace a list by a shorter one: its stored rows, such as {"positions": 150}',
}
_NAMES: Final = list_of(STRING)
_ROUND: Final = "fundingRound"
_MAX_NAMES: Final = 20
"""Added names whose profiles an answer shows."""
_LISTING: Final = {
    **strings("id", "name"),
    "state": one_of(*State.values),
    "role": STRING,
    "version": INTEGER,
    "updatedAt": MOMENT,
}
_LISTED: Final = Members((*_LISTING, "pendingChanges", "missing"), identity=("id",))


class CompanyTools:
    """The handlers. Each runs one operation and formats its answer."""

    def __init__(self, base_url: str, schema: Schema) -> None:
        self._base_url = base_url
        self._shape = Shape(schema.company, parts=PARTS[1:])
        self._addresses = Addresses(base_url, frozenset())

    def list_my_companies(self, arguments: Arguments, caller: Caller) -> Marked:
        found = listings.list_companies(caller.actor, **page_of(arguments))
        items = [
            {
                "id": each.slug,
                "name": each.name,
                "state": each.state,
                "role": each.role,
                "version": each.version,
                "updatedAt": timestamp(each.updated_at),
                "pendingChanges": each.pending_changes,
                "missing": each.missing,
            }
            for each in found.items
        ]
        items = _LISTED.chosen(items, arguments)
        content = answers.page(items, answers.paging(found), lambda item: self._own_url(item["id"]))
        marks = {each.slug: each.provenance for each in found.items}
        return answers.marked_items(content, "company", marks)

    def get_my_company(self, arguments: Arguments, caller: Caller) -> Marked:
        found = listings.get_company(caller.actor, arguments["slug"])
        public_url = f"{self._base_url}/companies/{quote(found.slug, safe='')}"
        whole = {
            **found.bundle,
            "state": found.state,
            "version": found.version,
            "pendingChanges": found.pending_changes,
            "reviewerNote": found.reviewer_note or None,
            "publicUrl": public_url if found.published else None,
        }
        if HISTORY in arguments.get("parts", ()):
            found_entries = listings.company_history(
                caller.actor, arguments["slug"], page_size=HISTORY_ROWS, with_values=False
            )
            whole[HISTORY] = shown_entries(found_entries.items)
        plain = msgspec.json.decode(with_picture_addresses(encode(whole), self._base_url))
        form, parts = answers.form_of(arguments), arguments.get("parts")
        # Fields name parts too; without them, the window leaves out the parts that the call does not want.
        named = self._shape.bundle(plain, form, parts if form.fields is not None else None, of=())
        window = {name: arguments[name] for name in ("offset", "limit") if name in arguments}
        is_lean = parts is None and form.fields is None and not form.full and not window
        parts = None if form.fields is not None else parts
        answer = fit(named, self._own_url(found.slug), parts=parts, is_lean=is_lean, **window)
        return answers.marked(answer, {("company", found.slug): found.provenance})

    def update_my_company(self, arguments: Arguments, caller: Caller) -> Marked:
        try:
            done = self._update(arguments, caller)
        except BadRequest as refusal:
            lead_from_pictures(refusal, arguments, f"{self._own_url(arguments['slug'])}/logo")
            raise
        notes = [*_notes(done.diff), *_replacements(done.replaced)]
        answer: JSONObject = {}
        if "company" in arguments.get("include", ()):
            answer["company"] = self._facts(done.company)
        answer |= {"version": done.version, "applied": done.applied, "awaitingReview": done.awaiting_review}
        # Most updates have none of these, and each member costs the model's context.
        optional = {
            "withdrawn": done.withdrawn,
            "awaitingPeople": done.awaiting_people,
            "profilesOfNames": dict(islice(done.profiles.items(), _MAX_NAMES)),
        }
        answer |= {name: value for name, value in optional.items() if value}
        answer["diff"] = answers.shown(done.diff)
        if notes:
            answer["notes"] = notes
        if done.entry_id is not None:
            answer["undo"] = undo("update_my_company", done.entry_id, slug=done.company.slug)
        answer = answers.dry_marked(answer, arguments)
        return answers.marked(answer, {("company", done.company.slug): done.company.provenance})

    def _facts(self, found: listings.OwnedCompany) -> JSONObject:
        company, url = dict(found.bundle["company"]), self._own_url(found.slug)
        for member in ("body", "description"):
            answers.cut_text(company, member, 300, url)
        if "icon" in company:
            company["icon"] = picture_address(company["icon"], self._base_url)
        return answers.facts(company, url)

    def _update(self, arguments: Arguments, caller: Caller) -> listings.CompanyUpdate:
        """Apply the changes of a call, or revert a change of the history."""
        entry, changes = arguments.get("revert"), arguments.get("changes")
        is_nothing = entry is None and changes is None
        is_both = entry is not None and changes
        if is_nothing or is_both:
            raise BadRequest("The call needs either changes or revert.", "Send changes with the fields to change.")

        expected = arguments.get("expectedVersion")
        if entry is not None:
            return listings.revert_company(
                caller.actor,
                arguments["slug"],
                entry,
                expected_version=expected,
                overwrite=arguments.get("overwrite", False),
                dry_run=arguments.get("dryRun", False),
            )
        return listings.update_company(
            caller.actor,
            arguments["slug"],
            CompanyChange(self._addresses.in_positions(changes or {})),
            expected_version=expected,
            expected_totals=arguments.get("expectedTotals"),
            dry_run=arguments.get("dryRun", False),
        )

    def submit_for_review(self, arguments: Arguments, caller: Caller) -> JSONObject:
        slug, expected = arguments["slug"], arguments.get("expectedVersion")
        with rehearsal(arguments):
            if arguments.get("withdraw", False):
                company = workflow.withdraw_submission(caller.actor, slug, expected_version=expected)
            else:
                company = workflow.submit_company(caller.actor, slug, expected_version=expected)
        shown = {"id": company.slug, "state": company.state, "version": company.version}
        return {"data": answers.dry_marked(shown, arguments)}

    def _own_url(self, slug: str) -> str:
        return f"{self._base_url}/manage/companies/{quote(slug, safe='')}"


def _notes(diff: Mapping[str, JSONObject]) -> list[str]:
    """Return what a change may have lost unnoticed: the country of an address that was replaced."""
    change = diff.get("address", {})
    before, after = change.get("before") or [], change.get("after") or []
    former = {each["country"] for each in before if each.get("country")}
    kept = {each["country"] for each in after if each.get("country")}
    lost = sorted(former - kept)
    if not lost or all(each.get("country") for each in after):
        return []
    return [f"The new address has no country; before it was {', '.join(lost)}. Add country if it is still right."]


def _replacements(replaced: JSONMapping) -> Iterator[str]:
    """Yield a warning for each value that no longer waits for a reviewer because the call replaces it."""
    for name, value in replaced.items():
        shown = msgspec.json.encode(value).decode()
        yield f"The {name} that waited for a reviewer, {shown}, is replaced by this one and will not be decided."


def _changes(schema: Schema) -> JSONObject:
    """Return the schema of a change; what needs no description is not shown."""
    whole = schema.company_change.definition(CHANGE)
    fields = dict(whole["properties"])
    networks = fields["socials"]["anyOf"][0]
    networks |= {UNSHOWN: networks.pop("properties"), "description": ", ".join(each.name for each in SOCIALS.fields)}
    fields[_ROUND] = {
        "type": "object",
        "description": f"A row of fundingRounds. {fields[_ROUND]['description']}",
        UNSHOWN: fields[_ROUND]["properties"],
    }
    pools = schema.company_change.by_name["distribution"].kind
    assert isinstance(pools, Record)  # noqa: S101 - for the type checker
    distribution = fields["distribution"]["anyOf"][0]["properties"]
    for record, described in ((schema.company_change, fields), (pools, distribution)):
        for field in record.fields:
            # The registry numbers added rows; set, which is described by words, names the ids of others.
            if isinstance(field.kind, ItemList) and not field.kind.own_ids:
                row = _added_row(described[field.name])
                row[UNSHOWN] = {"id": row["properties"].pop("id")}
    # A member of the change alone: no row has it.
    person = _added_row(fields["positions"])["properties"]["person"]
    person["properties"]["isNew"] = {"type": "boolean", "description": "another person of the same name"}
    return {**whole, "properties": fields, "description": "only the fields to change"}


def _added_row(field: JSONObject) -> JSONObject:
    """Return the schema of the rows that a change of a list adds."""
    row: JSONObject = field["anyOf"][0]["properties"]["add"]["items"]
    return row


def company_tools(call: Bridge, base_url: str, schema: Schema) -> tuple[Tool, ...]:
    """Return the tools for companies."""
    tools = CompanyTools(base_url, schema)
    tool = partial(owner_tool, call=call)
    pending = output_schemas.pending(schema)
    common = {"state": one_of(*State.values), "version": INTEGER, "pendingChanges": pending}
    whole = output_schemas.bundle(
        schema,
        fundingRounds=schema.bundle.by_name["fundingRounds"].schema(ANSWER),
        notShown={"type": "object", "additionalProperties": {"type": "object"}},
        **common,
        reviewerNote=nullable(STRING),
        publicUrl=nullable(STRING),
        history=list_of(ENTRY),
        historyTotal=INTEGER,
    )
    listing = {**_LISTING, "pendingChanges": pending, "missing": _NAMES}
    return (
        tool(
            tools.list_my_companies,
            "List my companies",
            "Your listings in any state, last changed first, with changes pending review and what each lacks.",
            "companies:read",
            paged(some_of(object_of(listing), "id")),
            arguments={**PAGE, **FIELDS},
        ),
        tool(
            tools.get_my_company,
            "Get my company",
            "One of your listings with its state and version. Long lists show their first rows, a long capTable none; "
            "notShown says how many there are, and which arguments show the next.",
            "companies:read",
            single(cuttable({**whole, "required": list(common)})),
            arguments={
                "slug": SLUG,
                "parts": {
                    "type": "array",
                    "items": {"type": "string", "enum": [*PARTS, HISTORY]},
                    "description": "default: all but history",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 10**6,
                    "default": 0,
                    "description": "of each list",
                },
                "limit": {"type": "integer", "minimum": 1, "maximum": 1_000, "description": "rows of each list"},
                **DETAIL,
                **FIELDS,
            },
            required=("slug",),
        ),
        tool(
            tools.update_my_company,
            "Update my company",
            "Change fields of one of your listings. On a published one, changes to name, symbol or type need review; "
            "others go live at once; a field's published value withdraws its pending change. Edit lists by "
            '{"add": [rows], "set": [rows with id], "remove": [ids]}; an array replaces the whole list. Try dryRun '
            "first. profilesOfNames has the slugs of people of the names that it adds.",
            "companies:write",
            single(
                object_of(
                    {
                        "company": {"type": "object"},
                        "version": INTEGER,
                        "applied": _NAMES,
                        "awaitingReview": _NAMES,
                        "withdrawn": _NAMES,
                        "awaitingPeople": _NAMES,
                        "profilesOfNames": {"type": "object", "additionalProperties": _NAMES},
                        "diff": output_schemas.DIFF,
                        "notes": _NAMES,
                        "undo": UNDO,
                        **DRY,
                    },
                    optional=("company", "withdrawn", "awaitingPeople", "profilesOfNames", "notes", "undo", *DRY),
                )
            ),
            arguments={
                "slug": SLUG,
                "changes": _changes(schema),
                **revert_arguments("get_my_company parts history"),
                "expectedVersion": EXPECTED_VERSION,
                "expectedTotals": _EXPECTED_TOTALS,
                "include": {"type": "array", "items": {"enum": ["company"]}},
                "dryRun": DRY_RUN,
            },
            required=("slug",),
            **CHANGES,
        ),
        tool(
            tools.submit_for_review,
            "Submit for review",
            "Submit a draft, or a listing with requested changes, to the reviewers; withdraw: true takes a submission "
            "back. Tell the user first.",
            "companies:write",
            single(
                object_of(
                    {"id": STRING, "state": one_of(*State.values), "version": INTEGER, **DRY}, optional=tuple(DRY)
                )
            ),
            arguments={
                "slug": SLUG,
                "withdraw": {"type": "boolean", "default": False},
                "expectedVersion": EXPECTED_VERSION,
                "dryRun": DRY_RUN,
            },
            required=("slug",),
            destructive=True,
        ),
    )
