"""
Read the two logs: an account's own, and the audit log.

An operator reads the whole audit log; a reviewer reads what they did themselves.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from django.db.models import Q, QuerySet

from muniment.accounts.models import Account
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.phrases.storing import plain_json
from muniment.kernel.problems import BadRequest, Forbidden
from muniment.kernel.wire import timestamp

_BATCH: Final = 500
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
    Which entries of the audit log to read.

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


def stream(events: QuerySet[SecurityEvent]) -> Iterator[SecurityEvent]:
    """Yield the events, the latest first, in batches by key: no query stays open while the client reads."""
    last: int | None = None
    while True:
        batch = list((events if last is None else events.filter(pk__lt=last))[:_BATCH])
        yield from batch
        if len(batch) < _BATCH:
            return
        last = batch[-1].pk


def wire(event: SecurityEvent) -> JSONObject:
    """Return an event as the downloads have it."""
    return {
        "id": event.pk,
        "at": timestamp(event.at),
        "event": event.event,
        "account": _name(event.account),
        "actor": _name(event.actor),
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
    values = {**wire(event), **hidden}
    return {name: values[name] for name in shown}


def cells(values: JSONObject) -> list[str]:
    """Return the columns of an event for CSV; a spreadsheet would run such a first character as a formula."""
    shown = []
    for name in COLUMNS:
        value = values.get(name)
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode() if value else ""
        shown.append(f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text)
    return shown


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


def _name(account: Account | None) -> str | None:
    if account is None:
        return None
    return Phrase("former account {number}", number=account.pk) if account.deleted_at else account.email
