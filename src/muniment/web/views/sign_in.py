"""The sign-in page: the same for every visitor without cookies of this site, except for the token of its forms."""

import re
from typing import Any, Final

from allauth.account import views
from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.socialaccount.models import SocialApp
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.identity_providers import LINK, link_tokens
from muniment.accounts.models import Account
from muniment.kernel.problems import NotFound
from muniment.web import context
from muniment.web.requests.page_cache import kept_part
from muniment.web.requests.pagination import whole_number

_TOKEN: Final = re.compile(r'(?<=name="csrfmiddlewaretoken" value=")[A-Za-z0-9]+')
_PLACE: Final = "{token}"


def sign_in(request: HttpRequest) -> HttpResponseBase:
    """Show the form, or sign in; what a visitor brings along may change the page, so only that of others is kept."""
    has_nothing = request.COOKIES.keys() <= {settings.CSRF_COOKIE_NAME} and not request.META.get("QUERY_STRING")
    if request.method != "GET" or not has_nothing or get_adapter().is_ajax(request):
        return _asked(request)
    providers = []
    for kind in settings.SOCIALACCOUNT_PROVIDERS.values():
        providers += [app["name"] for app in kind["APPS"]]
    asked = config.current()
    shown = f"{context.site(request)} {providers} {asked.signup} {asked.sign_in}"  # what it depends on
    page = kept_part(f"sign-in {shown}", lambda: _rendered(request))
    response = HttpResponse(page.replace(_PLACE, get_token(request)))
    patch_vary_headers(response, ("Cookie",))
    add_never_cache_headers(response)
    return response


def by_link(request: HttpRequest) -> HttpResponseBase:
    """Show whose account a link of the command line signs in, or sign in."""
    number, token = whole_number(request.GET.get("account", ""), 15), request.GET.get("token", "")
    account = None
    if number is not None:
        account = Account.objects.filter(pk=number, is_active=True, deleted_at=None).first()
    if account is None or not link_tokens.check_token(account, token):
        messages.error(request, gettext("This sign-in link was used, or is older than 15 minutes. Make a new one."))
        return HttpResponseRedirect(reverse("account_login"))
    if request.method != "POST":
        response = render(request, "account/link.html", {"address": account.email})
        add_never_cache_headers(response)
        return response
    record_authentication(request, account, LINK)
    answer: HttpResponseBase = perform_login(request, account)
    return answer


def by_provider(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Sign in, or confirm an identity, with the answer of a provider to which the visitor was sent."""
    if not settings.SOCIALACCOUNT_PROVIDERS:
        raise NotFound(gettext("This page doesn't exist."), gettext("Check the address."))
    from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView

    from muniment.accounts.provider_answers import ProviderAnswers  # its HTTP client takes long to import

    try:
        answer: HttpResponseBase = OAuth2CallbackView.adapter_view(ProviderAnswers(request, provider_id))(request)
    except SocialApp.DoesNotExist:
        raise NotFound(gettext("This page doesn't exist."), gettext("Check the address.")) from None
    return answer


def _asked(request: HttpRequest) -> HttpResponseBase:
    answer: HttpResponseBase = views.login(request)
    return answer


def _rendered(request: HttpRequest) -> str:
    """Return the page with a place for the token."""
    shown: Any = _asked(request)
    shown.render()
    return _TOKEN.sub(_PLACE, shown.content.decode())
