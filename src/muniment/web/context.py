"""Template context of every page: the registry's name, address and settings; of pages of an account, its menu."""

import re
from typing import NamedTuple

from django.http import HttpRequest
from django.utils.translation import gettext

from muniment import config
from muniment.accounts import identity_providers, sign_up
from muniment.accounts.models import Account
from muniment.kernel.wire import proof_path
from muniment.languages.names import own_name
from muniment.languages.offered import base_direction, offered
from muniment.languages.speaking import language
from muniment.registry_toml import applied
from muniment.web.branding import branding

_ADDRESS = "muniment.address"
_OURS = re.compile(r"(?:https?://[^/]+)?(?P<path>/pictures/[0-9a-f]{32})-(?:144|512)\.webp")


class MenuLink(NamedTuple):
    """A text and where it leads."""

    label: str
    address: str


def site(request: HttpRequest) -> dict[str, object]:
    """Return the context that the base template needs, which does not depend on the visitor."""
    return {
        "registry_name": applied.registry_name(),
        **spoken(),
        "brand": branding(),
        "base_url": address(request),
        "mirrored": config.current().mirrored,
        "signup_open": sign_up.is_open(),
        "only_providers": identity_providers.are_required(),
    }


def spoken() -> dict[str, object]:
    """Return the language of the page, its direction, and the languages to choose from if there are several."""
    code, known = language(), offered()
    choices = known if len(known) > 1 else ()
    return {
        "language": code,
        "direction": base_direction(code),
        "languages": [(choice, own_name(choice)) for choice in choices],
    }


def visitor(request: HttpRequest) -> dict[str, object]:
    """
    Return the signed-in account and its menu.

    Only if the request has looked for the account: the page of a database that is away must not ask it.
    """
    account = getattr(request, "_cached_user", None)
    if not isinstance(account, Account):
        return {}
    return {"me": account, "my_links": account_links(account)}


def account_links(account: Account) -> list[MenuLink]:
    """Return the entries of an account's menu."""
    links = [
        MenuLink(gettext("Your listings"), "/manage"),
        MenuLink(gettext("Reports"), "/manage/reports"),
        MenuLink(gettext("Saved searches"), "/manage/searches"),
        MenuLink(gettext("Account"), "/manage/profile"),
    ]
    if account.role != Account.Role.OWNER:
        links.append(MenuLink(gettext("Review"), "/review"))
    if account.role == Account.Role.OPERATOR:
        links.append(MenuLink(gettext("Operate"), "/operate"))
    links.append(MenuLink(gettext("Sign out"), "/accounts/logout/"))
    return links


def address(request: HttpRequest) -> str:
    """Return the public address of the instance: the configured one, else that of the request."""
    configured = config.current().base_url
    if configured:
        return configured
    # A page needs it several times, and Django checks the host each time.
    if _ADDRESS not in request.META:
        request.META[_ADDRESS] = f"{request.scheme}://{request.get_host()}"
    return str(request.META[_ADDRESS])


def proof_address(request: HttpRequest, kind: str, key: str) -> str:
    """Return the address of the proof that a published document is in the public log; a mirror's is of its origin."""
    return (config.current().mirrored or address(request)) + proof_path(kind, key)


def own_address(logo: object) -> str:
    """
    Return the path of a picture in the size of a mark if this instance serves it, else an empty string.

    Pages load nothing from other sites: a logo whose picture is not hosted here shows as a monogram.

    Args:
        logo: its wire form, or an address.
    """
    address = logo.get("url") if isinstance(logo, dict) else logo
    match = _OURS.fullmatch(address) if isinstance(address, str) else None
    return f"{match['path']}-144.webp" if match else ""
