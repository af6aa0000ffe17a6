"""Sign-in and confirmation at the identity provider of the operators."""

import logging
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from allauth.account.internal.flows.login import record_authentication
from allauth.account.internal.flows.reauthentication import resume_request
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers import registry as provider_kinds
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext

from muniment.accounts.identities.sign_up import is_open_at
from muniment.accounts.models import Account
from muniment.accounts.security import step_up
from muniment.kernel.json import JSONObject
from muniment.languages import writing

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


class IdentityAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Reads when the person authenticated, and ends a confirmation where it began."""

    def list_providers(self, request: HttpRequest) -> list[Any]:
        """Return the providers; without any kind of them, do not ask the database for those of each kind."""
        return super().list_providers(request) if provider_kinds.get_class_list() else []

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:  # noqa: ARG002 - allauth's signature
        return is_open_at(sociallogin)

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: JSONObject) -> Account:
        """Return the account that a sign-in would create, after its answer was checked."""
        from muniment.accounts.identities import provider_answers

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
