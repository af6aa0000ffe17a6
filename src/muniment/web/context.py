"""Template context of every page: the registry's name, address and settings; of pages of an account, its menu."""

import re
from typing import NamedTuple

from django.http import HttpRequest

from muniment import config
from muniment.accounts.models import Account
from muniment.web.translating import gettext

_OURS = re.compile(r"(?:https?://[^/]+)?(?P<path>/pictures/[0-9a-f]{32}-(?:144|512)\.webp)")


class MenuLink(NamedTuple):
    """A text and where it leads."""

    label: str
    address: str


def site(request: HttpRequest) -> dict[str, object]:
    """Return the context that the base template needs, which does not depend on the visitor."""
    settings = config.current()
    return {"registry_name": settings.registry_name, "base_url": address(request), "signup_open": settings.signup}


def visitor(request: HttpRequest) -> dict[str, object]:
    """
    Return the signed-in account and its menu.

    Only if the request has looked for the account: the page of a database that is away must not ask it.
    """
    account = getattr(request, "_cached_user", None)
    return {"me": account, "my_links": account_links(account)} if isinstance(account, Account) else {}


def account_links(account: Account) -> list[MenuLink]:
    """Return the entries of an account's menu."""
    found = [
        MenuLink(gettext("Your listings"), "/manage"),
        MenuLink(gettext("Reports"), "/manage/reports"),
        MenuLink(gettext("Saved searches"), "/manage/searches"),
        MenuLink(gettext("Account"), "/manage/profile"),
    ]
    if account.role != Account.Role.OWNER:
        found.append(MenuLink(gettext("Review"), "/review"))
    return [*found, MenuLink(gettext("Sign out"), "/accounts/logout/")]


def address(request: HttpRequest) -> str:
    """Return the public address of the instance: the configured one, else that of the request."""
    return config.current().base_url or f"{request.scheme}://{request.get_host()}"


def own_address(icon: str | None) -> str:
    """
    Return a picture's path if this instance serves it, else an empty string.

    Pages load nothing from other hosts, so an imported address shows as a monogram. The API keeps that address.
    """
    return match["path"] if icon and (match := _OURS.fullmatch(icon)) else ""
