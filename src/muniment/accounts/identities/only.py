"""
Signing in only at identity providers: MUNIMENT_SIGN_IN=providers.

Whatever way an account signs in, allauth asks the adapter before it does; and a session that began another way counts
as signed out. Only a link from the command line lets an account in without a provider.
"""

import functools
from collections.abc import Callable
from typing import Final

from allauth.account.authentication import get_authentication_records
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject
from django.utils.http import base36_to_int

from muniment import config
from muniment.accounts.models import Account
from muniment.accounts.operations import find_account, require_operator
from muniment.kernel.actor import Actor

LINK: Final = "link"
"""The method of a sign-in by a link from the command line."""
LINK_LASTS_S: Final = 15 * 60


def is_required() -> bool:
    return config.current().sign_in == "providers"


def came_by_provider(request: HttpRequest, account: Account) -> bool:
    """Return whether the session began at a provider, or with a link."""
    methods = {each.get("method") for each in get_authentication_records(request, account)}
    return not methods.isdisjoint({"socialaccount", LINK})


def missing_operator() -> str:
    """Return why signing in cannot be left to the providers yet, or an empty string."""
    keys = [each.key for each in config.current().oidc_providers]
    operators = Account.objects.filter(role=Account.Role.OPERATOR, is_active=True, deleted_at=None)
    if not is_required() or SocialAccount.objects.filter(provider__in=keys, user__in=operators).exists():
        return ""
    return (
        "MUNIMENT_SIGN_IN=providers would lock every operator out: none has signed in at an identity provider yet."
        " Start with MUNIMENT_SIGN_IN=all, sign in at the provider, make that account an operator with muniment user"
        " role, or map a group to operators, and then set it again."
    )


class OnlyProviders:
    """Middleware: takes an account as signed out if its session began without a provider."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if is_required():
            request.user = SimpleLazyObject(functools.partial(_permitted, request, request.user))  # type: ignore[assignment]  # as Django does
        return self._get_response(request)


def _permitted(request: HttpRequest, known: object) -> Account | AnonymousUser:
    if isinstance(known, Account) and came_by_provider(request, known):
        return known
    visitor = AnonymousUser()
    vars(request)["_cached_user"] = visitor  # Django's, which tells the pages' menu
    return visitor


class LinkTokens(PasswordResetTokenGenerator):
    """Secrets of sign-in links: each is good once, because a sign-in changes what it is made of."""

    key_salt = "muniment.accounts.identities.only.LinkTokens"

    def check_token(self, user: Account | None, token: str | None) -> bool:
        """Return whether *token* is of this account, unused and at most :data:`LINK_LASTS_S` old."""
        if not super().check_token(user, token) or token is None:
            return False
        made_at = base36_to_int(token.split("-")[0])
        return self._num_seconds(self._now()) - made_at <= LINK_LASTS_S


link_tokens: Final = LinkTokens()


def sign_in_link(actor: Actor, email: str) -> str:
    """
    Return the path of a link that signs the account in once; second factors are still asked for.

    Raises:
        NotFound: there is no such account.
    """
    require_operator(actor)
    account = find_account(email)
    return f"/accounts/link/?account={account.pk}&token={link_tokens.make_token(account)}"
