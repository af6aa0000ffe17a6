"""The security log of an account, and the audit log of operators and reviewers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext

from muniment.accounts.security.events import details_of, means_of, title_of
from muniment.accounts.security.log import (
    COLUMNS,
    AuditFilter,
    audit_events,
    csv_cells,
    event_wire,
    list_audit,
    list_own_events,
    own_events,
    own_wire,
    read_since,
    stream_events,
)
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.csv_text import CsvText
from muniment.kernel.json import JSONObject
from muniment.registry.models import Company, Framework, Person
from muniment.web.requests.access import actor_of, reviewer, signed_in
from muniment.web.requests.pages import manage_page
from muniment.web.requests.pagination import asked_page, pager
from muniment.web.views.operate.registry_settings import label_of

FORMATS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
_PIECE: Final = 200
"""Events in one piece of a download."""


@signed_in("GET", "HEAD")
def log(request: HttpRequest) -> HttpResponse:
    """Show the account's own events."""
    found = list_own_events(actor_of(request), page=asked_page(request.GET))
    context = {"tab": "security", "entries": _folded(found.items), "pager": pager(request, ("page",), found)}
    return manage_page(request, "manage/security.html", context)


@signed_in("GET", "HEAD")
def download(request: HttpRequest, form: str) -> HttpResponse:
    """Return all of the account's own events."""
    rows = stream_events(own_events(actor_of(request)))
    return as_file(rows, own_wire, "security-log", form)


@reviewer("GET", "HEAD")
def audit(request: HttpRequest) -> HttpResponse:
    """Show the audit log: all of it to operators, their own part to reviewers."""
    actor = actor_of(request)
    since = request.GET.get("since", "").strip()
    found = list_audit(actor, AuditFilter(since=_start(since)), page=asked_page(request.GET))
    context = {
        "tab": "audit",
        "entries": shown_events(found.items),
        "is_whole": actor.role == "operator",
        "since": since,
        "pager": pager(request, ("since", "page"), found),
    }
    return manage_page(request, "review/audit.html", context)


@reviewer("GET", "HEAD")
def audit_download(request: HttpRequest, form: str) -> HttpResponse:
    """Return what the reader may see of the audit log, from the same moment as the page."""
    since = _start(request.GET.get("since", "").strip())
    rows = stream_events(audit_events(actor_of(request), AuditFilter(since=since)))
    return as_file(rows, event_wire, "audit-log", form)


def _start(since: str) -> datetime | None:
    return read_since(since) if since else None


def shown_events(events: Sequence[SecurityEvent]) -> list[JSONObject]:
    """Return events for a page; what each is about is named, with a link to its page."""
    names = _names_of({event.subject for event in events if event.subject})
    shown = []
    for event in events:
        details = []
        for label, value in _details(event):
            if value == f"/{event.subject}":
                details.append((label, _about(event.subject, names)))
            else:
                details.append((label, value))
        means = means_of(event)
        shown.append({"event": event, "title": title_of(event), "means": means, "details": details, "times": 1})
    return shown


def _names_of(subjects: set[str]) -> dict[str, str]:
    """Return the names of companies, people and frameworks by their addresses; those that are gone have none."""
    slugs_by_kind: dict[str, list[str]] = {}
    for subject in subjects:
        kind, _, slug = subject.partition("/")
        slugs_by_kind.setdefault(kind, []).append(slug)
    names: dict[str, str] = {}
    models: tuple[tuple[str, Any], ...] = (("companies", Company), ("people", Person), ("frameworks", Framework))
    for kind, model in models:
        if kind in slugs_by_kind:
            for slug, name in model.objects.filter(slug__in=slugs_by_kind[kind]).values_list("slug", "name"):
                names[f"{kind}/{slug}"] = name
    return names


def _about(subject: str, names: Mapping[str, str]) -> str:
    if subject not in names:
        return f"/{subject}"
    return format_html('<a href="/{}">{}</a>', quote(subject), names[subject])


def _details(event: SecurityEvent) -> list[tuple[str, str]]:
    """Return the details, with the settings of the registry by the labels of their form."""
    changed = event.detail.get("changed")
    if not isinstance(changed, list):
        return details_of(event)
    names = ", ".join(label_of(str(place)) for place in changed)
    return [*details_of(event, but="changed"), (gettext("Changed"), names)]


def _folded(events: list[SecurityEvent]) -> list[JSONObject]:
    """Return the events as they are shown: failed sign-ins in a row from one address are one line with their number."""
    lines: list[JSONObject] = []
    for event, line in zip(events, shown_events(events), strict=True):
        if lines and _is_same_failure(event, lines[-1]["event"]):
            lines[-1]["times"] += 1
            is_other_day = event.at.date() != lines[-1]["event"].at.date()
            lines[-1]["since"] = event.at if is_other_day else None
        else:
            lines.append(line)
    return lines


def _is_same_failure(event: SecurityEvent, former: SecurityEvent) -> bool:
    return (
        event.event == former.event == "sign_in_failed"
        and event.address == former.address
        and event.agent == former.agent
    )


def as_file(
    events: Iterator[SecurityEvent], wire: Callable[[SecurityEvent], JSONObject], name: str, form: str
) -> HttpResponse:
    pieces = _csv(events, wire) if form == "csv" else _lines(events, wire)
    response = StreamingHttpResponse(pieces, content_type=FORMATS[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return cast("HttpResponse", response)  # the decorators of views need what both have


def _lines(events: Iterator[SecurityEvent], wire: Callable[[SecurityEvent], JSONObject]) -> Iterator[bytes]:
    for event in events:
        yield msgspec.json.encode(wire(event)) + b"\n"


def _csv(events: Iterator[SecurityEvent], wire: Callable[[SecurityEvent], JSONObject]) -> Iterator[bytes]:
    text = CsvText()
    text.write(COLUMNS)
    for number, event in enumerate(events, 1):
        text.write(csv_cells(wire(event)))
        if number % _PIECE == 0:
            yield text.take()
    yield text.take()
