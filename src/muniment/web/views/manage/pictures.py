"""The logo of a listing, and serving pictures."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.kernel.http.representations import etag, is_known
from muniment.kernel.problems import BadRequest
from muniment.languages.translated import told
from muniment.languages.writing import digits
from muniment.registry.company import listings, pictures
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page
from muniment.web.requests.static_files import FOR_EVER
from muniment.web.views.manage.companies import frame


@signed_in()
@once
def logo(request: HttpRequest, slug: str) -> HttpResponse:
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    fault = ""
    if request.method == "POST":
        path, done = "", gettext("Logo removed.")
        try:
            if request.POST.get("do") != "remove":
                path, done = pictures.store_picture(read_picture(request)), gettext("Logo updated.")
            listings.set_icon(actor, slug, path)
        except BadRequest as refusal:
            fault = told(refusal)
        else:
            messages.success(request, done)
            return HttpResponseRedirect(f"/manage/companies/{slug}/logo")
    context = {**frame(mine, "logo"), "fault": fault}
    return manage_page(request, "manage/logo.html", context, status=422 if fault else 200)


def picture(request: HttpRequest, digest: str, size: str) -> HttpResponse:
    """Serve a stored picture; its address contains its digest, so clients may cache it."""
    tag = f"{digest}-{size}".encode()
    headers = {"ETag": etag(tag, b"").decode(), "Cache-Control": FOR_EVER}
    if is_known(tag, request.headers.get("If-None-Match", "").encode()):
        return HttpResponse(status=304, headers=headers)
    body = pictures.picture_bytes(digest, int(size))
    if body is None:
        raise Http404("unknown picture")
    return HttpResponse(body, content_type="image/webp", headers={**headers, "Content-Security-Policy": "sandbox"})


def read_picture(request: HttpRequest) -> bytes:
    """
    Return the uploaded picture.

    Raises:
        BadRequest: there is none, or it is too large to read.
    """
    sent = request.FILES.get("picture")
    if sent is None or isinstance(sent, list):
        raise BadRequest(gettext("No image was uploaded."), gettext("Choose an image file first."))
    if (sent.size or 0) > pictures.MAX_BYTES:
        raise BadRequest(
            gettext("The image is too large: %(size)s MB.") % {"size": digits(f"{(sent.size or 0) / (1 << 20):.1f}")},
            gettext("Upload a PNG, JPEG or WebP of at most 2 MB and 16 megapixels."),
        )
    content: bytes = sent.read()
    return content
