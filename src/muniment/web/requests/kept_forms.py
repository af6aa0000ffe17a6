"""
Forms kept in the session while their sender signs in or confirms their identity.

A kept form belongs to one account and one page, so that two tabs do not lose each other's.
"""

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject

KEPT_FORMS = "kept_forms"
MAX_KEPT_BYTES = 200_000
"""Of all kept forms of a session together; the oldest are dropped."""
MAX_KEPT_FORMS = 8
_FORMER = "kept_form"
"""Where earlier versions kept the one form of a session."""


def keep_form(request: HttpRequest, page: str, *, author: str | None, confirming: bool = False) -> bool:
    """
    Keep the submitted form for *page*; return whether there was something to keep.

    Args:
        author: the key of the account that sent it; None if that is unknown.
        confirming: the person is confirming their identity, and is told afterwards that nothing was changed yet.
    """
    body = request.POST.copy()
    body.pop("csrfmiddlewaretoken", None)
    body.pop("once", None)
    typed = body.urlencode()
    if len(typed) > MAX_KEPT_BYTES:
        return False
    kept = {where: form for where, form in _kept(request).items() if where != page}
    kept[page] = {"typed": typed, "author": author, "confirming": confirming}
    while len(kept) > MAX_KEPT_FORMS or sum(len(form["typed"]) for form in kept.values()) > MAX_KEPT_BYTES:
        del kept[next(iter(kept))]
    request.session[KEPT_FORMS] = kept
    return bool(typed)


def form_data(request: HttpRequest, page: str = "") -> QueryDict | None:
    """Return the submitted form or, once, the form that was kept for *page*, by default this address."""
    if request.method == "POST":
        return request.POST
    where, kept = page or request.path, _kept(request)
    form = kept.get(where)
    if request.method != "GET" or form is None:
        return None
    request.session[KEPT_FORMS] = {other: each for other, each in kept.items() if other != where}
    if form["confirming"]:
        messages.info(request, gettext("Thanks for confirming. Nothing was changed yet: submit again to continue."))
    return QueryDict(form["typed"]) if form["typed"] else None


def forget_anothers_forms(request: HttpRequest) -> None:
    """Drop kept forms of another account, or of a version that did not store the account."""
    kept = _kept(request)
    own = {where: form for where, form in kept.items() if form.get("author", "") in {None, str(request.user.pk)}}
    if len(own) < len(kept):
        request.session[KEPT_FORMS] = own


def _kept(request: HttpRequest) -> JSONObject:
    former = request.session.pop(_FORMER, None)
    if former:
        form = {name: former[name] for name in ("typed", "author") if name in former}
        request.session.setdefault(KEPT_FORMS, {})[former["path"]] = {**form, "confirming": False}
    found = request.session.get(KEPT_FORMS)
    return dict(found) if found else {}
