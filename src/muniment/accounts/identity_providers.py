"""
Identity providers of organizations: roles by group, sign-in only there, and confirmation there.

The groups set the role at each sign-in. A provider without groups for roles changes none. With them, a person in none
of the groups loses the roles that it gives, and keeps any other.

MUNIMENT_SIGN_IN=providers lets people sign in only at providers. However an account signs in, allauth asks the
adapter before it does; and a session that began another way counts as signed out. Only a link from the command line
lets an account in without a provider.
"""

import functools
import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.account.internal.flows.reauthentication import resume_request
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers import registry as provider_kinds
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.http import base36_to_int
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.models import Account
from muniment.accounts.operations import find_account, require_operator, set_role
from muniment.accounts.security import step_up
from muniment.accounts.sign_up import configured_provider, is_open_at
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import marked
from muniment.kernel.problems import Unavailable
from muniment.languages import writing
from muniment.outbound.deadlines import Service, within
from muniment.setting_values import Provider
from muniment.store.database import patience

ANSWER_S: Final = 8.0
"""Seconds for one request to a provider in all; each wait for a part of its answer ends after five."""
SILENT_AFTER_S: Final = 4.0
_REQUESTS: Final = threading.BoundedSemaphore(16)
MOST_GROUPS: Final = 5_000
"""A person may be in this many; of more, the first count."""


def set_role_from(sociallogin: SocialLogin, account: Account) -> None:
    """Set the role of an account by the claims of its sign-in, which the audit log shows."""
    provider = configured_provider(sociallogin)
    if provider is None or not provider.roles:
        return
    role = role_for(provider, sociallogin.account.extra_data or {}, account.role)
    if role != account.role:
        account.role = set_role(SYSTEM, account.email, role).role


def role_for(provider: Provider, claims: JSONObject, present: str) -> str:
    """
    Return the role by the groups of an ID token or of the user information.

    Args:
        claims: both, by allauth's names id_token and userinfo.
        present: the role until now.
    """
    sources = (claims.get("id_token"), claims.get("userinfo"))
    groups = {group for source in sources for group in _groups(source, provider.role_claim)}
    for role, names in provider.roles:  # operators first
        if not groups.isdisjoint(names):
            return role
    return "owner" if present in dict(provider.roles) else present


def _groups(source: Any, claim: str) -> list[str]:
    """Return the groups in *claim*, which is the name of a member or a path of names with dots between them."""
    if isinstance(source, dict) and claim in source:
        value = source.get(claim)
    else:
        value = _at(source, claim.split("."))
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return []
    return [group for group in value[:MOST_GROUPS] if isinstance(group, str)]


def _at(value: Any, names: list[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


LINK: Final = "link"
"""The method of a sign-in by a link from the command line."""
LINK_LASTS_S: Final = 15 * 60


def are_required() -> bool:
    return config.current().sign_in == "providers"


def came_by_provider(request: HttpRequest, account: Account) -> bool:
    """Return whether the session began at a provider, or with a link."""
    methods = {each.get("method") for each in get_authentication_records(request, account)}
    return not methods.isdisjoint({"socialaccount", LINK})


def missing_operator() -> str:
    """Return why signing in cannot be left to the providers yet, or an empty string."""
    keys = [each.key for each in config.current().oidc_providers]
    operators = Account.objects.filter(role=Account.Role.OPERATOR, is_active=True, deleted_at=None)
    if not are_required() or SocialAccount.objects.filter(provider__in=keys, user__in=operators).exists():
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
        if are_required():
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

    key_salt = "muniment.accounts.identity_providers.LinkTokens"

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


PAGE: Final = "confirm_by_provider"
_STEP_UP: Final = "step_up"
log = logging.getLogger(__name__)


def provider_of(request: HttpRequest, account: Account) -> Any:
    """Return the identity provider that the account signs in at, if it is still configured."""
    for identity in SocialAccount.objects.filter(user=account).order_by("pk"):
        try:
            return get_adapter().get_provider(request, provider=identity.provider)
        except SocialApp.DoesNotExist:
            continue
    return None


def send_to_confirm(request: HttpRequest, account: Account, next_url: str | None) -> HttpResponse:
    """
    Redirect to the account's provider, which is asked to authenticate the person again.

    Raises:
        OSError: the provider cannot be reached.
        KeyError: its metadata is incomplete.

    Source: OpenID Connect Core 1.0, section 3.1.2.1: with max_age, the provider must state auth_time.
    """
    provider = provider_of(request, account)
    return provider.redirect(  # type: ignore[no-any-return]  # allauth ships no types
        request,
        process=AuthProcess.REDIRECT,
        next_url=next_url,
        data={_STEP_UP: str(account.pk)},
        auth_params={**provider.get_auth_params(), "prompt": "login", "max_age": str(step_up.VALID_S)},
    )


class ProviderAway(Unavailable, OAuth2Error):  # type: ignore[misc]  # noqa: N818 - allauth ships no types; it is a state
    """An identity provider does not answer; for allauth, the error that it expects."""

    def __init__(self) -> None:
        message = marked("The identity provider does not answer; you were not signed in.")
        super().__init__(message, marked("Try again in a moment, or sign in another way."), retry_after_s=5)


@functools.lru_cache(maxsize=64)
def _service(host: str) -> Service:
    return Service(f"the identity provider at {host}", silent_after_s=SILENT_AFTER_S)


def _answer_in_time(request: Callable[..., Any], method: str, url: str, **options: Any) -> Any:
    """Return the answer to a request; raise ProviderAway if there is none in time."""
    ask = functools.partial(request, method, url, **options)
    try:
        with patience.elsewhere(), _service(urlsplit(url).netloc).asked():
            return within(ANSWER_S, ask, _REQUESTS, late="the identity provider took too long")
    except OSError as error:  # also every exception of requests, and a TimeoutError
        host = urlsplit(url).netloc
        log.warning("the identity provider at %s does not answer: %s", host, type(error).__name__)
        raise ProviderAway from error


class IdentityAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Reads when the person authenticated, and ends a confirmation where it began."""

    def list_providers(self, request: HttpRequest) -> list[Any]:
        """Return the providers; without any kind of them, do not ask the database for those of each kind."""
        return super().list_providers(request) if provider_kinds.get_class_list() else []

    def get_requests_session(self) -> Any:
        """Return a session whose requests end in time: a person waits for the page, and so does a thread."""
        session = super().get_requests_session()
        session.request = functools.partial(_answer_in_time, session.request)
        return session

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:  # noqa: ARG002 - allauth's signature
        return is_open_at(sociallogin)

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: JSONObject) -> Account:
        """Return the account that a sign-in would create, after its answer was checked."""
        from muniment.accounts import provider_answers

        provider_answers.require_one_person(sociallogin)
        provider_answers.read_verified(sociallogin)
        account: Account = super().populate_user(request, sociallogin, data)
        return account

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """
        Keep the claims of the ID token for the sign-in; finish a confirmation.

        An identity is connected only after one. allauth would keep it and connect it at the next confirmation, also if
        someone else had left it in the session.
        """
        setattr(request, step_up.CLAIMS, _claims(sociallogin))
        if asked := _step_up_of(sociallogin.state):
            raise ImmediateHttpResponse(_confirmed(request, sociallogin, asked))
        if sociallogin.state.get("process") == AuthProcess.CONNECT and not step_up.is_confirmed(request):
            messages.info(request, gettext("Nothing was connected yet. Confirm that it's you, then connect again."))
            where = urlencode({"next": reverse("socialaccount_connections")})
            raise ImmediateHttpResponse(HttpResponseRedirect(f"{reverse('account_reauthenticate')}?{where}"))

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: JSONObject | None = None,
    ) -> None:
        """Return to the page of the confirmation, which offers the other ways."""
        state = (extra_context or {}).get("state") or {}
        if _step_up_of(state):
            log.info("a confirmation at the identity provider failed: %s", error or type(exception).__name__)
            said = gettext("%(provider)s did not confirm your sign-in. Try again.") % {"provider": provider.name}
            raise ImmediateHttpResponse(_refused(request, said, state.get("next")))


def _step_up_of(state: JSONObject) -> str:
    data = state.get("data")
    return str(data.get(_STEP_UP, "")) if isinstance(data, dict) else ""


def _claims(sociallogin: SocialLogin) -> JSONObject:
    """Return the claims of the ID token, if it is of the same person as the rest of the answer."""
    found = (sociallogin.account.extra_data or {}).get("id_token")
    if not isinstance(found, dict) or str(found.get("sub", "")) != sociallogin.account.uid:
        return {}
    return found


def _confirmed(request: HttpRequest, sociallogin: SocialLogin, asked: str) -> HttpResponse:
    where, user = sociallogin.state.get("next"), request.user
    if not isinstance(user, Account) or str(user.pk) != asked:
        return HttpResponseRedirect(f"{reverse('account_login')}?{urlencode({'next': where or '/manage'})}")
    name = sociallogin.provider.name if sociallogin.provider else gettext("The identity provider")
    if sociallogin.user != user:
        said = gettext("At %(provider)s, you signed in as someone else. Use the identity of this account.")
        return _refused(request, said % {"provider": name}, where)
    moment = step_up.stated_moment(getattr(request, step_up.CLAIMS))
    if moment is None:
        log.warning("the identity provider states no auth_time in its ID tokens")
        said = gettext("%(provider)s did not say when you signed in there, so we can't rely on it.")
        return _refused(request, said % {"provider": name}, where)
    if not step_up.is_recent(moment):
        said = gettext(
            "%(provider)s did not ask you to sign in again: it says that you signed in on %(when)s. "
            "Sign out there, then try again."
        )
        return _refused(request, said % {"provider": name, "when": _day(moment)}, where)
    record_authentication(
        request,
        user,
        "socialaccount",
        provider=sociallogin.account.provider,
        uid=sociallogin.account.uid,
        stated_at=moment,
        reauthenticated=True,
    )
    # allauth continues a form that waited, if it was sent to the address that this request leads to.
    request.GET = QueryDict(urlencode({"next": where} if where else {}))
    return resume_request(request) or HttpResponseRedirect(str(settings.LOGIN_REDIRECT_URL))


def _refused(request: HttpRequest, said: str, where: str | None) -> HttpResponse:
    messages.error(request, said)
    return HttpResponseRedirect(reverse(PAGE) + (f"?{urlencode({'next': where})}" if where else ""))


def _day(moment: float) -> str:
    return f"{writing.moment(datetime.fromtimestamp(moment, UTC))} UTC"
