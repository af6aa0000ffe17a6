"""
Listings and their owners: read, create and change a listing, write it with its history and publish it.

The operations of owners are one transaction each; the pages, the tool server and the command line call the same ones.
`compare`, `write` and `publish_company` are also steps in the operations of reviewers.

Source: decisions, section 5; tools, owner-scoped server.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from muniment.accounts.models import Account
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.kernel.actor import Actor
from muniment.kernel.fairness import MAX_DRAFTS
from muniment.kernel.ids import now, slug_fault
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, LimitReached
from muniment.registry import history, provenance
from muniment.registry.company.access import no_company, no_entry, owned, require_account
from muniment.registry.company.changes import (
    BadFields,
    CompanyChange,
    Difference,
    Edit,
    ListGuard,
    compare_documents,
    compare_field,
    read_change,
    refuse_broken_rules,
    refuse_company,
    retire,
    without_unchanged,
)
from muniment.registry.company.funding import compare_round, compare_rounds, not_closed, note_raising
from muniment.registry.company.owned_rows import latest_companies
from muniment.registry.exchange.batch import reserve_slug
from muniment.registry.fields import rows
from muniment.registry.models import (
    CapTableEntry,
    Company,
    Framework,
    FundingRound,
    GivenSlug,
    HistoryEntry,
    Invitation,
    Ownership,
    PendingChange,
    Person,
    Position,
    Proposal,
    State,
)
from muniment.registry.names import former
from muniment.registry.people.naming import compare_positions
from muniment.registry.publishing.documents import (
    CompanyView,
    company_line,
    company_mark,
    company_object,
    company_views,
)
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry.review.notifications import announce
from muniment.registry.verification.endings import end_proofs
from muniment.registry_toml.vocabulary import hidden_members
from muniment.schema.company import TREASURY_NOTE
from muniment.schema.company_parts import count_people
from muniment.schema.item_lists import ItemChange, ItemList
from muniment.schema.record import Field, Record
from muniment.schema.validation import Fault, Path


@dataclass(frozen=True)
class OwnedCompany:
    """
    A listing as its owner sees it.

    Args:
        pending_changes: fields pending review, with their new values.
        unlisted_by: the side that unlisted it; empty while it is not unlisted.
        role: the actor's role in it.
        provenance: the origin of its text and the day, such as ``owner 2026-11-22``.
        missing: what a complete listing has and this one lacks, by wire name; of lists of listings only.
        view: its data, with all parts; None in lists of listings.
    """

    slug: str
    name: str
    state: str
    version: int
    updated_at: datetime
    role: str
    reviewer_note: str
    published: bool
    pending_changes: JSONObject
    unlisted_by: str = ""
    missing: tuple[str, ...] = ()
    provenance: str = ""
    view: CompanyView | None = field(default=None, repr=False, compare=False)

    @cached_property
    def bundle(self) -> JSONObject:
        """
        ``{company, distribution, proposals, positions, capTable, fundingRounds}`` in wire form; {} in lists.

        Proposals and holders are encoded JSON (``msgspec.Raw``). Most callers of an update read nothing of it.
        """
        if self.view is None:
            return {}
        return company_line(self.view, company_object(self.view, settings.SCHEMA), settings.SCHEMA)


@dataclass(frozen=True, slots=True)
class CompanyUpdate:
    """
    The result of an update, or of its dry run.

    Args:
        awaiting_people: slugs of people who are asked to confirm a position.
        withdrawn: fields whose pending change the update withdrew, by naming their present value.
        replaced: the values that waited for review until this update asked for others, by field.
        diff: each field before and after.
        profiles: for each name that it adds without a profile, the slugs of the people with that name.
        entry_id: the id of the history entry that reverts it; None if nothing was changed at once.
    """

    company: OwnedCompany
    version: int
    applied: list[str]
    awaiting_review: list[str]
    withdrawn: list[str]
    awaiting_people: list[str]
    diff: dict[str, JSONObject]
    profiles: Mapping[str, list[str]] = field(default_factory=dict)
    replaced: JSONMapping = field(default_factory=dict)
    entry_id: int | None = None


def list_companies(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[OwnedCompany]:
    """List the listings that *actor* owns, last changed first, without their bundles."""
    if actor.account_id is None:
        return Page([], page, page_size, 0)
    companies = latest_companies(actor.account_id, page, page_size)
    pending_changes = PendingChange.objects.filter(company__in=companies.items, decision="")
    pending = dict(pending_changes.values_list("company_id", "changes"))
    ownerships = Ownership.objects.filter(company__in=companies.items, account_id=actor.account_id)
    roles = dict(ownerships.values_list("company_id", "role"))
    positions = Position.objects.filter(company__in=companies.items)
    with_positions = set(positions.values_list("company_id", flat=True))
    items = []
    for company in companies.items:
        owned_company = _owned_company(actor, company, pending.get(company.pk, {}), roles.get(company.pk, ""))
        missing = _missing(company, has_positions=company.pk in with_positions)
        items.append(dataclasses.replace(owned_company, missing=missing))
    return companies.with_items(items)


def choose_companies(
    actor: Actor, words: str = "", *, including: str = "", limit: int
) -> tuple[list[tuple[str, str]], bool]:
    """
    Return slug and name of at most *limit* of the actor's listings to choose from, by name, and whether it has more.

    Args:
        words: a part of the name or the slug; without it, the listings that changed last.
        including: the slug of a listing that is offered in any case, if the actor owns it.
    """
    if actor.account_id is None:
        return [], False
    mine = Company.objects.filter(ownerships__account_id=actor.account_id)
    if words:
        named = mine.filter(Q(name__icontains=words) | Q(slug__icontains=words)).order_by("name", "slug")
        choices = list(named.values_list("slug", "name")[: limit + 1])
        has_more = len(choices) > limit
    else:
        latest = latest_companies(actor.account_id, 1, limit)
        choices = [(company.slug, company.name) for company in latest.items]
        has_more = latest.total > limit
    choices = choices[:limit]
    if including and has_more and including not in dict(choices):
        choices += mine.filter(slug=including).values_list("slug", "name")
    return sorted(choices, key=lambda choice: (choice[1].casefold(), choice[0])), has_more


_EXPECTED: Final = ("type", "industry", "themes", "description", "body", "website", "socials", "address")
"""Columns that a complete listing has, in the order of the form."""


def _missing(company: Company, *, has_positions: bool) -> tuple[str, ...]:
    """Return what a complete listing has and this one lacks; sections that the registry hides are not expected."""
    missing = [column for column in _EXPECTED if _is_empty(getattr(company, column))]
    if not has_positions:
        missing.append("positions")
    if not company.icon:
        missing.append("logo")
    hidden = hidden_members()
    return tuple(member for member in missing if member not in hidden)


def _is_empty(value: Any) -> bool:
    """Return whether nothing is in a value, however many empty members it has."""
    if isinstance(value, dict):
        return all(_is_empty(member) for name, member in value.items() if name != "id")
    if isinstance(value, list):
        return all(map(_is_empty, value))
    return not value


def get_company(actor: Actor, slug: str) -> OwnedCompany:
    """
    Return a listing that *actor* owns, in any state.

    Raises:
        NotFound: unknown, or not owned.
    """
    return _read_whole(actor, owned(actor, slug))


def _owned_company(
    actor: Actor, company: Company, pending: JSONObject, role: str | None, view: CompanyView | None = None
) -> OwnedCompany:
    return OwnedCompany(
        slug=company.slug,
        name=company.name,
        state=company.state,
        version=company.version,
        updated_at=company.updated_at,
        role=role or actor.role,
        reviewer_note=company.reviewer_note,
        published=company.published,
        pending_changes=pending,
        unlisted_by=company.unlisted_by if company.state == State.UNLISTED else "",
        provenance=company_mark(view or CompanyView(vars(company))),
        view=view,
    )


def _read_whole(actor: Actor, company: Company, view: CompanyView | None = None) -> OwnedCompany:
    view = view or company_views([company.pk])[company.pk]
    ((pending, role),) = rows(
        "SELECT (SELECT changes FROM registry_pendingchange WHERE company_id = %s AND decision = ''),"
        " (SELECT role FROM registry_ownership WHERE company_id = %s AND account_id = %s)",
        (company.pk, company.pk, actor.account_id),
    )
    return _owned_company(actor, company, msgspec.json.decode(pending) if pending else {}, role, view)


def create_company(actor: Actor, change: CompanyChange, *, slug: str = "") -> OwnedCompany:
    """
    Create a draft that *actor* owns.

    Args:
        change: at least the name.
        slug: the permanent address of the listing; derived from the name when empty.

    Raises:
        BadFields: a value is invalid, or the slug is taken.
        Forbidden: the actor has no account.
        LimitReached: the account has too many listings that were never published.
        TooMany: the account has changed too much text in a short time.

    Source: decisions, section 2, slugs: never given again.
    """
    account_id = require_account(actor, "A listing belongs to an account.")
    if "name" not in change:
        raise BadFields([Fault("name", "is missing")])
    edit = read_change(change, settings.SCHEMA, is_new=True)
    fault = slug_fault(slug) if slug else None
    if fault:
        raise BadFields([Fault("slug", fault)], "Omit the slug to derive one from the name.")
    try:
        with transaction.atomic():
            make_room_for_draft(actor, account_id)
            if slug:
                GivenSlug.objects.create(kind="company", slug=slug)
            else:
                slug = reserve_slug("company", edit["name"])
            company = Company.objects.create(slug=slug, name="", version=0)  # the first write adds the rest
            Ownership.objects.create(account_id=account_id, company=company)
            difference = compare(company, edit, actor=actor)
            refuse_broken_rules(company, difference)
            refuse_company(actor, company, difference.columns, difference.lists)
            write(actor, company, difference, "created")
            return _read_whole(actor, company)
    except IntegrityError:
        raise BadFields(
            [Fault("slug", Phrase("{slug!r} is taken", slug=slug))], "Choose another slug, or omit it."
        ) from None


def update_company(
    actor: Actor,
    slug: str,
    change: CompanyChange,
    *,
    expected_version: int | None = None,
    expected_totals: Mapping[str, int] | None = None,
    dry_run: bool = False,
) -> CompanyUpdate:
    """
    Change the fields given in *change* on a company that the actor owns.

    Fields marked ``review`` in the schema (name, symbol, type) need review once the listing was public; other changes
    are published at once.

    Args:
        change: absent fields stay; None clears a nullable field; values that answers show are no change.
        expected_totals: the number of stored rows of each list that the change replaces by a shorter one.
        dry_run: return the diff without changing anything.

    Raises:
        NotFound: unknown, or not owned (which of the two is not revealed).
        BadFields: a value is invalid, or a list is shorter than the stored one without a sign that it is meant so;
            names the field.
        Conflict: *expected_version* is not the current version.
        TooMany: the account has changed too much text in a short time.

    Source: service document, owner-scoped tool server, update_my_company; decisions, section 5.
    """
    with transaction.atomic():
        company = owned(actor, slug, lock=True, version=expected_version)
        edit = read_change(without_unchanged(company, change), settings.SCHEMA)
        guard = ListGuard(company, actor, expected_totals or {}, knows_version=expected_version is not None)
        return _update(actor, company, edit, "updated", dry_run=dry_run, guard=guard)


def _update(
    actor: Actor,
    company: Company,
    edit: Edit,
    action: str,
    *,
    dry_run: bool = False,
    replace: bool = False,
    guard: ListGuard | None = None,
) -> CompanyUpdate:
    reviewed = _fields_that_need_review(actor, company, edit)
    direct = {name: value for name, value in edit.items() if name not in reviewed}
    difference = compare(company, direct, actor=actor, replace=replace, guard=guard)
    request = _review_request(company, reviewed) if reviewed else ReviewRequest()
    requested = request.difference
    # What waits for a reviewer is judged too: a reviewer must not be asked for what would then be refused.
    refuse_broken_rules(company, difference)
    if requested:
        refuse_broken_rules(company, requested)
    if difference or requested:
        refuse_company(actor, company, {**difference.columns, **requested.columns}, difference.lists)
    view, entry_id = None, None
    if not dry_run:
        if difference:
            view, entry_id = write(actor, company, difference, action)
        if reviewed:
            _request_review(actor, company, request)
    return CompanyUpdate(
        company=_read_whole(actor, company, view),
        version=company.version,
        applied=list(difference.after),
        awaiting_review=list(requested.after),
        withdrawn=list(request.withdrawn),
        replaced=request.replaced,
        awaiting_people=difference.asked,
        profiles=difference.profiles,
        diff={**difference.to_wire(), **requested.to_wire()},
        entry_id=entry_id,
    )


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """
    The part of an edit that reviewers decide on.

    Args:
        changes: the fields, by wire name, as the pending change keeps them.
        difference: those of them that differ from the listing.
        pending: the pending change of the listing before it, if there is one.
    """

    changes: JSONObject = field(default_factory=dict)
    difference: Difference = field(default_factory=Difference)
    pending: PendingChange | None = None

    @property
    def previous(self) -> JSONObject:
        """Return the values that have been asked for before."""
        return self.pending.changes if self.pending else {}

    @property
    def withdrawn(self) -> JSONObject:
        """Return what was asked for before and is not any more: to repeat the present value withdraws the request."""
        settled = self.changes.keys() - self.difference.after
        return {name: value for name, value in self.previous.items() if name in settled}

    @property
    def replaced(self) -> JSONObject:
        """Return what was asked for before, where another value is asked for now."""
        replaced: JSONObject = {}
        for name, value in self.previous.items():
            is_asked_again = name in self.difference.after
            if is_asked_again and value != self.changes[name]:
                replaced[name] = value
        return replaced


def _review_request(company: Company, reviewed: Edit) -> ReviewRequest:
    """Return the request for the *reviewed* fields of an edit."""
    pending = PendingChange.objects.filter(company=company, decision="").first()
    changes = {name: _on_wire(name, value) for name, value in reviewed.items()}
    return ReviewRequest(changes, compare(company, reviewed), pending)


def _fields_that_need_review(actor: Actor, company: Company, edit: Edit) -> Edit:
    """Return the part of an edit that waits for a reviewer."""
    # A draft is reviewed as a whole. A listing that is unlisted was reviewed once, and its owner may publish it again:
    # it must not come back under a name that a reviewer has not seen.
    was_reviewed = company.state in {State.PUBLISHED, State.UNLISTED}
    if not was_reviewed or actor.decides:
        return {}
    fields = settings.SCHEMA.company_fields
    return {name: value for name, value in edit.items() if fields[name].review}


def _on_wire(name: str, value: Any) -> Any:
    """Return the value of a field as a request keeps it; a field that is cleared is empty rather than absent."""
    kind = settings.SCHEMA.company_fields[name].kind
    wire_value = kind.wire(value)
    return kind.empty if wire_value is None else wire_value


def _request_review(actor: Actor, company: Company, request: ReviewRequest) -> None:
    """
    Add fields to the pending change; a value equal to the current one withdraws its field.

    Another pending change is a new row in the old place of the queue: reviewers decide on what they saw.
    """
    pending, requested, changes = request.pending, request.difference, request.changes
    wanted = {name: value for name, value in request.previous.items() if name not in changes}
    wanted |= {name: value for name, value in changes.items() if name in requested.after}
    if request.withdrawn:
        history.entry(actor, "request withdrawn", before=request.withdrawn, after={}, company=company).save()
    if wanted == request.previous:
        return
    asked_at = now()
    if pending is not None:
        pending.decision = "withdrawn"
        pending.decided_at = asked_at
        pending.save(update_fields=["decision", "decided_at"])
        asked_at = pending.asked_at  # its place in the queue
    if wanted:
        created = PendingChange.objects.create(
            company=company,
            account_id=actor.account_id,
            via=actor.via,
            credential=actor.credential,
            changes=wanted,
            asked_at=asked_at,
        )
        announce(f"change:{created.pk}", company)
    if requested:
        history.entry(actor, "asked", before=requested.before, after=requested.after, company=company).save()


def company_history(
    actor: Actor, slug: str, *, page: int = 1, page_size: int = 100, with_values: bool = True
) -> Page[HistoryEntry]:
    """
    Return the history of a listing that *actor* owns, latest first.

    Args:
        with_values: read what each entry changed, unless it is too large.

    Raises:
        NotFound: unknown, or not owned.
    """
    company = owned(actor, slug)
    return history.read_page(HistoryEntry.objects.filter(company=company), page, page_size, with_values=with_values)


def revert_company(
    actor: Actor,
    slug: str,
    entry_id: int,
    *,
    expected_version: int | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
) -> CompanyUpdate:
    """
    Revert the change of history entry *entry_id*.

    Args:
        overwrite: also replace what later changes wrote to the same fields.

    Raises:
        LaterChanges: later changes touched the same fields, and *overwrite* is false.
        NotFound: unknown listing or entry, or not owned.
        BadRequest: the entry has no revertible change, or an old value is no longer valid.
        Conflict: *expected_version* is not the current version.
    """
    with transaction.atomic():
        company = owned(actor, slug, lock=True, version=expected_version)
        entry = HistoryEntry.objects.filter(company=company, pk=entry_id).first()
        if entry is None:
            raise no_entry(slug, entry_id)
        editable = settings.SCHEMA.company_change.by_name.keys() - {"fundingRound"}
        change = CompanyChange(history.replaced_values(entry, editable, partial(present_values, company)))
        edit = read_change(change, settings.SCHEMA)
        if not overwrite and not dry_run:
            history.check_later(entry, compare(company, edit, replace=True).after)
        return _update(actor, company, edit, "reverted", replace=True, dry_run=dry_run)


def open_funding_round(
    actor: Actor, slug: str, *, name: str, target: str | None = None, opened: str | None = None
) -> CompanyUpdate:
    """
    Open a funding round.

    Raises:
        NotFound: unknown, or not owned.
        Conflict: a round is already open.
        BadFields: the target is not an amount, or the date is invalid.
    """
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        if FundingRound.objects.filter(not_closed(), company=company).exists():
            raise Conflict("A funding round is already open.", "Close it before you open another.")
        opening = {"name": name, "target": target}
        if opened:  # otherwise it opens today
            opening["opened"] = opened
        return update_company(actor, slug, CompanyChange(fundingRound=opening))


def close_funding_round(actor: Actor, slug: str, *, closed: str | None = None) -> CompanyUpdate:
    """
    Close the open funding round, today unless *closed* is an ISO date.

    Raises:
        NotFound: unknown, or not owned.
        Conflict: no round is open.
    """
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        if not FundingRound.objects.filter(not_closed(), company=company).exists():
            raise Conflict("No funding round is open.", "Open one first.")
        return update_company(actor, slug, CompanyChange(fundingRound={"closed": closed or now().date().isoformat()}))


def publish_funding_round(actor: Actor, slug: str, item: str) -> CompanyUpdate:
    """
    Make the name and target of a funding round public.

    Raises:
        NotFound: unknown, or not owned.
        BadFields: the listing has no such round.
    """
    return update_company(actor, slug, CompanyChange(fundingRounds={"set": [{"id": item, "public": True}]}))


def set_icon(actor: Actor, slug: str, address: str) -> CompanyUpdate:
    """
    Set the path of the stored logo; empty removes it.

    Raises:
        NotFound: unknown, or not owned.

    Source: service document, things done only in the web app.
    """
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        return _update(actor, company, {"icon": address}, "updated")


_REFERENCED: Final = {"name", "symbol", "icon", "state", "listedAt"}


def compare(
    company: Company, edit: Edit, *, actor: Actor | None = None, replace: bool = False, guard: ListGuard | None = None
) -> Difference:
    """
    Compare *edit* with the stored listing.

    Args:
        actor: who makes the change, if there is no *guard*; None only compares.
        replace: replace stored objects instead of merging with them.
        guard: what the caller knows of the lists that the edit replaces; None: they may get shorter.

    Raises:
        BadFields: a position names a person who is unknown or declined, or by a name that others have; a funding round
            closes before it opens; an id is unknown; a list or text is only the part of the stored one that an answer
            showed; a team size differs from the number of people in the positions.
    """
    difference = Difference()
    guard = guard or ListGuard(company, actor, off=True, reverts=replace)
    has_team_size = "teamSize" in edit and not guard.off
    for name, value in edit.items():
        difference.operations |= _operations(name, value)
        if name == "teamSize" and has_team_size:
            continue  # below, once the positions are compared
        _compare_value(name, value, difference, replace=replace, guard=guard)
    # A note of the former amount says nothing of another one.
    if "treasury" in difference.after and TREASURY_NOTE not in edit and not replace:
        compare_field(company, settings.SCHEMA.company_fields[TREASURY_NOTE], None, difference)
    if has_team_size:
        _compare_team_size(company, edit["teamSize"], difference)
        # Answers name the fields in the order of the edit.
        in_order = {name: difference.after[name] for name in edit if name in difference.after}
        difference.after = in_order | difference.after
    return difference


def _compare_value(name: str, value: Any, difference: Difference, *, replace: bool, guard: ListGuard) -> None:
    """Compare one value of an edit: a list in a table of its own, or a column of the listing."""
    match name:
        case "positions":
            compare_positions(value, difference, guard)
        case "proposals":
            compare_documents(name, Proposal, value, difference, guard)
        case "capTable":
            compare_documents(name, CapTableEntry, value, difference, guard)
        case "fundingRounds":
            compare_rounds(value, difference, guard)
        case "fundingRound":
            compare_round(guard.company, value, difference)
        case _:
            field = settings.SCHEMA.company_fields[name]
            _compare_column(field, value, difference, replace=replace, guard=guard)


def _operations(name: str, value: Any) -> dict[Path, ItemChange]:
    """Return the edits of single rows in the value of a field, by the path of their list."""
    if isinstance(value, ItemChange):
        return {(name,): value}
    if type(value) is not dict:
        return {}
    return {(name, member): edits for member, edits in value.items() if isinstance(edits, ItemChange)}


def _compare_team_size(company: Company, value: int | None, difference: Difference) -> None:
    """
    Compare a team size: while positions are listed, it is the number of their people and cannot be set.

    Raises:
        BadFields: it is neither that number nor the one that answers show.
    """
    stored_count = company_views([company.pk])[company.pk].people
    people_count = stored_count
    if "positions" in difference.after:
        people_count = count_people(difference.after["positions"])
    if not people_count:
        compare_field(company, settings.SCHEMA.company_fields["teamSize"], value, difference)
        return
    shown = stored_count or company.team_size
    if value not in {people_count, shown}:
        reason = Phrase("is {listed:,}, the number of people in the positions, and cannot be set", listed=people_count)
        raise BadFields([Fault("teamSize", reason)], "Leave it out, or edit the positions.")


def _compare_column(field: Field, value: Any, difference: Difference, *, replace: bool, guard: ListGuard) -> None:
    """Compare a field that is a column of the listing, with the lists inside it."""
    company = guard.company
    stored = getattr(company, field.column) if field.column else None
    kind = field.kind
    if isinstance(kind, ItemList):
        value = _compare_list(kind, (field.name,), value, stored, difference=difference, guard=guard)
    elif isinstance(kind, Record) and value is not None:
        stored_members = stored or {}
        for member in kind.fields:
            if isinstance(member.kind, ItemList) and member.name in value:
                path, member_value = (field.name, member.name), value[member.name]
                stored_rows = stored_members.get(member.name)
                rows = _compare_list(member.kind, path, member_value, stored_rows, difference=difference, guard=guard)
                value = {**value, member.name: rows}
    elif isinstance(value, str) and isinstance(stored, str) and not guard.off:
        _refuse_cut_text(field.name, value, stored)
    compare_field(company, field, value, difference, replace=replace)


def _compare_list(
    kind: ItemList,
    path: Path,
    value: Any,
    stored: list[JSONObject] | None,
    *,
    difference: Difference,
    guard: ListGuard,
) -> list[JSONObject] | None:
    """Return the rows of a list in a column after the edit, each with its id; None if there are none."""
    before = stored or []
    after = guard.resolve(kind, path, value, before)

    def retire_removed(_: AffectedRows) -> None:
        retire(guard.company, (row.get("id", "") for row in before), (row["id"] for row in after))

    difference.steps.append(retire_removed)
    return after or None


def _refuse_cut_text(name: str, value: str, stored: str) -> None:
    """Refuse the beginning of a stored text as an answer shows it: written back, it would delete the rest."""
    if value.endswith("…") and len(value) < len(stored) and stored.startswith(value[:-1].rstrip()):
        reason = Phrase(
            "is only the beginning of the stored text of {stored_count:,} characters", stored_count=len(stored)
        )
        hint = "Read the whole text at the URL that the answer gave, or leave the field out."
        raise BadFields([Fault(name, reason)], hint)


def present_values(company: Company, names: Iterable[str]) -> JSONObject:
    """Return the values of fields of a listing in the form of the history; empty lists are left out."""
    return compare(company, dict.fromkeys(names), replace=True).before


class Written(NamedTuple):
    """
    A change that was written.

    Args:
        view: the published view of the company, or None if it is not public.
        entry_id: the id of the history entry.
    """

    view: CompanyView | None
    entry_id: int


def write(actor: Actor, company: Company, difference: Difference, action: str, *, note: str = "") -> Written:
    """
    Write *difference* with its history and publish it. The last step of an operation.

    Raises:
        TooMany: the account has changed too much text in a short time.
    """
    moment = now()
    values = {"before": difference.before, "after": difference.after}
    entry = history.entry(actor, action, **values, company=company, note=note, at=moment)
    history.limit_written_bytes(actor, entry.before, entry.after, entry.parts)
    loaded: dict[int, CompanyView] = {}
    affected = AffectedRows(loaded=loaded)
    if "name" in difference.columns:
        company.former_names = former.after_rename(company, difference.columns["name"])
        difference.columns["former_names"] = company.former_names
    difference.write_columns(company)
    provenance.edited(company, actor, difference.before, difference.after, on=moment)
    company.version += 1
    company.updated_at = moment
    company.save(update_fields=["version", "updated_at", "provenance", *difference.columns])
    if "website" in difference.columns:
        end_proofs([company.pk])
    for step in difference.steps:
        step(affected)
    if {"fundingRound", "fundingRounds"} & difference.after.keys():
        note_raising(company)
    entry.save()
    publish_company(company, affected, changed=set(difference.after))
    return Written(loaded.get(company.pk), entry.pk)


def publish_owners(*companies: Company) -> None:
    """Publish what listings show of their owners: whether there are any, and the domain that they have proven."""
    public = [company.pk for company in companies if company.state == State.PUBLISHED]
    if public:
        Company.objects.filter(pk__in=public).update(updated_at=now())
        publish(AffectedRows().company(*public))


def publish_company(company: Company, affected: AffectedRows, *, changed: set[str]) -> None:
    """Publish *company* and what refers to it; *changed* are the changed fields, by wire name."""
    if company.state != State.PUBLISHED and not company.published:
        return
    affected.company(company.pk)
    if changed & _REFERENCED:
        affected.company_with_dependents(company.pk)
    if "description" in changed:
        affected.frameworks_of(company.pk)
    if affected.people:
        Person.objects.filter(pk__in=list(affected.people)).update(updated_at=company.updated_at)
    if affected.frameworks:
        Framework.objects.filter(pk__in=list(affected.frameworks)).update(updated_at=company.updated_at)
    publish(affected)


_UNPUBLISHED: Final = (State.DRAFT, State.SUBMITTED, State.CHANGES_REQUESTED, State.REJECTED)


def add_owner(actor: Actor, slug: str, account_id: int) -> None:
    """
    Make an account an owner of a listing that *actor* owns or reviews.

    Raises:
        NotFound: unknown, or not the actor's.
    """
    with transaction.atomic():
        make_owner(actor, owned(actor, slug, lock=True), account_id)


def make_owner(actor: Actor, company: Company, account_id: int) -> None:
    """Make an account an owner, on the authority of the caller."""
    _, created = Ownership.objects.get_or_create(account_id=account_id, company=company)
    if created:
        history.entry(actor, "owner added", before={}, after={"owner": account_id}, company=company).save()
        publish_owners(company)
        subject = f"companies/{company.slug}"
        record(Event.OWNERSHIP_GAINED, account=account_id, actor=actor, subject=subject, name=company.name)
        _tell_others(Event.OWNER_ADDED, actor, company, account_id)


def leave_company(actor: Actor, slug: str) -> None:
    """
    Stop owning a listing; invitations that the account sent are void.

    The last owner can leave too: a published listing stays published and can be claimed.

    Raises:
        NotFound: unknown, or not owned.
        Forbidden: the actor has to confirm its identity first.
    """
    require_confirmed(actor)
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        deleted, _ = Ownership.objects.filter(company=company, account=actor.account_id).delete()
        if not deleted:
            raise no_company(slug)
        Invitation.objects.filter(company=company, invited_by=actor.account_id, accepted_at__isnull=True).delete()
        history.entry(actor, "owner left", before={"owner": actor.account_id}, after={}, company=company).save()
        publish_owners(company)
        subject = f"companies/{company.slug}"
        record(Event.OWNERSHIP_ENDED, account=actor.account_id, actor=actor, subject=subject, name=company.name)
        _tell_others(Event.OWNER_LEFT, actor, company, actor.account_id)


def _tell_others(event: Event, actor: Actor, company: Company, owner_id: int | None) -> None:
    """Record what changed for the other owners."""
    others = Ownership.objects.filter(company=company).exclude(account=owner_id).order_by("pk")
    for account_id in others.values_list("account_id", flat=True):
        subject = f"companies/{company.slug}"
        record(event, account=account_id, actor=actor, subject=subject, detail={"owner": owner_id}, name=company.name)


def make_room_for_draft(actor: Actor, account_id: int) -> None:
    """Refuse another draft beyond the limit. In the caller's transaction: the lock serializes those of one account."""
    Account.objects.select_for_update().get(pk=account_id)
    refuse_draft_beyond_limit(actor)


def refuse_draft_beyond_limit(actor: Actor) -> None:
    """Raise LimitReached if the actor has as many unpublished listings as an account may have."""
    if actor.decides:
        return
    account_id = require_account(actor, "A listing belongs to an account.")
    unpublished = Company.objects.filter(ownerships__account_id=account_id, state__in=_UNPUBLISHED)
    count = unpublished.count()
    if count >= MAX_DRAFTS:
        raise LimitReached(
            Phrase(
                "You have {count} listings that are not published yet; at most {limit} are allowed.",
                count=count,
                limit=MAX_DRAFTS,
            ),
            "Delete drafts that you no longer need at /manage, or submit them and wait for the reviewers' decisions.",
        )
