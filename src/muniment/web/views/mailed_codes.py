"""
Pages that ask for a mailed code, with a button that sends another one: sign-up, sign-in, and a new password.

They are allauth's, which has no limit in time: here half a minute lies between two codes, a process sends four at most,
and a new code lasts as long as the first one.
"""

import math
import time
from typing import Any, Final

from allauth.account.views import (
    ConfirmEmailVerificationCodeView,
    ConfirmLoginCodeView,
    ConfirmPasswordResetCodeView,
)
from allauth.core.exceptions import RateLimited
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, ngettext

from muniment.kernel.json import JSONObject

PAUSE_S: Final = 30
MAX_AGAIN: Final = 3
"""Maximum number of further codes that a process sends after the first one."""
SENT_AT: Final = "sent_at"


class _SendsAgain:
    """Sends another code when the form asks for it."""

    request: HttpRequest
    _process: Any

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Send another code, or check the one that was entered."""
        if request.POST.get("action") != "resend":
            checked: HttpResponse = super().post(request, *args, **options)  # type: ignore[misc]  # allauth's view
            return checked
        self._send_again()
        return HttpResponseRedirect(self.passthrough_next_url(request.path))  # type: ignore[attr-defined]  # allauth's

    def _send_again(self) -> None:
        state, wait_s = self._process.state, self._wait_s()
        if wait_s:
            words = ngettext(
                "You can request another code in %(count)d second.",
                "You can request another code in %(count)d seconds.",
                wait_s,
            )
            messages.error(self.request, words % {"count": wait_s})
        elif state["resend_count"] >= MAX_AGAIN:
            messages.error(self.request, gettext("No more codes can be sent now. Start again in a few minutes."))
        else:
            state["at"] = state[SENT_AT] = time.time()
            try:
                self._resend()
            except RateLimited:
                messages.error(self.request, gettext("Too many codes were requested. Try again in a minute."))
            else:
                messages.success(self.request, gettext("We sent a new code. Earlier codes no longer work."))

    def _resend(self) -> None:
        self._process.resend()

    def _wait_s(self) -> int:
        """Return in how many seconds another code can be sent; 0 for now."""
        state = self._process.state
        waited_s: float = time.time() - state.get(SENT_AT, state["at"])
        if waited_s < 0:  # the clock was set back
            return PAUSE_S
        return max(0, math.ceil(PAUSE_S - waited_s))

    def get_context_data(self, **context: Any) -> JSONObject:
        """Add whether and when another code can be sent."""
        shown: JSONObject = super().get_context_data(**context)  # type: ignore[misc]  # allauth's view
        can_resend = self._process.state["resend_count"] < MAX_AGAIN
        wait_s = self._wait_s() if can_resend else 0
        return {**shown, "can_resend": can_resend, "wait_s": wait_s}


class _OfEmailAddress(_SendsAgain, ConfirmEmailVerificationCodeView):  # type: ignore[misc]  # allauth ships no types
    """Asks for the code that proves an email address."""


class _OfSignIn(_SendsAgain, ConfirmLoginCodeView):  # type: ignore[misc]  # allauth ships no types
    """Asks for the code that signs in."""


class _OfPassword(_SendsAgain, ConfirmPasswordResetCodeView):  # type: ignore[misc]  # allauth ships no types
    """Asks for the code that allows a new password."""

    def _resend(self) -> None:
        if self._process.user:  # otherwise the first message said that there is no account
            self._process.send()
        self._process.record_resend()
        self._process.persist()


of_email_address = _OfEmailAddress.as_view()
of_sign_in = _OfSignIn.as_view()
of_password = _OfPassword.as_view()
