"""
Public pages: their addresses, and a short way to them.

They are the same bytes for every visitor, so nothing reads the session, a form's token or messages for them; what
belongs to a visitor comes by :mod:`muniment.web.views.visitor`.
"""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, URLResolver, path, re_path
from django.urls.resolvers import RegexPattern

from muniment.web.requests import static_files
from muniment.web.requests.errors import answered
from muniment.web.views.manage import connecting_agents
from muniment.web.views.public import company_lists, feeds, lists, registry, search

READS: Final = frozenset({"GET", "HEAD"})
PUBLIC: Final = [
    path("", registry.home, name="home"),
    path("companies/<str:slug>", registry.company, name="company"),
    path("companies", lists.companies, name="companies"),
    path("companies/<str:slug>/about", company_lists.about),
    path("companies/<str:slug>/team", company_lists.team),
    path("companies/<str:slug>/proposals", company_lists.proposals),
    path("companies/<str:slug>/cap-table", company_lists.cap_table),
    path("companies/<str:slug>/funding", company_lists.funding),
    path("companies/<str:slug>/history", company_lists.history),
    path("people/<str:slug>", registry.person, name="person"),
    path("people/<str:slug>/positions", registry.positions),
    path("people", lists.people, name="people"),
    path("search", search.search, name="search"),
    path("frameworks/<str:framework_id>", registry.framework, name="framework"),
    path("frameworks", lists.frameworks, name="frameworks"),
    path("static/<path:path>", static_files.serve),
    path("search/suggestions", search.suggestions),
    path("opensearch.xml", search.description),
    path("companies.atom", lists.companies_feed),
    path("people.atom", lists.people_feed),
    path("frameworks.atom", lists.frameworks_feed),
    path("connect", connecting_agents.connect, name="connect"),
    re_path(r"^connect/(?P<key>registry|my-registry)\.mcpb$", connecting_agents.connect_bundle),
    path("robots.txt", feeds.robots),
    path("sitemap.xml", feeds.sitemap),
    re_path(r"^sitemap-(?P<room>[a-z]+)-(?P<number>[1-9]\d{0,5})\.xml$", feeds.sitemap_part),
    path("feed.atom", feeds.feed),
]


class PublicPages:
    """Answers reads of public pages ahead of the middleware for accounts; it is inside that of the headers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._resolver = URLResolver(RegexPattern(r"^/"), PUBLIC)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in READS:
            return self._get_response(request)
        try:
            found = self._resolver.resolve(request.path_info)
        except Resolver404:
            return self._get_response(request)
        response = answered(request, found.func, **found.kwargs)
        if not response.has_header("Content-Length"):
            response["Content-Length"] = str(len(response.content))
        return response
