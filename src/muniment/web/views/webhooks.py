"""
The pages of webhooks: of an account below /manage, of the registry, for operators, below /operate.

Both have the same views; ``of_registry`` comes from the address.
"""

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, re_path
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest, Conflict, LimitReached
from muniment.languages.translated import told
from muniment.outbound.following import MAX_CHARACTERS
from muniment.web.form_fields import TextField
from muniment.web.requests.access import View, actor_of, confirmed, operator, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.page_cache import reader
from muniment.web.requests.pages import Question, Words, ask, manage_page, problems_shown
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, pager
from muniment.web.views.operate.frame import operate_page
from muniment.web.wording.webhooks import event_kind
from muniment.webhooks import delivering, endpoints
from muniment.webhooks.endpoints import Wanted
from muniment.webhooks.events import KEPT
from muniment.webhooks.models import Delivery, Endpoint

TONES: Final = {"works": "good", "failing": "wait", "paused": "wait", "ended": "bad"}
GUIDE: Final = "/docs/guides/webhooks"
NAMED: Final = 10
DONE: Final = {
    "test": gettext_lazy("A test event is on its way. Reload the page to see its attempt."),
    "resume": gettext_lazy("The webhook was started again. Events that waited are sent now."),
}
_ENDED: Final = {
    "gone": gettext_lazy("It answered 410 Gone."),
    "failing": gettext_lazy("It has failed for a week."),
}


def managing(*methods: str) -> Callable[[View], View]:
    """Require an operator for the registry's webhooks, and a signed-in account for its own."""

    def decorate(view: View) -> View:
        of_operator, of_owner = operator(*methods)(view), signed_in(*methods)(view)

        @functools.wraps(view)
        def enter(request: HttpRequest, *, of_registry: bool, **where: Any) -> HttpResponse:
            entered = of_operator if of_registry else of_owner
            return entered(request, of_registry=of_registry, **where)

        return enter

    return decorate


def home_of(*, of_registry: bool) -> str:
    return "/operate/webhooks" if of_registry else "/manage/webhooks"


def page_of(endpoint_id: str, *, of_registry: bool) -> str:
    return f"{home_of(of_registry=of_registry)}/{endpoint_id}"


class EndpointForm(forms.Form):
    """Where events are sent, which ones, and of which listings."""

    url = forms.CharField(
        max_length=MAX_CHARACTERS,
        label=gettext_lazy("URL"),
        help_text=gettext_lazy("We send events to it by POST. It begins with https://, on a public server."),
        widget=forms.URLInput({"placeholder": "https://hooks.example.com/muniment", "spellcheck": "false"}),
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one event.")},
    )
    listings = TextField(
        label=gettext_lazy("Only these listings"),
        required=False,
        widget=forms.Textarea({"rows": 3, "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, of_registry: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        kinds = endpoints.kinds_for(of_registry=of_registry)
        choices = [(kind, format_lazy("{}: {}", kind, event_kind(kind, of_registry=of_registry))) for kind in kinds]
        self.fields["kinds"].choices = choices  # type: ignore[attr-defined]  # of a field with choices
        own = gettext_lazy("One address or slug per line, also of listings of others. Empty: all of your listings.")
        every = gettext_lazy("One address or slug per line. Empty: all of the registry.")
        self.fields["listings"].help_text = every if of_registry else own

    def clean_url(self) -> str:
        return _at_the_field(endpoints.checked_url, self.cleaned_data["url"])

    def clean_listings(self) -> list[str]:
        return _at_the_field(endpoints.checked_listings, list(map(_slug, self.cleaned_data["listings"].splitlines())))

    def wanted(self) -> Wanted:
        return Wanted(**self.cleaned_data)


Given = TypeVar("Given")
Checked = TypeVar("Checked")


def _at_the_field(check: Callable[[Given], Checked], value: Given) -> Checked:
    """Return what a rule makes of a value; its refusal is shown at the field."""
    try:
        return check(value)
    except BadRequest as refusal:
        raise ValidationError(told(refusal)) from refusal


def _slug(line: str) -> str:
    """Return the slug of a listing, of which people copy the address."""
    _, is_address, rest = line.strip().partition("/companies/")
    return unquote(rest.partition("/")[0].partition("?")[0]) if is_address else line


@managing("GET", "HEAD")
def home(request: HttpRequest, *, of_registry: bool) -> HttpResponse:
    """List the webhooks with their states."""
    found = endpoints.list_endpoints(actor_of(request), of_registry=of_registry)
    context = {
        "rows": [_shown(each, of_registry=of_registry) for each in found],
        "most": endpoints.MAX_ENDPOINTS,
        "is_full": len(found) >= endpoints.MAX_ENDPOINTS,
    }
    return _page(request, "webhooks/list.html", context, of_registry=of_registry)


@managing()
@confirmed()
@once
def new(request: HttpRequest, *, of_registry: bool) -> HttpResponse:
    """Create a webhook; its page shows the secret."""
    form = EndpointForm(form_data(request), of_registry=of_registry)
    status = 0
    if request.method == "POST" and form.is_valid():
        try:
            made = endpoints.create_endpoint(actor_of(request), form.wanted(), of_registry=of_registry)
        except LimitReached as refusal:
            form.add_error(None, told(refusal))
            status = refusal.status
        else:
            messages.success(request, gettext("The webhook was created. Give its secret to the receiver."))
            _name_unknown(request, made)
            return HttpResponseRedirect(page_of(made.pk, of_registry=of_registry))
    title = gettext("New webhook")
    context = {"form": form, "title": title, "crumbs": [*_crumbs(of_registry=of_registry), (title, "")]}
    return _page(request, "webhooks/form.html", context, of_registry=of_registry, status=status)


@managing()
@confirmed()
@once
def edit(request: HttpRequest, endpoint_id: str, *, of_registry: bool) -> HttpResponse:
    """Change where events are sent, which ones, and of which listings."""
    actor = actor_of(request)
    found = endpoints.get_endpoint(actor, endpoint_id, of_registry=of_registry)
    page = page_of(found.pk, of_registry=of_registry)
    stored = {"url": found.url, "kinds": found.kinds, "listings": "\n".join(found.listings)}
    form = EndpointForm(form_data(request), initial=stored, of_registry=of_registry)
    if request.method == "POST" and form.is_valid():
        changed = endpoints.change_endpoint(actor, endpoint_id, form.wanted(), of_registry=of_registry)
        messages.success(request, gettext("Saved. It applies to events from now on."))
        _name_unknown(request, changed)
        return HttpResponseRedirect(page)
    title = gettext("Edit webhook")
    crumbs = [*_crumbs(of_registry=of_registry), (found.url, page), (gettext("Edit"), "")]
    context = {"form": form, "title": title, "crumbs": crumbs, "endpoint": found, "page": page}
    return _page(request, "webhooks/form.html", context, of_registry=of_registry)


@managing("GET", "HEAD")
def endpoint(request: HttpRequest, endpoint_id: str, *, of_registry: bool) -> HttpResponse:
    """Show a webhook with its latest deliveries."""
    form_data(request)  # tells that nothing was changed yet, after a confirmation
    return _endpoint_page(request, endpoint_id, of_registry=of_registry)


@managing("POST")
@confirmed(page_of)
def show_secret(request: HttpRequest, endpoint_id: str, *, of_registry: bool) -> HttpResponse:
    """Show the secret in the response itself: a redirect would have to store it."""
    secret = endpoints.shown_secret(actor_of(request), endpoint_id, of_registry=of_registry)
    return _endpoint_page(request, endpoint_id, of_registry=of_registry, secret=secret, is_secret_asked=True)


@managing()
@confirmed()
@once
def rotate(request: HttpRequest, endpoint_id: str, *, of_registry: bool) -> HttpResponse:
    """Replace the secret, after a question: a rotation too many would end the one that the receiver has."""
    actor, page = actor_of(request), page_of(endpoint_id, of_registry=of_registry)
    found = endpoints.get_endpoint(actor, endpoint_id, of_registry=of_registry)
    form_data(request)  # tells that nothing was changed yet, after a confirmation
    if request.method == "POST":
        endpoints.rotate_secret(actor, endpoint_id, of_registry=of_registry)
        messages.success(request, gettext("The secret is new. The former one signs too for a day."))
        return HttpResponseRedirect(page)
    sentences = [
        gettext(
            "Events are signed with a new secret at once. The former one signs too for a day, so that you can"
            " replace it at the receiver without losing an event."
        ),
    ]
    if _signs_twice(found):
        sentences.append(gettext("The secret before the current one stops signing now."))
    question = Question(gettext("Rotate the secret?"), sentences, gettext("Rotate secret"), tone="main")
    crumbs = [*_crumbs(of_registry=of_registry), (found.url, page), (gettext("Rotate secret"), "")]
    return ask(request, question, back=page, crumbs=crumbs)


@managing()
@once
def delete(request: HttpRequest, endpoint_id: str, *, of_registry: bool) -> HttpResponse:
    """Delete a webhook, after a question."""
    actor, page = actor_of(request), page_of(endpoint_id, of_registry=of_registry)
    if request.method == "POST":
        gone = endpoints.delete_endpoint(actor, endpoint_id, of_registry=of_registry)
        messages.success(request, gettext("The webhook %(url)s was deleted.") % {"url": gone.url})
        return HttpResponseRedirect(home_of(of_registry=of_registry))
    found = endpoints.get_endpoint(actor, endpoint_id, of_registry=of_registry)
    sentences = [
        gettext("Nothing more is sent to %(url)s.") % {"url": found.url},
        gettext(
            "Its secret, the events that wait for it and the list of what was sent are deleted. To stop some"
            " events only, edit the webhook instead."
        ),
    ]
    question = Question(gettext("Delete the webhook?"), sentences, gettext("Delete webhook"))
    crumbs = [*_crumbs(of_registry=of_registry), (found.url, page), (gettext("Delete"), "")]
    return ask(request, question, back=page, crumbs=crumbs)


@managing("POST")
@once
def act(request: HttpRequest, endpoint_id: str, action: str, *, of_registry: bool) -> HttpResponse:
    """Send a test event, or start an ended or paused webhook again."""
    acts = {"test": endpoints.send_test, "resume": endpoints.resume_endpoint}
    with problems_shown(request, Conflict):
        acts[action](actor_of(request), endpoint_id, of_registry=of_registry)
        messages.success(request, str(DONE[action]))
    return HttpResponseRedirect(page_of(endpoint_id, of_registry=of_registry))


@managing("POST")
@once
def replay(request: HttpRequest, endpoint_id: str, delivery_id: int = 0, *, of_registry: bool) -> HttpResponse:
    """Send an event again, or all that were given up."""
    actor = actor_of(request)
    with problems_shown(request):
        if delivery_id:
            endpoints.replay(actor, endpoint_id, delivery_id, of_registry=of_registry)
            messages.success(request, gettext("The event is sent again."))
        else:
            count = endpoints.replay_failed(actor, endpoint_id, of_registry=of_registry)
            messages.success(request, gettext("Events that are sent again: %(count)d.") % {"count": count})
    return HttpResponseRedirect(page_of(endpoint_id, of_registry=of_registry))


class DeliveryRow(NamedTuple):
    """A delivery as its line shows it."""

    delivery: Delivery
    what: Words
    subject: str
    tone: str
    state: Words
    attempts: list[JSONObject]
    can_send_again: bool


def _shown(row: Endpoint, *, of_registry: bool) -> JSONObject:
    state = endpoints.state_of(row)
    ends_at = row.failing_since + delivering.FAILING if row.failing_since else None
    return {
        "endpoint": row,
        "has_all_kinds": len(row.kinds) == len(endpoints.kinds_for(of_registry=of_registry)),
        "page": page_of(row.pk, of_registry=of_registry),
        "state": state,
        "tone": TONES[state],
        "reason": _ENDED.get(row.ended, row.ended),
        "ends_at": ends_at,
    }


def _endpoint_page(request: HttpRequest, endpoint_id: str, *, of_registry: bool, **more: Any) -> HttpResponse:
    actor = actor_of(request)
    found = endpoints.get_endpoint(actor, endpoint_id, of_registry=of_registry)
    latest = endpoints.list_deliveries(actor, endpoint_id, of_registry=of_registry)
    number = asked_page(request.GET) if request.method != "POST" else 1
    begin = (number - 1) * PAGE_SIZE
    listed = Page(latest[begin : begin + PAGE_SIZE], number, PAGE_SIZE, len(latest))
    page = page_of(found.pk, of_registry=of_registry)
    context = {
        **_shown(found, of_registry=of_registry),
        "events": [(kind, event_kind(kind, of_registry=of_registry)) for kind in found.kinds],
        "is_rotating": _signs_twice(found),
        "deliveries": [_delivery_row(each, found, of_registry=of_registry) for each in listed.items],
        "pager": pager(request, ("page",), listed, path=page),
        "most": endpoints.SHOWN,
        "failed": any(each.state == Delivery.State.FAILED for each in latest),
        "kept_days": KEPT.days,
        "crumbs": [*_crumbs(of_registry=of_registry), (found.url, "")],
        **more,
    }
    response = _page(request, "webhooks/endpoint.html", context, of_registry=of_registry)
    response["Cache-Control"] = "no-store"
    return response


def _delivery_row(row: Delivery, of: Endpoint, *, of_registry: bool) -> DeliveryRow:
    tone, state = "", gettext_lazy("Waiting")
    if row.state == Delivery.State.DELIVERED:
        tone, state = "good", gettext_lazy("Delivered")
    elif row.state == Delivery.State.FAILED:
        tone, state = "bad", gettext_lazy("Given up")
    elif row.attempts:
        tone, state = "wait", gettext_lazy("Failed, tried again")
    elif row.next_at is None:
        state = gettext_lazy("Waits for the event before it")
    slug = row.subject.partition(":")[2]
    return DeliveryRow(
        delivery=row,
        what=event_kind(row.kind, of_registry=of_registry),
        subject=slug,
        tone=tone,
        state=state,
        attempts=[{**each, "at": datetime.fromisoformat(each["at"])} for each in reversed(row.attempts)],
        can_send_again=row.state != Delivery.State.WAITING and not of.ended,
    )


def _signs_twice(row: Endpoint) -> bool:
    return row.former_until is not None and row.former_until > now()


def _name_unknown(request: HttpRequest, row: Endpoint) -> None:
    """Name the listings that are not public: a slip in a slug would only show by events that never come."""
    source = reader()
    source.refresh()
    public = source.documents([("company", slug) for slug in row.listings])
    unknown = [slug for slug in row.listings if ("company", slug) not in public]
    if unknown:
        named = ", ".join(unknown[:NAMED])
        if len(unknown) > NAMED:
            named += " …"
        said = gettext("Not public now: %(slugs)s. Check the spelling; events come once these listings are published.")
        messages.warning(request, said % {"slugs": named})


def _crumbs(*, of_registry: bool) -> list[tuple[str, str]]:
    return [(gettext("Webhooks"), home_of(of_registry=of_registry))]


def _page(
    request: HttpRequest, template: str, context: JSONObject, *, of_registry: bool, status: int = 0
) -> HttpResponse:
    shown = {"home": home_of(of_registry=of_registry), "of_registry": of_registry, "guide": GUIDE, **context}
    if of_registry:
        return operate_page(request, "webhooks", template, {"frame": "operate/frame.html", **shown}, status=status)
    return manage_page(request, template, {"frame": "webhooks/frame.html", **shown}, status=status)


def addresses(*, of_registry: bool) -> list[URLPattern]:
    """Return the addresses of the pages below /manage, or those below /operate."""
    start, given = home_of(of_registry=of_registry).removeprefix("/"), {"of_registry": of_registry}
    one = f"{start}/<str:endpoint_id>"
    return [
        path(start, home, given),
        path(f"{start}/new", new, given),
        path(one, endpoint, given),
        path(f"{one}/edit", edit, given),
        path(f"{one}/secret", show_secret, given),
        path(f"{one}/rotate", rotate, given),
        path(f"{one}/delete", delete, given),
        path(f"{one}/replay", replay, given),
        path(f"{one}/deliveries/<int:delivery_id>/replay", replay, given),
        re_path(rf"^{start}/(?P<endpoint_id>[0-9a-z]{{26}})/(?P<action>test|resume)$", act, given),
    ]
