"""The documents of an owner's companies: list, upload, download, delete and restore."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.utils.translation import gettext

from muniment.documents import downloading, operations, records, uploads
from muniment.documents.content import inspection
from muniment.documents.models import Document, DocumentState
from muniment.kernel.actor import Actor
from muniment.kernel.problems import BadRequest, Problem
from muniment.languages.translated import in_words, told, translated
from muniment.registry.company.listings import choose_companies
from muniment.web.context import address
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.pages import manage_page, show_problem
from muniment.web.requests.pagination import asked_page, pager, whole_number

PAGE_SIZE = 25
FORM_BYTES = 10 << 20
"""Limit of a form without JavaScript; the server buffers whole forms up to this size."""
HOME = "/manage/documents"
GONE = "deleted"
PARAMETERS = ("company", "listing", "page", GONE)
CHOICES: Final = 100
"""Listings that a form offers without a search: more are a page of their own."""
MAX_WORDS: Final = 200


@signed_in()
def home(request: HttpRequest) -> HttpResponse:
    """Show the documents and the quota; accept files from a plain form."""
    actor = actor_of(request)
    if request.method == "POST":
        return _take_form(request, actor)
    page = operations.list_documents(actor, page=asked_page(request.GET), page_size=PAGE_SIZE)
    deleted = operations.page_of_documents(actor, page=asked_page(request.GET, GONE), page_size=PAGE_SIZE, deleted=True)
    extensions: list[str] = []
    for kind in inspection.TYPES.values():
        extensions += kind.extensions
    context = {
        "documents": page.items,
        "deleted": [{"document": row, "until": records.restorable_until(row)} for row in deleted.items],
        "choices": listing_choices(actor, request.GET, request.GET.get("company", "")),
        "quota": page.quota,
        "accept": ",".join(f".{extension}" for extension in extensions),
        "taken": translated(inspection.TAKEN),
        "max_bytes": records.max_bytes(),
        "form_bytes": min(FORM_BYTES, records.max_bytes()),
        "pager": pager(request, PARAMETERS, page),
        "deleted_pager": pager(request, PARAMETERS, deleted, name=GONE),
    }
    return manage_page(request, "manage/documents.html", context)


@dataclass(frozen=True, slots=True)
class ListingChoices:
    """
    The listings that a form offers, by name.

    Args:
        listings: slug and name of each.
        chosen: the slug of the listing that is chosen already; empty for the first one.
        words: what was searched for.
        is_cut: the account has more listings than are offered, so that they can be searched.
    """

    listings: list[tuple[str, str]]
    chosen: str
    words: str
    is_cut: bool

    @property
    def name(self) -> str:
        return dict(self.listings).get(self.chosen, "")


def listing_choices(actor: Actor, query: QueryDict, chosen: str) -> ListingChoices:
    """Return the account's listings to choose from, with the *chosen* one if the account owns it."""
    words = " ".join(query.get("listing", "")[:MAX_WORDS].split())
    always = "" if words else chosen  # a search shows what it finds alone
    listings, has_more = choose_companies(actor, words, including=always, limit=CHOICES)
    if chosen not in dict(listings):
        chosen = ""
    return ListingChoices(listings, chosen, words, is_cut=has_more or bool(words))


def _take_form(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Store the files of a form from a browser without JavaScript."""
    company = request.POST.get("company", "")
    files = [file for file in request.FILES.getlist("files") if isinstance(file, UploadedFile)]
    if not files:
        messages.error(request, gettext("Choose at least one file."))
    for file in files:
        try:
            document = uploads.store_document(
                actor, company, file.name or "", file.chunks(), file.size or 0, content_type=file.content_type
            )
        except Problem as problem:
            if problem.status == HTTPStatus.NOT_FOUND:  # the listing: no other file will do better
                raise
            messages.error(request, f"{file.name}: {told(problem)}")
        else:
            messages.success(request, _received(document))
    return HttpResponseRedirect(HOME)


def _received(document: Document) -> str:
    if document.state == DocumentState.READY:
        return gettext("%(file)s uploaded.") % {"file": document.filename}
    return gettext("Scanning %(file)s for viruses.") % {"file": document.filename}


def _as_json(problem: Problem) -> JsonResponse:
    return JsonResponse(in_words(problem), status=problem.status)


@signed_in("POST")
def begin(request: HttpRequest) -> HttpResponse:
    """Return an upload link for one file to the script."""
    size_bytes = whole_number(request.POST.get("size", ""), 15)
    try:
        if size_bytes is None:
            raise BadRequest(gettext("The file size is not a number."), gettext("Reload the page and try again."))
        upload = uploads.begin_upload(
            actor_of(request),
            request.POST.get("company", ""),
            request.POST.get("filename", ""),
            size_bytes,
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
        messages.success(request, _received(document))
    return HttpResponseRedirect(HOME)


@signed_in("POST")
def delete(request: HttpRequest, document_id: str) -> HttpResponse:
    """Delete a document, which the owner can restore for a while."""
    document = operations.delete_document(actor_of(request), document_id)
    words = gettext("%(file)s deleted. You can restore it for 30 days.")
    messages.success(request, words % {"file": document.filename})
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
