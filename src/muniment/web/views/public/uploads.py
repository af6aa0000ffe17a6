"""The page of an upload link, which needs no account: the link is the credential."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from muniment.documents import uploads
from muniment.documents.content import inspection
from muniment.documents.http import OUTCOME
from muniment.kernel.problems import MethodNotAllowed, NotFound, Problem


def upload(request: HttpRequest, token: str) -> HttpResponse:
    """Show the form of an upload link, or what became of the file that it sent."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowed(str(request.method), "GET, HEAD")
    outcome = request.META.get("asgi.scope", {}).get("state", {}).get(OUTCOME)
    problem = outcome if isinstance(outcome, Problem) else None
    context: dict[str, object] = {"problem": problem}
    status = problem.status if problem else HTTPStatus.OK
    if outcome and not problem:
        context["sent"] = outcome
        status = HTTPStatus.CREATED
    else:
        try:
            link = uploads.find_link(token)
        except NotFound as gone:
            context["problem"] = problem or gone
            status = problem.status if problem else gone.status
        else:
            kind = inspection.TYPES[link.content_type]
            context |= {"link": link, "kind": kind, "accept": ",".join(f".{each}" for each in kind.extensions)}
    page = render(request, "upload.html", context, status=status)
    page["Referrer-Policy"] = "no-referrer"  # the address is a secret
    page["X-Robots-Tag"] = "noindex"
    return page
