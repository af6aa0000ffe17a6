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
    given = _given(request.GET)
    found = list_audit(actor_of(request), _filter(given), page=asked_page(request.GET))
    context = {
        "lines": shown_events(found.items),
        "given": given,
        "query": urlencode({name: value for name, value in given._asdict().items() if value}),
        "events": sorted(((each.value, str(MEANINGS[each].words)) for each in EVENTS), key=lambda pair: pair[1]),
        "pager": pager(request, (*PARAMETERS, "page"), found),
    }
    return operate_page(request, "audit", "operate/audit.html", context)


@operator("GET", "HEAD")
def download(request: HttpRequest, form: str) -> HttpResponse:
    """Return the entries that a filter finds as a file."""
    rows = stream_events(audit_events(actor_of(request), _filter(_given(request.GET))))
    return as_file(rows, event_wire, "audit-log", form)


def _given(query: QueryDict) -> AuditQuery:
    event = chosen(query, "event", EVENTS)
    by, since, until = (query.get(name, "").strip()[:254] for name in ("by", "since", "until"))
    return AuditQuery(by, event, since, until)


def _filter(given: AuditQuery) -> AuditFilter:
    until = _day(given.until)
    return AuditFilter(
        since=_day(given.since), until=until and until + timedelta(days=1), by=given.by, event=given.event
    )


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
