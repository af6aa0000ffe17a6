"""Idempotent forms: a form that is submitted twice acts once."""

import functools
import secrets
from typing import Any

from django.contrib import messages
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.web.requests.access import View, page_of_form

ONCE_S = 3600


def fresh_token() -> str:
    """Return a new token that makes a form idempotent."""
    return secrets.token_urlsafe(12)


def once(view: View) -> View:
    """Process a form with a ``once`` token a single time; redirect a duplicate to the first one's target."""

    @functools.wraps(view)
    def act(request: HttpRequest, **where: Any) -> HttpResponse:
        token = request.POST.get("once", "")
        if request.method != "POST" or not token:
            return view(request, **where)
        key = f"once:{request.user.pk}:{token[:40]}"
        cache = caches["forms"]
        # While the first is in progress, a duplicate leads to the page of the form.
        if not cache.add(key, page_of_form(request), ONCE_S):
            went = str(cache.get(key) or "/manage")
            messages.info(request, gettext("You already submitted this form."))
            return HttpResponseRedirect(went)
        try:
            response = view(request, **where)
        except BaseException:
            cache.delete(key)
            raise
        if response.status_code in {302, 303}:
            cache.set(key, response["Location"], ONCE_S)
        else:
            cache.delete(key)  # a form with errors is submitted again
        return response

    return act
