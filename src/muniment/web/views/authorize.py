"""
The authorization endpoint: the consent page, and the redirect with the user's answer.

The rules of clients, redirects and grants are in `muniment.oauth`.
"""

from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from muniment.accounts import scopes
from muniment.kernel.actor import ALL_SCOPES, SCOPES
from muniment.kernel.json import JSONObject
from muniment.oauth import clients, grants, redirects, resources
from muniment.oauth.client_documents import is_document_address
from muniment.oauth.errors import Refusal
from muniment.oauth.models import Client
from muniment.web.context import address
from muniment.web.requests.access import actor_of, confirm_first
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.security_headers import without_form_action
from muniment.web.views.oauth import parameters_once

# Without form-action: some browsers apply it to the redirect to the app that follows the form.
_CONSENT_POLICY: Final = without_form_action()


@require_http_methods(["GET", "HEAD", "POST"])
def authorize(request: HttpRequest) -> HttpResponse:
    """
    Ask the signed-in user for consent, and redirect to the app.

    The page posts to its own address, so the answer is checked like the request. Errors show on a page until client
    and redirect URI are verified; after that see `_fault`.
    """
    try:
        asked = _query(request)
        client = _client(request, asked)
        target = clients.redirect_of(client, asked.get("redirect_uri", "")) if client else ""
    except Refusal as refusal:
        return _shown(request, refusal)
    if client is None:
        return _sign_in(request)
    try:
        wanted = _wanted(request, asked)
    except Refusal as refusal:
        return _fault(request, target, asked, refusal)
    if not request.user.is_authenticated:
        return _sign_in(request)
    show = _answered if request.method == "POST" else _consent
    return show(request, client, target, asked, wanted)


def _client(request: HttpRequest, asked: dict[str, str]) -> Client | None:
    """Return the client; None if its metadata document would be fetched for a visitor who is not signed in."""
    identifier, is_signed_in = asked.get("client_id", ""), bool(request.user.is_authenticated)
    client = clients.find_client(identifier, fetch_for=request.user.pk if is_signed_in else None)
    if client is None and (is_signed_in or not is_document_address(identifier)):
        raise Refusal("invalid_client", "Unknown client_id. The app must register again.")
    return client


def _query(request: HttpRequest) -> dict[str, str]:
    query = request.META.get("QUERY_STRING", "")
    try:
        return parameters_once(parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=50))
    except ValueError:
        raise Refusal("invalid_request", "The query string cannot be parsed.") from None


def _wanted(request: HttpRequest, asked: dict[str, str]) -> JSONObject:
    """Validate the client's request (RFC 6749, section 4.1.1; RFC 7636, section 4.3; RFC 8707, section 2.1)."""
    if asked.get("response_type") != "code":
        error: Any = "unsupported_response_type" if asked.get("response_type") else "invalid_request"
        raise Refusal(error, "response_type must be code.")
    if asked.get("response_mode", "query") != "query":
        raise Refusal("invalid_request", "response_mode must be query.")
    base = address(request)
    return {
        "challenge": grants.check_challenge(asked.get("code_challenge", ""), asked.get("code_challenge_method", "")),
        "resource": resources.requested([asked.get("resource", "")], base) or resources.manage_server(base),
        "scopes": _scopes(asked.get("scope", "")),
    }


def _scopes(text: str) -> frozenset[str]:
    """Return the requested scopes: none means all, those of other standards are ignored (RFC 6749, section 3.3)."""
    asked = set(text.split()) - {"offline_access", "openid", "profile", "email"}
    if not asked:
        return ALL_SCOPES
    if not asked & ALL_SCOPES:
        raise Refusal("invalid_scope", f"Unknown scope. Use: {', '.join(SCOPES)}.")
    return ALL_SCOPES & asked


def _sign_in(request: HttpRequest) -> HttpResponse:
    return redirect("/accounts/login/?" + urlencode({"next": request.get_full_path()}))


def _consent(
    request: HttpRequest, client: Client, target: str, _asked: dict[str, str], wanted: JSONObject
) -> HttpResponse:
    """Show the consent page: the app, its redirect and its permissions. It is never skipped."""
    form_data(request, request.get_full_path())  # says that the identity was confirmed
    asked = scopes.in_order(wanted["scopes"])
    reading = scopes.in_order(wanted["scopes"] & scopes.READ_SCOPES)
    context = {
        "client_name": client.name or gettext("Unnamed app"),
        "client_home": clients.home_of(client),
        "goes_to": redirects.host(target),
        "redirect_uri": target,
        "scopes": [{"name": scope, "words": scopes.WORDS[scope], "reads": scope in reading} for scope in asked],
        "confirms": not wanted["scopes"] <= scopes.READ_SCOPES and not actor_of(request).confirmed,
        "may_only_read": bool(reading) and reading != asked,
        "account": request.user,
    }
    return _private(render(request, "oauth/consent.html", context))


def _answered(
    request: HttpRequest, client: Client, target: str, asked: dict[str, str], wanted: JSONObject
) -> HttpResponse:
    """Redirect with the user's answer (RFC 6749, sections 4.1.2 and 4.1.2.1)."""
    if request.POST.get("answer") != "allow":
        return _back(request, target, asked, error="access_denied", error_description="The user declined the request.")
    permitted = wanted["scopes"]
    if request.POST.get("access") == "read":
        permitted &= scopes.READ_SCOPES
        if not permitted:
            words = "The user agreed to reading only, which the app did not request."
            return _back(request, target, asked, error="access_denied", error_description=words)
    # The page is shown again afterwards, as the app asked for it: consent is never given by another form.
    if not permitted <= scopes.READ_SCOPES and (asked_first := confirm_first(request, request.get_full_path())):
        return asked_first
    code = grants.issue_code(
        actor_of(request),
        client,
        redirect_uri=target,
        challenge=wanted["challenge"],
        permitted=permitted,
        resource=wanted["resource"],
    )
    return _back(request, target, asked, code=code)


def _back(request: HttpRequest, target: str, asked: dict[str, str], **answer: str) -> HttpResponse:
    """Redirect to the verified URI with ``state`` and ``iss`` (RFC 9207, section 2)."""
    state = {"state": asked["state"]} if "state" in asked else {}
    location = redirects.answer(target, {**answer, **state, "iss": address(request)})
    return _private(HttpResponse(status=303, headers={"Location": location}))


def _fault(request: HttpRequest, target: str, asked: dict[str, str], refusal: Refusal) -> HttpResponse:
    """
    Redirect to an app on the device with the error, if a person is signed in; show it on a page otherwise.

    Anyone can register a client with any website, so the page leaves it to the person whether to go there.

    Source: RFC 6749, section 4.1.2.1; RFC 9700, section 4.11.2.
    """
    if not request.user.is_authenticated:
        return _shown(request, refusal, reason="visitor")
    back = _back(request, target, asked, error=refusal.error, error_description=refusal.description)
    if redirects.is_app(target):
        return back
    return _shown(request, refusal, reason="website", back=back["Location"], goes_to=redirects.host(target))


def _shown(request: HttpRequest, refusal: Refusal, **context: str) -> HttpResponse:
    status = 429 if refusal.error == "temporarily_unavailable" else 400
    context |= {"error": refusal.error, "description": refusal.description}
    return _private(render(request, "oauth/refused.html", context, status=status))


def _private(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    response["Content-Security-Policy"] = _CONSENT_POLICY
    return response
