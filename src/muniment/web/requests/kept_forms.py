"""
Forms kept for an hour while their account signs in again, confirms its identity, or leaves a page that refused them.

A kept form belongs to one account and one page, so that two tabs do not lose each other's. What a stranger sends is not
kept: whose form it is says the session, or the signed cookie of the account that this browser last signed in to.
"""

import json

from cryptography.fernet import InvalidToken
from django.contrib import messages
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext

from muniment.encryption import seal, unseal
from muniment.kernel.json import JSONObject

KEPT_S = 3600
MAX_KEPT_BYTES = 200_000
"""Maximum size of all kept forms of an account together; the oldest are dropped."""
MAX_KEPT_FORMS = 8
HINT_COOKIE = "kept_form"
"""Tells that there may be a kept form, so that other requests do not look for one. It proves nothing."""
_PURPOSE = "kept form"


def keep_form(request: HttpRequest, page: str, *, author: str, confirming: bool = False) -> bool:
    """
    Keep the submitted form for *page*; return whether there was something to keep.

    Args:
        author: the key of the account that sent it.
        confirming: the person is confirming their identity, and is told afterwards that nothing was changed yet.
    """
    body = request.POST.copy()
    body.pop("csrfmiddlewaretoken", None)
    body.pop("once", None)
    typed = body.urlencode()
    if len(typed) > MAX_KEPT_BYTES:
        return False
    kept = {where: form for where, form in _kept(author).items() if where != page}
    kept[page] = {"typed": typed, "confirming": confirming}
    while len(kept) > MAX_KEPT_FORMS or sum(len(form["typed"]) for form in kept.values()) > MAX_KEPT_BYTES:
        del kept[next(iter(kept))]
    _keep(author, kept)
    return bool(typed)


def forget_form(request: HttpRequest, page: str, *, author: str) -> None:
    """Drop the form that was kept for *page*, after it was saved."""
    if HINT_COOKIE not in request.COOKIES:
        return
    kept = _kept(author)
    if kept.pop(page, None) is not None:
        _keep(author, kept)


def tell(response: HttpResponse) -> HttpResponse:
    """Let the browser say, with its next requests, that there may be a kept form."""
    response.set_cookie(HINT_COOKIE, "1", max_age=KEPT_S, httponly=True, samesite="Lax")
    return response


def form_data(request: HttpRequest, page: str = "") -> QueryDict | None:
    """Return the submitted form or, once, the form that was kept for *page*, by default this address."""
    if request.method == "POST":
        return request.POST
    if request.method != "GET" or HINT_COOKIE not in request.COOKIES:
        return None
    where, author = page or request.path, str(request.user.pk)
    kept = _kept(author)
    form = kept.pop(where, None)
    if form is None:
        return None
    _keep(author, kept)
    if form["confirming"]:
        messages.info(request, gettext("Thanks for confirming. Nothing was changed yet: submit again to continue."))
    return QueryDict(form["typed"]) if form["typed"] else None


def _kept(author: str) -> JSONObject:
    sealed = caches["kept_forms"].get(_key(author))
    if sealed is None:
        return {}
    try:
        found: JSONObject = json.loads(unseal(sealed, _PURPOSE))
    except InvalidToken:
        return {}
    return found


def _keep(author: str, kept: JSONObject) -> None:
    if kept:
        caches["kept_forms"].set(_key(author), seal(json.dumps(kept).encode(), _PURPOSE), KEPT_S)
    else:
        caches["kept_forms"].delete(_key(author))


def _key(author: str) -> str:
    return f"kept:{author}"
