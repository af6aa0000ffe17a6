"""
Funding rounds: compare and write their changes, and publish a listing on the day on which a round opens or closes.

Days are in UTC. A date in the future neither opens nor closes a round.
"""

from datetime import date
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from muniment.jobs import handlers
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.registry.company.changes import BadFields, Difference, ListGuard, StoredRow, kind_of, write_rows
from muniment.registry.company.parts import RoundRow
from muniment.registry.models import Company, FundingRound, State
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.schema.validation import Fault

CHUNK = 500


def not_closed() -> Q:
    """Return the condition of rounds that are open or planned."""
    return Q(closed_on__isnull=True) | Q(closed_on__gt=now().date())


def compare_rounds(change: Any, found: Difference, guard: ListGuard) -> None:
    """
    Compare all rounds.

    Raises:
        BadFields: more than one has no closing date; one closes before it opens.
    """
    rows = list(FundingRound.objects.filter(company=guard.company).order_by("rank"))
    stored = [StoredRow(row.pk, row.rank, row.item_id, _columns(_row(row))) for row in rows]
    before = [_members(_row(row)) for row in rows]
    after = guard.resolve(kind_of("fundingRounds"), ("fundingRounds",), change, before)
    new_rows = [RoundRow.from_document(round_, settings.SCHEMA.funding_round) for round_ in after]
    rounds = _with_visibility(new_rows, rows)
    if sum(round_.closed_on is None for round_ in rounds) > 1:
        fault = Fault("fundingRounds", "has more than one round without a closing date")
        raise BadFields([fault], "Close one round before you open the next.")
    _check(rounds)
    _note(found, "fundingRounds", [_row(row) for row in rows], rounds)
    if "fundingRounds" in found.after:
        columns = [(round_.item_id, _columns(round_)) for round_ in rounds]
        found.steps.append(lambda _: write_rows(FundingRound, guard.company, stored, columns))


def _with_visibility(rounds: list[RoundRow], stored: list[FundingRound]) -> list[RoundRow]:
    """Return *rounds*; one that does not say whether it is public stays as it is stored, and a new one is public."""
    public_by_id = {row.item_id: row.public for row in stored}
    whole = []
    for round_ in rounds:
        is_public = round_.public
        if is_public is None:
            is_public = public_by_id.get(round_.item_id, True)
        whole.append(round_._replace(public=is_public))
    return whole


def compare_round(company: Company, given: JSONObject, found: Difference) -> None:
    """
    Compare the current funding round, or the one to open.

    Raises:
        BadFields: no round is open to be closed, or it closes before it opens.
    """
    record = settings.SCHEMA.funding_round
    rounds = list(FundingRound.objects.filter(company=company).order_by("rank"))
    today = now().date()
    current = _current_of(rounds, today)
    if current is not None:
        before = _row(current).to_document(record)
    else:
        before = None
        if given.get("closed") and "opened" not in given:
            fault = Fault("fundingRound.closed", "is given, but no round is open")
            raise BadFields([fault], "Open a round first: name, target, opened.")
        next_rank = rounds[-1].rank + 1 if rounds else 0
        current = FundingRound(company=company, rank=next_rank, opened_on=today)
    _set_members(current, given)
    _check([_row(current)], "fundingRound.closed")
    if not current.item_id:
        current.item_id = _new_id(company, current, rounds)
    after = _row(current).to_document(record)
    if before == after:
        return
    found.before["fundingRound"] = before
    found.after["fundingRound"] = after
    found.steps.append(lambda _: current.save())


def _current_of(rounds: list[FundingRound], today: date) -> FundingRound | None:
    """Return the round that is open or planned."""
    for round_ in rounds:
        if round_.closed_on is None or round_.closed_on > today:
            return round_
    return None


def _set_members(round_: FundingRound, members: JSONObject) -> None:
    """Set what *members* give; None clears a member."""
    for name, value in members.items():
        if name == "public":
            round_.public = value
        elif name != "id":  # a round keeps its id
            field = settings.SCHEMA.funding_round.by_name[name]
            new_value = field.kind.empty if value is None else value
            setattr(round_, field.column, new_value)


def _new_id(company: Company, opened: FundingRound, others: list[FundingRound]) -> str:
    """Return the id that the list of all rounds gives a round that is added to it."""
    stored = [_members(_row(other)) for other in others]
    kind = kind_of("fundingRounds")
    resolved = ListGuard(company, off=True).resolve(kind, (kind.name,), [*stored, _members(_row(opened))], stored)
    return str(resolved[-1]["id"])


def _check(rounds: list[RoundRow], field: str = "") -> None:
    for index, round_ in enumerate(rounds):
        opened_on, closed_on = round_.opened_on, round_.closed_on
        if opened_on and closed_on and closed_on < opened_on:
            fault = Fault(field or f"fundingRounds[{index}].closed", "is before opened")
            raise BadFields([fault], "Give a closing date after the opening date.")


def _note(found: Difference, name: str, before: list[RoundRow], after: list[RoundRow]) -> None:
    if before != after:
        record = settings.SCHEMA.funding_round
        found.before[name] = [round_.to_document(record) for round_ in before]
        found.after[name] = [round_.to_document(record) for round_ in after]


def _row(row: FundingRound) -> RoundRow:
    return RoundRow(*(getattr(row, name) for name in RoundRow._fields))


def _columns(row: RoundRow) -> JSONObject:
    return row._asdict()


def _members(row: RoundRow) -> JSONObject:
    """Return a round as the schema reads it: stored values by the names of the fields."""
    columns = row._asdict()
    members: JSONObject = {}
    for field in settings.SCHEMA.funding_round.fields:
        if field.column and columns[field.column] not in {None, ""}:
            members[field.name] = columns[field.column]
    if row.public is not None:
        members["public"] = row.public
    return members


def _open_rounds() -> QuerySet[FundingRound]:
    return FundingRound.objects.filter(not_closed(), Q(opened_on__isnull=True) | Q(opened_on__lte=now().date()))


def note_raising(company: Company) -> None:
    """Store whether *company* is raising, so that :func:`publish_by_date` leaves it alone until a date changes it."""
    company.raising = _open_rounds().filter(company=company).exists()
    company.save(update_fields=["raising"])


def due() -> QuerySet[Company]:
    """Return the published listings whose rounds say something else than was last published."""
    is_open = _open_rounds().filter(company=OuterRef("pk"))
    public = Company.objects.filter(state=State.PUBLISHED)
    return public.filter(Exists(is_open), raising=False) | public.filter(~Exists(is_open), raising=True)


def publish_by_date() -> int:
    """
    Publish the listings whose rounds have opened or closed since they were last published.

    Returns:
        How many listings were published.
    """
    keys = list(due().order_by("pk").values_list("pk", flat=True))
    return sum(publish_due(keys[start : start + CHUNK]) for start in range(0, len(keys), CHUNK))


def publish_due(keys: list[int]) -> int:
    """Publish those of the listings in *keys* that are still due once they are locked; an owner may have edited one."""
    with transaction.atomic():
        locked = Company.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk", flat=True)
        rows = list(due().filter(pk__in=list(locked)).order_by("pk"))
        for company in rows:
            company.raising, company.updated_at = not company.raising, now()
        Company.objects.bulk_update(rows, ["raising", "updated_at"])
        publish(AffectedRows().company(*(company.pk for company in rows)))
    return len(rows)


handlers.register(handlers.Handler(kind="registry.rounds_due", work=lambda _: publish_by_date()), every_s=600)
