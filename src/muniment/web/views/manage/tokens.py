"""The page of personal access tokens and connected apps."""

from typing import Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy

from muniment.accounts import scopes
from muniment.accounts import tokens as operations
from muniment.accounts.models import PersonalToken
from muniment.kernel.actor import ALL_SCOPES, SCOPES
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound, Problem
from muniment.languages.translated import told
from muniment.oauth import clients, grants, resources
from muniment.oauth.models import Grant
from muniment.web.connecting.clients import claude_command, servers
from muniment.web.context import address
from muniment.web.requests.access import actor_of, confirmed, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.pagination import asked_page, pager

HOME = "/manage/tokens"
APPS = "apps"
_LIFETIMES: Final = (
    ("30", gettext_lazy("30 days")),
    ("90", gettext_lazy("90 days")),
    ("365", gettext_lazy("1 year")),
    ("never", gettext_lazy("Never")),
)


class NewTokenForm(forms.Form):
    """Name, lifetime and permissions of a new token."""

    name = forms.CharField(
        max_length=operations.MAX_NAME_CHARACTERS,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("Where you'll use it, for example: laptop."),
    )
    lifetime = forms.ChoiceField(
        label=gettext_lazy("Expires in"), choices=_LIFETIMES, initial=str(operations.DEFAULT_DAYS)
    )
    access = forms.ChoiceField(
        label=gettext_lazy("Access"),
        choices=(
            ("all", gettext_lazy("Full access")),
            ("read", gettext_lazy("Read only")),
            ("chosen", gettext_lazy("Selected permissions")),
        ),
        initial="all",
    )
    chosen = forms.MultipleChoiceField(
        label=gettext_lazy("Selected permissions"),
        required=False,
        choices=[(scope, format_lazy("{} ({})", scopes.WORDS[scope], scope)) for scope in SCOPES],
        widget=forms.CheckboxSelectMultiple,
    )

    def values(self) -> JSONObject:
        found, lifetime = self.cleaned_data, self.cleaned_data["lifetime"]
        held = {"all": SCOPES, "read": scopes.READ_SCOPES, "chosen": found["chosen"]}[found["access"]]
        return {"permitted": held, "days": None if lifetime == "never" else int(lifetime)}


@signed_in()
@confirmed()
def tokens(request: HttpRequest) -> HttpResponse:
    """Show tokens and connected apps; create a token."""
    if request.method != "POST":
        return _page(request, NewTokenForm(form_data(request)))
    form = NewTokenForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=400)
    try:
        new_token = operations.create_token(actor_of(request), form.cleaned_data["name"], **form.values())
    except Problem as problem:
        form.add_error(None, told(problem))
        return _page(request, form, status=problem.status)
    # The response itself shows the token: a redirect would have to store it.
    return _page(request, NewTokenForm(), new_token=new_token)


@signed_in("POST")
@confirmed(lambda **_: HOME)
def regenerate(request: HttpRequest, token_id: int) -> HttpResponse:
    """Regenerate a token, and show it once."""
    return _page(request, NewTokenForm(), new_token=operations.regenerate_token(actor_of(request), _id(token_id)))


@signed_in("POST")
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    row = operations.revoke_token(actor_of(request), _id(token_id))
    messages.success(request, gettext("Token %(name)s revoked.") % {"name": row.name})
    return redirect("tokens")


@signed_in("POST")
def disconnect(request: HttpRequest, grant_id: int) -> HttpResponse:
    grant = grants.disconnect(actor_of(request), _id(grant_id))
    messages.success(request, gettext("%(app)s disconnected.") % {"app": grant.client})
    return redirect("tokens")


def _may(held: str) -> str:
    """Return what scopes permit, in a word or two."""
    permitted = scopes.read(held)
    if permitted == ALL_SCOPES:
        return gettext("Full access")
    if permitted == scopes.READ_SCOPES:
        return gettext("Read only")
    return ", ".join(scopes.in_order(permitted))


def _id(number: int) -> int:
    if number >= 1 << 63:
        raise NotFound(gettext("Not found."), gettext("Your tokens and apps are at /manage/tokens."))
    return number


def _page(
    request: HttpRequest, form: NewTokenForm, *, new_token: operations.NewToken | None = None, status: int = 200
) -> HttpResponse:
    actor, at = actor_of(request), now()
    tokens = []
    for row in operations.list_tokens(actor):
        is_shown = new_token is not None and row.pk == new_token.row.pk
        state = {"is_shown": is_shown, "expires_at": row.expires_at, "live": row.is_live(at)}
        tokens.append({**_used(row), "name": row.name, **state})
    # A submitted form is shown again with the first page.
    number = asked_page(request.GET, APPS) if request.method == "GET" else 1
    connected = grants.list_connections(actor, page=number)
    connections = []
    for grant in connected.items:
        name = grant.client.name or gettext("Unnamed app")
        publisher = clients.home_of(grant.client) or gettext("Unverified app")
        connections.append({**_used(grant), "name": name, "publisher": publisher})
    configurations_of_clients = []
    if new_token:
        configurations_of_clients = configurations(address(request), new_token.text)
    context = {
        "form": form,
        "new_token": new_token,
        "configurations": configurations_of_clients,
        "tokens": tokens,
        "connections": connections,
        "apps_pager": pager(request, (APPS,), connected, name=APPS, path=HOME),
    }
    page = render(request, "tokens/tokens.html", {"room": "manage", **context}, status=status)
    page["Cache-Control"] = "no-store"
    return page


def _used(row: PersonalToken | Grant) -> JSONObject:
    return {
        "id": row.pk,
        "may": _may(row.scopes),
        "created_at": row.created_at,
        "last_used_on": row.last_used_on,
        "last_used_by": row.last_used_by,
    }


def configurations(base: str, token: str) -> list[dict[str, str]]:
    """
    Return ready-to-copy configuration for five clients.

    Source: service document, Authentication: transport type streamable-http, or http in one editor.
    """
    url, name = resources.manage_server(base), "my-registry"
    headers = {"Authorization": f"Bearer {token}"}
    remote = {
        "command": "npx",
        "args": ["-y", "mcp-remote", url, "--header", "Authorization:${REGISTRY_AUTH}"],
        "env": {"REGISTRY_AUTH": headers["Authorization"]},
    }
    return [
        {
            "name": "Claude Code",
            "words": gettext("Run this command in a terminal."),
            "text": claude_command(name, url, token),
        },
        {
            "name": "Cursor",
            "words": gettext("Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json in a project."),
            "text": servers({name: {"url": url, "headers": headers}}),
        },
        {
            "name": "VS Code",
            "words": gettext("Add this to .vscode/mcp.json in a workspace. VS Code calls the transport http."),
            "text": servers({name: {"type": "http", "url": url, "headers": headers}}, key="servers"),
        },
        {
            "name": "mcp-remote",
            "words": gettext("Use mcp-remote with clients that only run local commands."),
            "text": servers({name: remote}),
        },
        {
            "name": gettext("Any other client"),
            "words": gettext("Use the transport type streamable-http."),
            "text": servers({name: {"type": "streamable-http", "url": url, "headers": headers}}),
        },
    ]
