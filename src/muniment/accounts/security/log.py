"""
The security log: record events in the transaction of what they report, read them, and remove them when their time ends.

An account reads its own events. An operator reads the whole audit log; a reviewer reads what they did themselves.

Events of an account end after 400 days. The audit log stays, without addresses and browsers after that time. A deleted
account leaves the events of the audit log under its number, without values that name or locate a person. Only this
module removes or shortens events.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from django.db import models
from django.db.models import Q, QuerySet

from muniment.accounts.models import Account
from muniment.accounts.security import mailing, origin
from muniment.accounts.security.events import MEANINGS, Event
from muniment.accounts.security.models import MAX_CREDENTIAL_CHARACTERS, SecurityEvent
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.phrases.storing import plain_json
from muniment.kernel.problems import BadRequest, Forbidden
from muniment.kernel.wire import UNSET, Unset, timestamp


def record(
    event: Event,
    *,
    account: Account | int | None = None,
    actor: Actor | None = None,
    subject: str = "",
    detail: JSONObject | None = None,
    by: int | Unset | None = UNSET,
    mail_to: Sequence[str] | None = None,
    name: str = "",
) -> SecurityEvent:
    """
    Record *event* in the log of *account*, in the audit log, or in both, with the client of the current request.

    Args:
        account: the account in whose log it appears; None for an event that concerns no account.
        actor: who did it; by default *account* itself, on the website.
        subject: the path of the page of what it is about, such as companies/quillmere.
        detail: small values, as they may be shown to the account: never a secret.
        by: the account that did it, without an actor; None if it is unknown.
        mail_to: addresses to tell; by default that of *account*, if such events are mailed.
        name: the name of the listing that it is about, for the mail alone.
    """
    account_id = account if account is None or isinstance(account, int) else account.pk
    here = origin.current()
    if isinstance(by, Unset):
        by = account_id if actor is None else actor.account_id
    row = SecurityEvent.objects.create(
        event=event,
        account_id=account_id,
        actor_id=by,
        via="web" if actor is None else actor.via,
        credential="" if actor is None else actor.credential[:MAX_CREDENTIAL_CHARACTERS],
        address=here.address,
        agent=here.agent,
        request_id=here.request_id,
        subject=subject,
        detail=detail or {},
        is_audited=_is_audited(event, account_id, actor),
    )
    if mail_to is None:
        mail_to = _address(account_id) if MEANINGS[event].is_mailed and account_id is not None else ()
    if mail_to:
        mailing.send_mail(row, to=mail_to, name=name)
    return row


def _address(account_id: int) -> list[str]:
    """Return the address of an account, which was verified before its first sign-in."""
    accounts = Account.objects.filter(pk=account_id)
    return list(accounts.values_list("email", flat=True))


def _is_audited(event: Event, account_id: int | None, actor: Actor | None) -> bool:
    """Return whether the event belongs into the audit log: by its kind, or because another's account was changed."""
    if MEANINGS[event].is_audited:
        return True
    if actor is None:
        return False
    is_of_other = actor.account_id not in {None, account_id}
    return actor.via == "command" or (actor.is_reviewer and is_of_other)


_READ_AT_ONCE: Final = 500
_AGES: Final = {"h": "hours", "d": "days"}
COLUMNS: Final = (
    *("id", "at", "event", "account", "actor", "via", "credential", "ipAddress", "browser", "subject", "detail"),
    "requestId",
)


def events_of(account: Account) -> QuerySet[SecurityEvent]:
    """Return the events of an account, the latest first."""
    return SecurityEvent.objects.select_related("account", "actor").filter(account=account).order_by("-pk")


def list_own_events(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[SecurityEvent]:
    """List the actor's own security log; raise Forbidden for anything but the website."""
    return Page.of(own_events(actor), page, page_size)


def own_events(actor: Actor) -> QuerySet[SecurityEvent]:
    if actor.via != "web" or actor.account_id is None:
        raise Forbidden("Only a signed-in user can read their security log.", "Open /manage/security.")
    found = SecurityEvent.objects.select_related("account", "actor").filter(account_id=actor.account_id)
    return found.order_by("-pk")


class AuditFilter(NamedTuple):
    """
    The selection of audit log entries to read.

    Args:
        by: part of the address of the account that acted, or of the name of its credential.
        event: the name of an event.
    """

    since: datetime | None = None
    until: datetime | None = None
    by: str = ""
    event: str = ""


def list_audit(
    actor: Actor, asked: AuditFilter | None = None, *, page: int = 1, page_size: int = 25
) -> Page[SecurityEvent]:
    """List what the actor may read of the audit log; raise Forbidden for other roles."""
    return Page.of(audit_events(actor, asked), page, page_size)


def audit_events(actor: Actor, asked: AuditFilter | None = None) -> QuerySet[SecurityEvent]:
    """
    Return what the actor may read of the audit log, the latest first.

    Raises:
        Forbidden: the actor is neither an operator nor a reviewer, or acts by a token or an app.
    """
    if not actor.is_reviewer or actor.via not in {"web", "command", "system"}:
        raise Forbidden("Only operators and reviewers can read the audit log.", "Ask the operator of this registry.")
    found = SecurityEvent.objects.select_related("account", "actor").filter(is_audited=True)
    if actor.role != "operator":
        found = found.filter(actor_id=actor.account_id)
    asked = asked or AuditFilter()
    if asked.since is not None:
        found = found.filter(at__gte=asked.since)
    if asked.until is not None:
        found = found.filter(at__lt=asked.until)
    if asked.by:
        found = found.filter(Q(actor__email__icontains=asked.by) | Q(credential__icontains=asked.by))
    if asked.event:
        found = found.filter(event=asked.event)
    return found.order_by("-pk")


def stream_events(events: QuerySet[SecurityEvent]) -> Iterator[SecurityEvent]:
    """Yield the events, the latest first, in batches by key: no query stays open while the client reads."""
    last: int | None = None
    while True:
        batch = list((events if last is None else events.filter(pk__lt=last))[:_READ_AT_ONCE])
        yield from batch
        if len(batch) < _READ_AT_ONCE:
            return
        last = batch[-1].pk


def event_wire(event: SecurityEvent) -> JSONObject:
    """Return an event as the downloads have it."""
    return {
        "id": event.pk,
        "at": timestamp(event.at),
        "event": event.event,
        "account": _shown_account(event.account),
        "actor": _shown_account(event.actor),
        "via": event.via,
        "credential": event.credential,
        "ipAddress": event.address,
        "browser": event.agent,
        "subject": event.subject,
        "detail": plain_json(event.detail),
        "requestId": event.request_id,
    }


def own_wire(event: SecurityEvent) -> JSONObject:
    """Return an event as its account may have it: without what locates another account."""
    shown = ("id", "at", "event", "via", "credential", "ipAddress", "browser", "subject", "detail", "requestId")
    hidden = {"credential": "", "ipAddress": "", "browser": "", "requestId": ""} if event.is_by_other else {}
    values = {**event_wire(event), **hidden}
    return {name: values[name] for name in shown}


def csv_cells(values: JSONObject) -> list[str]:
    """Return the columns of an event for CSV."""
    cells = []
    for name in COLUMNS:
        value = values.get(name)
        if isinstance(value, str):
            text = value
        else:
            text = msgspec.json.encode(value).decode() if value else ""
        cells.append(text)
    return cells


def read_since(text: str) -> datetime:
    """
    Return the moment that *text* names: a date, a time in ISO 8601, or an age such as 7d or 12h.

    Raises:
        BadRequest: it is none of these.
    """
    try:
        if age := re.fullmatch(r"(\d{1,5})([hd])", text.strip()):
            return now() - timedelta(**{_AGES[age[2]]: int(age[1])})
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadRequest(
            Phrase("{text!r} is neither a time nor an age.", text=text[:40]),
            "Use 2026-11-21, 2026-11-21T10:00:00Z, 7d or 12h.",
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shown_account(account: Account | None) -> str | None:
    if account is None:
        return None
    return Phrase("former account {number}", number=account.pk) if account.deleted_at else account.email


KEPT_FOR: Final = timedelta(days=400)
IMPERSONAL: Final = frozenset(
    {"was", "role", "credits", "kind", "decision", "change", "request", "action", "fields", "scopes", "reason"}
)
"""Details that remain in the audit log of a deleted account."""
_NO_CLIENT: Final = {"address": "", "agent": "", "request_id": ""}
_SWEPT_AT_ONCE: Final = 1_000


def sweep_events(*, at: datetime | None = None) -> int:
    """Remove the events whose time is over, and return how many."""
    old = _unlocked_rows().filter(at__lt=(at or now()) - KEPT_FOR)
    old.filter(is_audited=True).exclude(**_NO_CLIENT).update(**_NO_CLIENT)
    removed = 0
    while batch := list(old.filter(is_audited=False).order_by("pk").values_list("pk", flat=True)[:_SWEPT_AT_ONCE]):
        removed += _unlocked_rows().filter(pk__in=batch).delete()[0]
    return removed


def forget_account(account: Account) -> None:
    """Remove the log of an account that is deleted, and what names or locates it in the audit log."""
    _unlocked_rows().filter(account=account, is_audited=False).delete()
    _unlocked_rows().filter(actor=account, is_audited=False).update(**_NO_CLIENT, credential="")
    for row in _unlocked_rows().filter(Q(account=account) | Q(actor=account), is_audited=True).iterator():
        kept = row.detail if row.account_id != account.pk else _impersonal(row.detail)
        own = {**_NO_CLIENT, "credential": ""} if row.actor_id == account.pk else {}
        _unlocked_rows().filter(pk=row.pk).update(detail=kept, **own)
    _unlocked_rows().filter(event=Event.OWNER_INVITED, detail__email=account.email).update(detail={})


def forget_person(slugs: Iterable[str]) -> None:
    """Remove the slugs of a person who is erased from the audit log."""
    gone = set(slugs)
    _unlocked_rows().filter(subject__in=[f"people/{slug}" for slug in gone]).update(subject="")
    for row in _unlocked_rows().filter(event=Event.PEOPLE_MERGED).iterator():
        if row.detail.get("merged") in gone:
            _unlocked_rows().filter(pk=row.pk).update(detail={})


def _impersonal(detail: JSONObject) -> JSONObject:
    return {name: value for name, value in detail.items() if name in IMPERSONAL}


def _unlocked_rows() -> "models.QuerySet[SecurityEvent]":
    """Return the rows as they are in the table, without the lock of the model."""
    return models.QuerySet(SecurityEvent)
