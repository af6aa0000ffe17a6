"""The page that connects agents: links, commands and bundles for each client, with this instance's addresses."""

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from muniment.registry_toml import applied
from muniment.web.connecting.bundle import bundle
from muniment.web.connecting.clients import clients
from muniment.web.connecting.links import tool_servers
from muniment.web.context import address
from muniment.web.requests.page_cache import published


@published()
def connect(request: HttpRequest) -> HttpResponse:
    """Show how to set up both tool servers in every client."""
    base = address(request)
    public, manage = tool_servers(base, applied.registry_name())
    context = {
        "room": "connect",
        "public_url": public.url,
        "manage_url": manage.url,
        "rest_example": f"curl '{base}/api/v1/companies?pageSize=5'",
        "clients": clients(public, manage),
    }
    return TemplateResponse(request, "registry/connect.html", context)


@published(speaks=False)
def connect_bundle(request: HttpRequest, key: str) -> HttpResponse:
    """Send the bundle of one tool server, for desktop apps."""
    public, manage = tool_servers(address(request), applied.registry_name())
    server = manage if key == manage.key else public
    answer = HttpResponse(bundle(server, signed_in=server is manage), content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="{server.key}.mcpb"'
    return answer
