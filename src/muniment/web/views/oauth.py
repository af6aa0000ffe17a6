"""
HTTP endpoints of the authorization server, in the order of the RFCs.

OAuth 2.1 for public clients: codes with PKCE, rotating refresh tokens, one resource. The rules are in
`muniment.oauth`.
"""

import json
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from muniment.accounts import scopes
from muniment.accounts.security import origin
from muniment.kernel import fairness
from muniment.kernel.actor import ALL_SCOPES, SCOPES
from muniment.kernel.fairness import REGISTRATIONS_AN_HOUR
from muniment.kernel.http.addresses import rate_key
from muniment.kernel.http.representations import digest
from muniment.kernel.ids import now
from muniment.kernel.json import JSONError, JSONObject, read_json
from muniment.kernel.problems import NotFound, Unavailable
from muniment.kernel.texts import text_fault
from muniment.oauth import clients, grants, redirects, resources
from muniment.oauth.client_documents import is_document_address
from muniment.oauth.errors import Refusal
from muniment.oauth.models import Client
from muniment.registry_toml import applied
from muniment.store.database.retry import with_retry
from muniment.web.context import address
from muniment.web.requests.access import actor_of, confirm_first
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.security_headers import without_form_action

MAX_BODY_BYTES: Final = 64 << 10
MAX_VALUE_CHARACTERS: Final = 4_000
_CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Retry-After, WWW-Authenticate, X-Request-Id",
}
_PREFLIGHT: Final = {
    **_CORS,
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "
    "Mcp-Session-Id, Last-Event-ID, X-Request-Id",
    "Access-Control-Max-Age": "86400",
}


View = Callable[[HttpRequest], HttpResponse]


# Without form-action: some browsers apply it to the redirect to the app that follows the form.
_STATUSES: Final = {"temporarily_unavailable": 429, "invalid_client": 401}
"""The HTTP status of each error; all others are 400."""
_CONSENT_POLICY: Final = without_form_action()


def _endpoint(*methods: str) -> Callable[[View], View]:
    """Make an endpoint for apps and scripts: any origin, no cookies, OAuth error responses, no caching."""

    def wrap(view: View) -> View:
        allow = ", ".join((*methods, "OPTIONS"))

        @csrf_exempt
        @wraps(view)
        def answer(request: HttpRequest) -> HttpResponse:
            if request.method == "OPTIONS":
                headers = {**_PREFLIGHT, "Access-Control-Allow-Methods": allow, "Allow": allow}
                return HttpResponse(status=204, headers=headers)
            if request.method not in methods:
                response = _refused(Refusal("invalid_request", f"Use {' or '.join(methods)}."), status=405)
                response["Allow"] = allow
                return response
            try:
                return with_retry(view, request)
            except Refusal as refusal:
                return _refused(refusal)
            except Unavailable as problem:
                body = {"error": "temporarily_unavailable", "error_description": problem.message}
                return _json(body, int(problem.status), wait_s=int(problem.headers["Retry-After"]))

        return answer

    return wrap


def _json(body: JSONObject, status: int = 200, *, kept: str = "no-store", wait_s: int = 0) -> HttpResponse:
    headers = {**_CORS, "Cache-Control": kept}
    if wait_s:
        headers["Retry-After"] = str(wait_s)
    return HttpResponse(json.dumps(body, separators=(",", ":")), "application/json", status, headers=headers)


def _refused(refusal: Refusal, status: int = 0) -> HttpResponse:
    """Return an error response (RFC 6749, section 5.2; RFC 7591, section 3.2.2)."""
    body = {"error": refusal.error, "error_description": refusal.description}
    wait_s = 600 if refusal.error == "temporarily_unavailable" else 0
    response = _json(body, status or _STATUSES.get(refusal.error, 400), wait_s=wait_s)
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Basic realm="OAuth clients"'  # RFC 9110, section 15.5.2, requires a challenge
    return response


def _body(request: HttpRequest, error: Any = "invalid_request") -> bytes:
    declared = request.META.get("CONTENT_LENGTH") or "0"
    if not declared.isdigit() or int(declared) > MAX_BODY_BYTES:
        raise Refusal(error, f"The body is larger than {MAX_BODY_BYTES} bytes.")
    return request.body


def _form(request: HttpRequest) -> dict[str, str]:
    """Read a form (RFC 6749, section 3.2: no parameter twice); ``resource`` may repeat (RFC 8707, section 2)."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise Refusal("invalid_request", "Send application/x-www-form-urlencoded.")
    try:
        pairs = parse_qsl(_body(request).decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise Refusal("invalid_request", "The form cannot be parsed.") from None
    return parameters_once(pairs)


def parameters_once(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters by name; refuse a known one that is repeated (RFC 6749, section 3.1)."""
    parameters: dict[str, str] = {}
    for name, value in pairs:
        # RFC 8707 allows several resources; this server has one, so that naming it twice says nothing else.
        is_same_resource = name == "resource" and parameters.get(name) == value
        if name in parameters and name in _KNOWN and not is_same_resource:
            raise Refusal("invalid_request", f"{name} is repeated.")
        if len(value) > MAX_VALUE_CHARACTERS:
            raise Refusal("invalid_request", "A value has more than 4000 characters.")
        if text_fault(value):
            raise Refusal("invalid_request", "A value contains control characters or invalid Unicode.")
        parameters[name] = value
    return parameters


_KNOWN: Final = frozenset(
    {
        *("client_id", "code", "code_challenge", "code_challenge_method", "code_verifier", "grant_type"),
        *("redirect_uri", "refresh_token", "resource", "response_mode", "response_type", "scope", "state", "token"),
    }
)


@_endpoint("GET", "HEAD")
def authorization_server(request: HttpRequest) -> HttpResponse:
    """Describe this authorization server (RFC 8414, section 2; RFC 9207, section 3)."""
    base = address(request)
    return _json(
        {
            "issuer": base,
            "authorization_endpoint": f"{base}/oauth/authorize",
            "token_endpoint": f"{base}/oauth/token",
            "registration_endpoint": f"{base}/oauth/register",
            "revocation_endpoint": f"{base}/oauth/revoke",
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(clients.GRANT_TYPES),
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": list(SCOPES),
            "protected_resources": [resources.manage_server(base)],
            "service_documentation": f"{base}/connect",
        },
        kept="public, max-age=300",
    )


@_endpoint("GET", "HEAD")
def protected_resource(request: HttpRequest) -> HttpResponse:
    """Describe the owner-scoped tool server (RFC 9728, section 2). The public one is not protected and has none."""
    base = address(request)
    return _json(
        {
            "resource": resources.manage_server(base),
            "authorization_servers": [base],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": applied.registry_name(),
            "resource_documentation": f"{base}/connect",
        },
        kept="public, max-age=300",
    )


@csrf_exempt
def no_metadata(request: HttpRequest) -> HttpResponse:
    """Return 404 as JSON for any other well-known address: clients try several (service document, Errors)."""
    problem = NotFound(
        f"{request.path[:200]} does not exist.",
        "See /.well-known/mcp.json for the tool servers and /.well-known/oauth-authorization-server for sign-in.",
    )
    return _json(problem.to_wire(), int(problem.status))


@_endpoint("POST")
def register(request: HttpRequest) -> HttpResponse:
    """Register a client (RFC 7591, section 3.1)."""
    body = _body(request, "invalid_client_metadata")
    try:
        metadata = read_json(body)
    except JSONError:
        raise Refusal("invalid_client_metadata", "The body is not JSON.") from None
    if not isinstance(metadata, dict):
        raise Refusal("invalid_client_metadata", "The body is not a JSON object.")
    _, answer = clients.register_client(metadata, before_new=lambda: _hold_to_rate(request))
    return _json(answer, 201)


def _hold_to_rate(request: HttpRequest) -> None:
    """
    Count clients that are added, by client address, which the server has read from trusted proxies already.

    This process counts first, so that a flood writes nothing; then all processes and nodes together. The latter also
    where requests are not limited: each of them is a row.
    """
    limits, client = fairness.current(), rate_key(request.META.get("REMOTE_ADDR", ""))
    most, least = clients.MAX_UNUSED, REGISTRATIONS_AN_HOUR
    if limits.registrations.take(client).allowed and origin.take_share("apps", in_all=most, least=least, hours=2):
        key = f"oauth-register:{digest(client.encode())}:{now():%Y%m%d%H}"
        cache.add(key, 0, timeout=3_700)
        if cache.incr(key) <= REGISTRATIONS_AN_HOUR:
            return
    limits.count_refusal("registrations")
    raise Refusal(
        "temporarily_unavailable",
        f"Limit of {REGISTRATIONS_AN_HOUR} client registrations per hour reached. Reuse the client_id you have.",
    )


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
    account_id = request.user.pk if is_signed_in else None
    client = clients.find_client(identifier, fetch_for=account_id)
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
    if not permitted <= scopes.READ_SCOPES:
        # The page is shown again afterwards, as the app asked for it: consent is never given by another form.
        confirmation = confirm_first(request, request.get_full_path())
        if confirmation is not None:
            return confirmation
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
    parameters = dict(answer)
    if "state" in asked:
        parameters["state"] = asked["state"]
    parameters["iss"] = address(request)
    return _private(HttpResponse(status=303, headers={"Location": redirects.answer(target, parameters)}))


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


@_endpoint("POST")
def token(request: HttpRequest) -> HttpResponse:
    """Issue tokens for a code or a refresh token (RFC 6749, section 5.1)."""
    asked = _form(request)
    if "client_id" not in asked:
        raise Refusal("invalid_request", "client_id is missing. Public clients must send it.")
    resource = resources.requested([asked.get("resource", "")], address(request))
    kind = asked.get("grant_type")
    if kind in clients.GRANT_TYPES:
        clients.require_client(asked["client_id"])
    if kind == "authorization_code":
        issued = grants.redeem(
            asked.get("code", ""),
            client_id=asked["client_id"],
            redirect_uri=asked.get("redirect_uri", ""),
            verifier=asked.get("code_verifier", ""),
            resource=resource,
        )
    elif kind == "refresh_token":
        secret, narrower = asked.get("refresh_token", ""), asked.get("scope", "")
        issued = grants.refresh(secret, client_id=asked["client_id"], resource=resource, narrower=narrower)
    elif not kind:
        raise Refusal("invalid_request", "grant_type is missing.")
    else:
        raise Refusal("unsupported_grant_type", "grant_type must be authorization_code or refresh_token.")
    body = {
        "access_token": issued.pair.access,
        "token_type": "Bearer",
        "expires_in": issued.expires_in_s,
        "refresh_token": issued.pair.refresh,
        "scope": issued.scopes,
    }
    return _json(body)


@_endpoint("POST")
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke a token; the response is the same for an unknown one (RFC 7009, section 2.2)."""
    asked = _form(request)
    if "token" not in asked:
        raise Refusal("invalid_request", "token is missing.")
    grants.revoke(asked["token"])
    return HttpResponse(status=200, headers={**_CORS, "Cache-Control": "no-store"})
