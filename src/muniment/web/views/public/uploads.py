"""The page of an upload link, which needs no account: the link is the credential."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from muniment.documents import uploads
from muniment.documents.content import inspection
from muniment.documents.http import OUTCOME
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import MethodNotAllowed, NotFound, Problem


def upload(request: HttpRequest, token: str) -> HttpResponse:
    """Show the form of an upload link, or what became of the file that it sent."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowed(str(request.method), "GET, HEAD")
    outcome = request.META.get("asgi.scope", {}).get("state", {}).get(OUTCOME)
    problem = outcome if isinstance(outcome, Problem) else None
    if outcome and not problem:
        context: JSONObject = {"problem": None, "sent": outcome}
        status: int = HTTPStatus.CREATED
    else:
        # A file that was refused can be corrected and sent again, as long as the link is valid.
        form: JSONObject = {}
        try:
            form = _form(uploads.find_link(token))
        except NotFound as refusal:
            problem = problem or refusal
        context = {"problem": problem, **form}
        status = problem.status if problem else HTTPStatus.OK
    page = render(request, "upload.html", context, status=status)
    page["Referrer-Policy"] = "no-referrer"  # the address is a secret
    page["X-Robots-Tag"] = "noindex"
    return page


def _form(link: uploads.OpenLink) -> JSONObject:
    kind = inspection.TYPES[link.content_type]
    extensions = [f".{extension}" for extension in kind.extensions]
    return {"link": link, "kind": kind, "accept": ",".join(extensions)}
