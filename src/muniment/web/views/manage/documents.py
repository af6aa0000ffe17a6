"""The documents of an owner's companies: list, upload, download, delete and restore."""

from http import HTTPStatus

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.utils.translation import gettext

from muniment.documents import downloading, operations, records, uploads
from muniment.documents.content import inspection
from muniment.documents.models import Document, DocumentState
from muniment.kernel.actor import Actor
from muniment.kernel.problems import BadRequest, Problem
from muniment.languages.translated import in_words, told, translated
from muniment.registry.models import Ownership
from muniment.web.context import address
from muniment.web.requests.access import account_of, actor_of, signed_in
from muniment.web.requests.pages import manage_page, show_problem
from muniment.web.requests.pagination import asked_page, pager

PAGE_SIZE = 25
FORM_BYTES = 10 << 20
"""Limit of a form without JavaScript; the server buffers whole forms up to this size."""
HOME = "/manage/documents"
GONE = "deleted"
PARAMETERS = ("company", "page", GONE)


@signed_in()
def home(request: HttpRequest) -> HttpResponse:
    """Show the documents and the quota; accept files from a plain form."""
    actor = actor_of(request)
    if request.method == "POST":
        return _take_form(request, actor)
    found = operations.list_documents(actor, page=asked_page(request.GET), page_size=PAGE_SIZE)
    deleted = operations.list_documents(actor, page=asked_page(request.GET, GONE), page_size=PAGE_SIZE, deleted=True)
    context = {
        "documents": found.items,
        "deleted": [{"document": each, "until": records.restorable_until(each)} for each in deleted.items],
        "companies": companies_of(request),
        "chosen": request.GET.get("company", ""),
        "quota": found.quota,
        "accept": ",".join(f".{end}" for each in inspection.TYPES.values() for end in each.extensions),
        "taken": translated(inspection.TAKEN),
        "max_bytes": records.max_bytes(),
        "form_bytes": min(FORM_BYTES, records.max_bytes()),
        "pager": pager(request, PARAMETERS, found),
        "deleted_pager": pager(request, PARAMETERS, deleted, name=GONE),
    }
    return manage_page(request, "manage/documents.html", context)


def companies_of(request: HttpRequest) -> list[tuple[str, str]]:
    """Return slug and name of each company that the account owns, by name."""
    owned = Ownership.objects.filter(account=account_of(request)).order_by("company__name", "company__slug")
    return list(owned.values_list("company__slug", "company__name"))


def _take_form(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Store the files of a form from a browser without JavaScript."""
    company = request.POST.get("company", "")
    files = [each for each in request.FILES.getlist("files") if isinstance(each, UploadedFile)]
    if not files:
        messages.error(request, gettext("Choose at least one file."))
    for each in files:
        try:
            kept = uploads.store_document(
                actor, company, each.name or "", each.chunks(), each.size or 0, content_type=each.content_type
            )
        except Problem as problem:
            if problem.status == HTTPStatus.NOT_FOUND:
                raise
            messages.error(request, f"{each.name}: {told(problem)}")
        else:
            messages.success(request, _told(kept))
    return HttpResponseRedirect(HOME)


def _told(document: Document) -> str:
    is_ready = document.state == DocumentState.READY
    said = gettext("%(file)s uploaded.") if is_ready else gettext("Scanning %(file)s for viruses.")
    return said % {"file": document.filename}


def _as_json(problem: Problem) -> JsonResponse:
    return JsonResponse(in_words(problem), status=problem.status)


@signed_in("POST")
def begin(request: HttpRequest) -> HttpResponse:
    """Return an upload link for one file to the script."""
    size = request.POST.get("size", "")
    try:
        if not size.isdecimal() or len(size) > 15:
            raise BadRequest(gettext("The file size is not a number."), gettext("Reload the page and try again."))
        upload = uploads.begin_upload(
            actor_of(request),
            request.POST.get("company", ""),
            request.POST.get("filename", ""),
            int(size),
            content_type=request.POST.get("type") or None,
            base_url=address(request),
        )
    except Problem as problem:
        return _as_json(problem)
    return JsonResponse({"data": upload.to_wire()})


@signed_in("POST")
def complete(request: HttpRequest, document_id: str) -> HttpResponse:
    """Complete an upload: respond with JSON to the script, with a page to a plain form."""
    wants_json = request.headers.get("Accept", "").startswith("application/json")
    try:
        document = uploads.complete_upload(actor_of(request), document_id)
    except Problem as problem:
        if wants_json:
            return _as_json(problem)
        if problem.status == HTTPStatus.NOT_FOUND:
            raise
        show_problem(request, problem)
    else:
        if wants_json:
            return JsonResponse({"data": records.to_wire(document)})
        messages.success(request, _told(document))
    return HttpResponseRedirect(HOME)


@signed_in("POST")
def delete(request: HttpRequest, document_id: str) -> HttpResponse:
    """Delete a document, which the owner can restore for a while."""
    document = operations.delete_document(actor_of(request), document_id)
    said = gettext("%(file)s deleted. You can restore it for 30 days.")
    messages.success(request, said % {"file": document.filename})
    return HttpResponseRedirect(HOME)


@signed_in("POST")
def restore(request: HttpRequest, document_id: str) -> HttpResponse:
    document = operations.restore_document(actor_of(request), document_id)
    messages.success(request, gettext("%(file)s restored.") % {"file": document.filename})
    return HttpResponseRedirect(HOME)


@signed_in("GET", "HEAD")
def file(request: HttpRequest, document_id: str) -> HttpResponse:
    """Redirect to the file, by a link that expires in a minute."""
    response = HttpResponseRedirect(downloading.create_link(actor_of(request), document_id))
    response["Referrer-Policy"] = "no-referrer"
    return response
