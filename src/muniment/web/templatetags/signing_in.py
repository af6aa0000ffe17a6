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
    match = _ENTITY.fullmatch(path)
    if match:
        kind = {"companies": "company", "people": "person"}[match[1]]
        name = _name_of(kind, unquote(match[2]))
        if not name:
            return ""
        sentences = {
            ("company", "claim"): gettext("You need an account to claim %(name)s."),
            ("company", "suggest"): gettext("You need an account to suggest an edit to %(name)s."),
            ("company", "domain"): gettext("You need an account to verify the domain of %(name)s."),
            ("person", "claim"): gettext("You need an account to claim the profile of %(name)s."),
        }
        return sentences.get((kind, match[3]), "") % {"name": name}
    starts = {
        "/manage/companies/new": gettext(
            "To list your organization, you need an account, then its name, type, website and a short summary. Each "
            "step is saved as a draft, and a reviewer checks the listing before it is public."
        ),
        "/manage/searches/new": gettext("You need an account to save this search."),
        "/manage/invitations/": gettext("You need an account to accept the invitation."),
        "/manage/applications": gettext("You need an account to see your applications."),
        "/manage/reports": gettext("You need an account to assess your organization."),
        "/manage/tokens": gettext("You need an account to manage your tokens and connected apps."),
        "/manage/webhooks": gettext("You need an account to manage your webhooks."),
        "/manage/profile": gettext("You need an account to edit your profile."),
        "/manage/companies/": gettext("You need an account to edit your listing."),
        "/oauth/authorize": gettext("You need an account to connect the app."),
        "/review": gettext("You need an account to review."),
        "/operate": gettext("You need an account to operate this registry."),
    }
    for start, words in starts.items():
        if path.startswith(start):
            return words
    return ""


def _name_of(kind: str, key: str) -> str:
    source = reader()
    source.refresh()  # a name that was just taken back is not said any more
    document = source.document(kind, key)
    if document is None:
        return ""
    data = _decode(document.body)["data"]
    if kind == "company":
        data = data["company"]
    return str(data["name"])
