"""Confirm an identity at the identity provider or by a mailed code; the other ways have allauth's pages."""

import logging
from typing import Any, cast

from allauth.account.adapter import get_adapter
from allauth.account.forms import ConfirmLoginCodeForm
from allauth.account.internal.flows.reauthentication import resume_request
from allauth.account.mixins import NextRedirectMixin
from allauth.core import ratelimit
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from django.views.generic.edit import FormView

from muniment.accounts import identity_providers
from muniment.accounts.security.step_up import MailedCode
from muniment.kernel.json import JSONObject
from muniment.web.requests.access import account_of
from muniment.web.requests.security_headers import without_form_action

log = logging.getLogger(__name__)


class _Confirm(NextRedirectMixin, FormView):  # type: ignore[misc, type-arg]  # allauth ships no types; Django has no generics
    """A page like those of allauth's confirmation: one of the account's ways, limited by account."""

    def dispatch(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        """Lead to another page if the account cannot confirm here."""
        ways = _ways(request)
        if request.path not in {way["url"] for way in ways}:
            return HttpResponseRedirect(self.passthrough_next_url(ways[0]["url"]))
        refusal = ratelimit.consume_or_429(request, action="reauthenticate", user=request.user)
        if refusal is not None:
            return cast("HttpResponse", refusal)
        return super().dispatch(request, *args, **options)

    def get_default_success_url(self) -> str:
        return str(get_adapter().get_login_redirect_url(self.request))

    def form_valid(self, form: Form) -> HttpResponse:
        """Continue the form that waited for the confirmation, or where it began."""
        return resume_request(self.request) or super().form_valid(form)

    def get_context_data(self, **context: Any) -> JSONObject:
        """Add the account's other ways."""
        others = []
        for way in _ways(self.request):
            if way["url"] != self.request.path:
                others.append({**way, "url": self.passthrough_next_url(way["url"])})
        others.sort(key=lambda way: str(way["description"]))
        return {**super().get_context_data(**context), "reauthentication_alternatives": others}

    def _again(self) -> HttpResponse:
        return HttpResponseRedirect(self.passthrough_next_url(self.request.path))


class ByProvider(_Confirm):
    """Leads to the identity provider, which asks the person to sign in again."""

    form_class = Form
    template_name = "account/reauthenticate_provider.html"

    def dispatch(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        """Let the form lead to the provider: some browsers apply form-action to the redirect that follows it."""
        response = super().dispatch(request, *args, **options)
        response["Content-Security-Policy"] = without_form_action()
        return response

    def form_valid(self, form: Form) -> HttpResponse:  # noqa: ARG002 - it has no fields
        try:
            return identity_providers.send_to_confirm(self.request, account_of(self.request), self.get_next_url())
        except (identity_providers.ProviderAway, OSError, KeyError) as error:  # no answer, or one of another form
            log.warning("identity provider unreachable: %s", type(error).__name__)
            messages.error(self.request, gettext("The identity provider can't be reached. Try again in a minute."))
            return self._again()

    def get_context_data(self, **context: Any) -> JSONObject:
        """Add the provider's name."""
        provider = identity_providers.provider_of(self.request, account_of(self.request))
        return {**super().get_context_data(**context), "provider_name": provider.name}


class ByEmail(_Confirm):
    """Mails a code, and asks for it."""

    form_class = ConfirmLoginCodeForm
    template_name = "account/reauthenticate_email.html"

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Mail a code, or check the one that was entered."""
        if request.POST.get("do") != "send" and self._code is not None:
            return super().post(request, *args, **options)
        if MailedCode.begin(request, account_of(request)) is None:
            messages.error(request, gettext("Too many codes were requested. Try again in a minute."))
        return self._again()

    @property
    def _code(self) -> MailedCode | None:
        return MailedCode.resume(self.request, account_of(self.request))

    def get_form_kwargs(self) -> JSONObject:
        """Add the expected code."""
        waiting = self._code
        code = waiting.code if waiting else None
        return {**super().get_form_kwargs(), "code": code}

    def form_valid(self, form: Form) -> HttpResponse:
        """Record the confirmation and continue."""
        waiting = self._code
        if waiting is None:
            return self._again()
        waiting.finish()
        return super().form_valid(form)

    def form_invalid(self, form: Form) -> HttpResponse:
        """Count the attempt; after the last one a new code is needed."""
        waiting = self._code
        if waiting is not None and waiting.record_invalid_attempt():
            return super().form_invalid(form)
        messages.error(self.request, gettext("That code was wrong too often. Request a new code."))
        return self._again()

    def get_context_data(self, **context: Any) -> JSONObject:
        """Add the address, and whether a code is on its way to it."""
        shown = {"email": account_of(self.request).email, "is_sent": self._code is not None}
        return {**super().get_context_data(**context), **shown}


def _ways(request: HttpRequest) -> list[JSONObject]:
    """Return the account's ways to confirm, the preferred one first; there is always one."""
    ways: list[JSONObject] = get_adapter().get_reauthentication_methods(request.user)
    return ways


by_provider = login_required(ByProvider.as_view())
by_email = login_required(ByEmail.as_view())
