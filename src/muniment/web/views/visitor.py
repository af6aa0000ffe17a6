"""
The account menu: who is signed in, where to go, and what the account may do with the page that it looks at.

Public pages are the same bytes for every visitor. Their script asks for the menu, and only in a browser with the
cookie that says that an account may be signed in (:mod:`muniment.accounts.sessions`).
"""

import re
from typing import Final
from urllib.parse import quote, unquote

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext

from muniment.accounts.models import Account
from muniment.kernel.actor import Actor
from muniment.kernel.problems import MethodNotAllowed
from muniment.registry.company.access import is_own_listing
from muniment.registry.people.profiles import get_profile
from muniment.web.context import MenuLink, account_links

_ENTITY: Final = re.compile(r"/(companies|people|frameworks)/([^/]{1,600})")


def menu(request: HttpRequest) -> HttpResponse:
    """Return the menu as JSON; *page* is the path of the page that asks."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowed(str(request.method), "GET, HEAD")
    account = request.user
    if not isinstance(account, Account):
        return JsonResponse({"account": None})
    own = page_link(account.actor("web"), request.GET.get("page", ""))
    shown = render_to_string("part/account.html", {"me": account, "my_links": account_links(account), "own": own})
    return JsonResponse({"account": account.email, "menu": shown, "page": own and own._asdict()})


def page_link(actor: Actor, path: str) -> MenuLink | None:
    """Return where *actor* edits or reviews what a public page shows; None if that is not the actor's to do."""
    match = _ENTITY.fullmatch(path)
    if match is None:
        return None
    kind, key = match[1], unquote(match[2])
    if kind == "companies" and is_own_listing(actor, key):
        return MenuLink(gettext("Edit listing"), f"/manage/companies/{quote(key, safe='')}")
    if kind == "people":
        person = get_profile(actor)
        if person is not None and person.slug == key:
            return MenuLink(gettext("Edit profile"), "/manage/profile")
    if not actor.is_reviewer:
        return None
    label = {
        "companies": gettext("Review listing"),
        "people": gettext("Review profile"),
        "frameworks": gettext("Edit framework"),
    }[kind]
    return MenuLink(label, f"/review/{kind}/{quote(key, safe='')}")
