"""
Updates by email for visitors: ask for them, confirm, see and end subscriptions. None of it needs a session or a cookie.

The form is on pages that are the same bytes for everyone, so it has no token of a session; browsers say where a form
comes from. Everything else is at an address that was mailed, which is the credential. A page changes nothing when it is
only read: programs that check the links of a message read them too.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.csrf import csrf_exempt

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Forbidden, MethodNotAllowed
from muniment.languages.translated import told
from muniment.searches import news, subscriptions
from muniment.searches.models import Subscription
from muniment.searches.subscriptions import WantedUpdates
from muniment.web.lists.search import Search
from muniment.web.requests.access import View, is_from_this_site

_METHODS: Final = ("GET", "HEAD", "POST")
PACES: Final = ((Subscription.Pace.DAILY, gettext_lazy("Daily")), (Subscription.Pace.WEEKLY, gettext_lazy("Weekly")))


class AddressForm(forms.Form):
    """An email address."""

    email = forms.EmailField(
        max_length=subscriptions.MAX_EMAIL_CHARACTERS,
        label=gettext_lazy("Email address"),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )


class UpdatesForm(AddressForm):
    """An email address, and how often it gets a message at most."""

    pace = forms.ChoiceField(
        choices=PACES, initial=Subscription.Pace.DAILY, label=gettext_lazy("How often"), widget=forms.RadioSelect
    )


def _by_mail(view: View) -> View:
    """Make a page that reads no cookie, is not indexed, and gives its address to no other site."""

    @csrf_exempt
    @functools.wraps(view)
    def page(request: HttpRequest, **where: Any) -> HttpResponse:
        if request.method not in _METHODS:
            raise MethodNotAllowed(str(request.method), ", ".join(_METHODS))
        response = view(request, **where)
        response["Referrer-Policy"] = "no-referrer"  # the address may be a secret
        response["X-Robots-Tag"] = "noindex"
        response["Cache-Control"] = "no-store"
        return response

    return page


def offered_for(topic: str, key: str) -> JSONObject | None:
    """Return what the form on a page asks for; None if the registry sends no updates."""
    return {"topic": topic, "key": key, "paces": PACES} if subscriptions.is_offered() else None


def offered_for_search(search: Search) -> JSONObject | None:
    return offered_for(search.of.name, search.filters.address().partition("?")[2])


@_by_mail
def new(request: HttpRequest) -> HttpResponse:
    """Ask for updates of a listing or a search; the page is the same whether or not the address is known."""
    subscriptions.require_offered()
    asked = request.POST if request.method == "POST" else request.GET
    wanted = WantedUpdates(asked.get("topic", "")[:40], asked.get("key", ""))
    title = subscriptions.title_of(wanted)
    form = UpdatesForm(_sent(request))
    if _is_sent(request, form):
        wanted = wanted._replace(pace=form.cleaned_data["pace"])
        if _try(form, lambda: subscriptions.request_updates(form.cleaned_data["email"], wanted)):
            return HttpResponseRedirect("/updates/sent", status=303)
    context = {
        "form": form,
        "wanted": wanted,
        "title": title,
        "is_search": wanted.topic not in news.LISTINGS,
        "address": news.path_of(wanted.topic, wanted.key),
    }
    return render(request, "updates/new.html", context, status=422 if form.errors else 200)


@_by_mail
def home(request: HttpRequest) -> HttpResponse:
    """Ask for the link to the subscriptions of an address."""
    form = AddressForm(_sent(request))
    if _is_sent(request, form) and _try(form, lambda: subscriptions.request_list(form.cleaned_data["email"])):
        return HttpResponseRedirect("/updates/sent?of=list", status=303)
    return render(request, "updates/home.html", {"form": form}, status=422 if form.errors else 200)


@_by_mail
def sent(request: HttpRequest) -> HttpResponse:
    """Show that a message is on its way, if the address can get one."""
    return render(request, "updates/sent.html", {"is_list": request.GET.get("of") == "list"})


@_by_mail
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Show the question of a mailed link, or confirm it."""
    row = subscriptions.confirm_updates(token) if request.method == "POST" else subscriptions.find_request(token)
    context = {"row": shown(row), "is_confirmed": row.confirmed_at is not None}
    if context["is_confirmed"]:
        context["mine"] = subscriptions.mine_path(row.subscriber)
    return render(request, "updates/confirm.html", context)


@_by_mail
def end(request: HttpRequest, token: str) -> HttpResponse:
    """Show the question of a link that ends a subscription, or end it; mail programs POST to it (RFC 8058)."""
    row = subscriptions.find_to_end(token)
    if request.method == "POST":
        subscriptions.end_updates(token)
    context = {"row": shown(row) if row else None, "is_ended": row is None or request.method == "POST"}
    return render(request, "updates/end.html", context)


@_by_mail
def mine(request: HttpRequest, token: str) -> HttpResponse:
    """List the subscriptions of an address; end one of them, or all."""
    ended = 0
    if request.method == "POST":
        ended = subscriptions.end_mine(token, request.POST.get("id", ""))
    subscriber = subscriptions.find_subscriber(token)
    rows = [shown(row) for row in subscriptions.list_mine(token)]
    context = {"rows": rows, "email": subscriber.email if subscriber else "", "ended": ended}
    return render(request, "updates/mine.html", context)


def _sent(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _is_sent(request: HttpRequest, form: forms.Form) -> bool:
    """Return whether a valid form was sent; raise Forbidden if another site made the browser send it."""
    if request.method != "POST":
        return False
    if not is_from_this_site(request):
        raise Forbidden(
            gettext("This form was sent from another website."), gettext("Open the page here, and try again.")
        )
    return form.is_valid()


def _try(form: forms.Form, ask: Callable[[], None]) -> bool:
    """Return whether a request was taken; show on the form what is invalid."""
    try:
        ask()
    except BadRequest as problem:
        form.add_error("email", told(problem))
        return False
    return True


def shown(row: Subscription) -> JSONObject:
    """Return a subscription as pages show it."""
    name = news.name_of(row)
    address = news.path_of(row.topic, row.key) if name else ""  # what is no longer public has no page
    kinds = {"company": gettext("Company"), "person": gettext("Person")}
    return {
        "id": row.pk,
        "name": name or gettext("No longer public"),
        "address": address,
        "kind": kinds.get(row.topic, gettext("Results of a search")),
        "pace": dict(PACES)[Subscription.Pace(row.pace)],
        "since": row.confirmed_at,
    }
