"""Why a sign-in is asked: the page that the visitor wanted, in words."""

import re
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from django import template
from django.http import HttpRequest
from django.utils.translation import gettext

from muniment.web.requests.page_cache import reader

register = template.Library()
_ENTITY: Final = re.compile(r"/(companies|people)/([^/]{1,600})/(claim|suggest|domain)")
_decode = msgspec.json.decode


@register.simple_tag(takes_context=True)
def reason_to_sign_in(context: template.Context) -> str:
    """Return why the page that leads here needs an account; empty if that says nothing to the visitor."""
    request = context["request"]
    return reason_of(wanted_page(request))


def wanted_page(request: HttpRequest) -> str:
    """Return the path of the page that comes after signing in."""
    try:
        return urlsplit(request.POST.get("next") or request.GET.get("next", "")).path
    except ValueError:
        return ""


def reason_of(path: str) -> str:
    """Return why *path* needs an account. Names are those of published documents."""
    if not path:
        return ""
    if found := _ENTITY.fullmatch(path):
        kind = {"companies": "company", "people": "person"}[found[1]]
        if not (name := _name_of(kind, unquote(found[2]))):
            return ""
        sentences = {
            ("company", "claim"): gettext("Sign in to claim %(name)s."),
            ("company", "suggest"): gettext("Sign in to suggest an edit to %(name)s."),
            ("company", "domain"): gettext("Sign in to verify the domain of %(name)s."),
            ("person", "claim"): gettext("Sign in to claim the profile of %(name)s."),
        }
        return sentences.get((kind, found[3]), "") % {"name": name}
    starts = {
        "/manage/companies/new": gettext("Sign in to list your organization."),
        "/manage/searches/new": gettext("Sign in to save this search."),
        "/manage/invitations/": gettext("Sign in to accept the invitation."),
        "/manage/applications": gettext("Sign in to see your applications."),
        "/manage/reports": gettext("Sign in to assess your organization."),
        "/manage/tokens": gettext("Sign in to manage your tokens and connected apps."),
        "/manage/profile": gettext("Sign in to edit your profile."),
        "/manage/companies/": gettext("Sign in to edit your listing."),
        "/oauth/authorize": gettext("Sign in to connect the app."),
        "/review": gettext("Sign in to review."),
        "/operate": gettext("Sign in to operate this registry."),
    }
    return next((words for start, words in starts.items() if path.startswith(start)), "")


def _name_of(kind: str, key: str) -> str:
    source = reader()
    source.refresh()  # a name that was just taken back is not said any more
    found = source.document(kind, key)
    if found is None:
        return ""
    data = _decode(found.body)["data"]
    return str(data["company"]["name"] if kind == "company" else data["name"])
