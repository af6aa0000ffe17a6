"""Security headers: pages load nothing from other hosts and contain no inline script or style."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "; ".join(  # noqa: FLY002 - a line a rule
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "manifest-src 'self'",
    )
)


def with_forms_to(origin: str) -> str:
    """Return the policy of a page whose form redirects to *origin*: Chromium applies form-action to redirects."""
    return POLICY.replace("form-action 'self'", f"form-action 'self' {origin}")


def without_form_action() -> str:
    """Return the policy of a page whose form redirects to an origin that is not known yet."""
    return "; ".join(rule for rule in POLICY.split("; ") if not rule.startswith("form-action"))


_TO_PROVIDER = "/accounts/oidc/"
"""Pages of allauth whose form redirects to the identity provider."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
    "Cache-Control": "private, no-store",  # so the back button shows nothing after sign-out; public pages override it
}


class PolicyMiddleware:
    """Set the headers on every response; a header that a view set stays."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(_TO_PROVIDER):
            response.headers.setdefault("Content-Security-Policy", without_form_action())
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response
