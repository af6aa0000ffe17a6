"""What a browser may do on our pages: nothing from elsewhere, no script and no style inside a page."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "; ".join(  # noqa: FLY002 - a line a rule
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "manifest-src 'self'",
    )
)


def with_forms_to(origin: str) -> str:
    """Give the policy of a page whose form is answered with a redirect to *origin*: Chromium checks that too."""
    return POLICY.replace("form-action 'self'", f"form-action 'self' {origin}")


HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
    "Cache-Control": "private, no-store",  # after a sign-out the back button shows nothing; public pages say otherwise
}


class PolicyMiddleware:
    """Sets the headers above on every answer; a view that set one of them itself keeps its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, with the policy."""
        response = self.get_response(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response
