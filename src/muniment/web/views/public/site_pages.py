"""The style sheet, the fonts and the icons of the brand, and the legal pages."""

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.templatetags.static import static

from muniment.registry.settings import typefaces
from muniment.registry_toml import applied
from muniment.web.branding import branding, legal_links, style_sheet
from muniment.web.presenters import markdown
from muniment.web.requests import static_files
from muniment.web.requests.page_cache import published
from muniment.web.requests.static_files import FOR_A_WHILE, FOR_EVER


def colors(_: HttpRequest, tag: str) -> HttpResponse:
    """Serve the declared colors. The address has the digest of the content, so clients may cache it."""
    found = branding()
    sheet = style_sheet(found.settings)
    if not sheet:
        raise Http404("the registry has its built-in colors")
    kept = FOR_EVER if found.css == f"/brand.{tag}.css" else FOR_A_WHILE
    return HttpResponse(sheet, content_type="text/css; charset=utf-8", headers={"Cache-Control": kept})


def font(_: HttpRequest, digest: str) -> HttpResponse:
    """Serve an uploaded font; its address contains its digest, so clients may cache it."""
    content = typefaces.font_bytes(digest)
    if content is None:
        raise Http404("unknown font")
    headers = {"Cache-Control": FOR_EVER, "Content-Security-Policy": "sandbox"}
    return HttpResponse(content, content_type="font/woff2", headers=headers)


@published(speaks=False)
def manifest(_: HttpRequest) -> HttpResponse:
    """Return what a phone shows of the registry on its home screen."""
    mark = branding().mark
    icon = {"src": mark, "type": "image/webp"} if mark else {"src": static("web/seal.svg"), "type": "image/svg+xml"}
    name = applied.registry_name()
    body = {
        "name": name,
        "short_name": name,
        "start_url": "/",
        "display": "browser",
        "icons": [{**icon, "sizes": "any"}],
    }
    return HttpResponse(json.dumps(body, ensure_ascii=False), content_type="application/manifest+json; charset=utf-8")


def phone_icon(request: HttpRequest, *_: str) -> HttpResponse:
    """Return the icon that phones ask for at an address of their own."""
    return static_files.serve(request, path="web/apple-touch-icon.png")


@published()
def legal(request: HttpRequest, name: str) -> HttpResponse:
    """Show a legal page, if the registry has it."""
    settings = applied.current()
    text = getattr(settings.legal, name)
    if not text:
        raise Http404("this registry has no such page")
    titles = {link.address: link.label for link in legal_links(settings)}
    title = titles[f"/{name}"]
    context = {"page_title": title, "text": markdown.render(_without_title(text), 1)}
    return TemplateResponse(request, "registry/legal.html", context)


def _without_title(text: str) -> str:
    """Return a text without a first heading: the page has one."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith("# ") else text
