"""Confirm an identity at the identity provider or by a mailed code; the other ways have allauth's pages."""

import logging
from typing import Any

from allauth.account.forms import ConfirmLoginCodeForm
from allauth.account.views import BaseReauthenticateView
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.accounts.confirming import identity_provider
from muniment.accounts.confirming.mailed_code import MailedCode
from muniment.kernel.json import JSONObject
from muniment.web.requests.access import account_of
from muniment.web.requests.security_headers import without_form_action

log = logging.getLogger(__name__)


class _Confirm(BaseReauthenticateView):  # type: ignore[misc]  # allauth ships no types
    """A page of allauth's confirmation: one of the account's ways, limited by account, back to where it began."""

    def _again(self) -> HttpResponse:
        return HttpResponseRedirect(self.passthrough_next_url(self.request.path))


class ByProvider(_Confirm):
    """Leads to the identity provider, which asks the person to sign in again."""

    form_class = Form
    template_name = "account/reauthenticate_provider.html"

    def dispatch(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Let the form lead to the provider: some browsers apply form-action to the redirect that follows it."""
        response: HttpResponse = super().dispatch(request, *args, **options)
        response["Content-Security-Policy"] = without_form_action()
        return response

    def form_valid(self, form: Form) -> HttpResponse:  # noqa: ARG002 - it has no fields
        try:
            return identity_provider.send_to_confirm(self.request, account_of(self.request), self.get_next_url())
        except (OSError, KeyError) as error:
            log.warning("identity provider unreachable: %s", type(error).__name__)
            messages.error(self.request, gettext("The identity provider can't be reached. Try again in a minute."))
            return self._again()

    def get_context_data(self, **context: Any) -> JSONObject:
        """Add the provider's name."""
        provider = identity_provider.provider_of(self.request, account_of(self.request))
        return {**super().get_context_data(**context), "provider_name": provider.name}


class ByEmail(_Confirm):
    """Mails a code, and asks for it."""

    form_class = ConfirmLoginCodeForm
    template_name = "account/reauthenticate_email.html"

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Mail a code, or check the one that was entered."""
        if request.POST.get("do") != "send" and self._code is not None:
            response: HttpResponse = super().post(request, *args, **options)
            return response
        if MailedCode.begin(request, account_of(request)) is None:
            messages.error(request, gettext("Too many codes were requested. Try again in a minute."))
        return self._again()

    @property
    def _code(self) -> MailedCode | None:
        return MailedCode.resume(self.request, account_of(self.request))

    def get_form_kwargs(self) -> JSONObject:
        """Add the expected code."""
        waiting = self._code
        return {**super().get_form_kwargs(), "code": waiting.code if waiting else None}

    def form_valid(self, form: Form) -> HttpResponse:
        """Record the confirmation and continue."""
        waiting = self._code
        if waiting is None:
            return self._again()
        waiting.finish()
        response: HttpResponse = super().form_valid(form)
        return response

    def form_invalid(self, form: Form) -> HttpResponse:
        """Count the attempt; after the last one a new code is needed."""
        waiting = self._code
        if waiting is not None and waiting.record_invalid_attempt():
            response: HttpResponse = super().form_invalid(form)
            return response
        messages.error(self.request, gettext("That code was wrong too often. Request a new code."))
        return self._again()

    def get_context_data(self, **context: Any) -> JSONObject:
        """Add the address, and whether a code is on its way to it."""
        shown = {"email": account_of(self.request).email, "is_sent": self._code is not None}
        return {**super().get_context_data(**context), **shown}


by_provider = login_required(ByProvider.as_view())
by_email = login_required(ByEmail.as_view())
