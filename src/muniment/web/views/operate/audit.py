"""The audit log, filtered by actor, event and date."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext

from muniment.accounts.security.events import MEANINGS, Event
from muniment.accounts.security.log import AuditFilter, audit_events, event_wire, list_audit, stream_events
from muniment.kernel.problems import BadRequest
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.pagination import asked_page, chosen, pager
from muniment.web.views.operate.frame import operate_page
from muniment.web.views.security_log import as_file, shown_events

PARAMETERS: Final = ("by", "event", "since", "until")
EVENTS: Final = tuple(Event)


class AuditQuery(NamedTuple):
    """The values of the form, as they were entered."""

    by: str
    event: str
    since: str
    until: str


@operator("GET", "HEAD")
def audit(request: HttpRequest) -> HttpResponse:
    """Show the entries that a filter finds."""
    query = _query(request.GET)
    page = list_audit(actor_of(request), _filter(query), page=asked_page(request.GET))
    events = [(event.value, str(MEANINGS[event].words)) for event in EVENTS]
    events.sort(key=lambda event: event[1])
    context = {
        "lines": shown_events(page.items),
        "given": query,
        "query": urlencode({name: value for name, value in query._asdict().items() if value}),
        "events": events,
        "pager": pager(request, (*PARAMETERS, "page"), page),
    }
    return operate_page(request, "audit", "operate/audit.html", context)


@operator("GET", "HEAD")
def download(request: HttpRequest, form: str) -> HttpResponse:
    """Return the entries that a filter finds as a file."""
    rows = stream_events(audit_events(actor_of(request), _filter(_query(request.GET))))
    return as_file(rows, event_wire, "audit-log", form)


def _query(parameters: QueryDict) -> AuditQuery:
    event = chosen(parameters, "event", EVENTS)
    by, since, until = (parameters.get(name, "").strip()[:254] for name in ("by", "since", "until"))
    return AuditQuery(by, event, since, until)


def _filter(query: AuditQuery) -> AuditFilter:
    until = _day(query.until)
    if until is not None:
        until += timedelta(days=1)  # the whole of the last day
    return AuditFilter(since=_day(query.since), until=until, by=query.by, event=query.event)


def _day(text: str) -> datetime | None:
    """Return the start of a day, or None without one; raise BadRequest for other texts."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise BadRequest(
            gettext("“%(text)s” is not a date.") % {"text": text[:40]}, gettext("Use a date such as 2026-11-21.")
        ) from None
