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

from muniment.web.cards import views as cards
from muniment.web.reference import views as reference
from muniment.web.requests import static_files
from muniment.web.requests.errors import answered
from muniment.web.views.manage import connecting_agents
from muniment.web.views.overview import compare, frameworks, home, network, places
from muniment.web.views.public import (
    assessments,
    company_lists,
    data,
    feeds,
    lists,
    queries,
    registry,
    search,
    site_pages,
)
from muniment.web.views.public.documents import moved_page

READS: Final = frozenset({"GET", "HEAD"})
PUBLIC: Final = [
    path("", home.home, name="home"),
    path("card.png", cards.registry_picture),
    path("companies/<str:slug>", registry.company, name="company"),
    path("companies", lists.companies, name="companies"),
    path("companies/<str:slug>/card.png", cards.company_picture),
    path("companies/<str:slug>/embed", cards.company_frame),
    path("companies/<str:slug>/assessments/<str:framework_id>/card.png", cards.assessment_picture),
    path("people/<str:slug>/card.png", cards.person_picture),
    path("frameworks/<str:framework_id>/card.png", cards.framework_picture),
    path("oembed", cards.oembed),
    path("companies/<str:slug>/about", company_lists.about),
    path("companies/<str:slug>/team", company_lists.team),
    path("companies/<str:slug>/proposals", company_lists.proposals),
    path("companies/<str:slug>/cap-table", company_lists.cap_table),
    path("companies/<str:slug>/funding", company_lists.funding),
    re_path(r"^companies/(?P<slug>[^/]+)/(?P<part>team|proposals|cap-table|funding)\.csv$", company_lists.as_csv),
    path("companies/<str:slug>/history", company_lists.history),
    path("companies/<str:slug>/network", network.network),
    path("companies/<str:slug>/assessments", assessments.of_company),
    path("companies/<str:slug>/assessments/<str:framework_id>", assessments.summary),
    path("companies/<str:slug>/assessments/<str:framework_id>/badge.svg", assessments.badge),
    path("people/<str:slug>", registry.person, name="person"),
    path("people/<str:slug>/positions", registry.positions),
    path("people", lists.people, name="people"),
    path("search", search.search, name="search"),
    path("map", places.world_map, name="map"),
    path("compare", compare.compare, name="compare"),
    path("data", data.data, name="data"),
    path("data/query", queries.query),
    path("data/verify", data.verify),
    path("data/queries/<slug:slug>", queries.saved),
    path("data/queries/<slug:slug>.atom", queries.feed),
    path("data/queries/<slug:slug>/embed", queries.embedded),
    path("frameworks/<str:framework_id>", frameworks.framework, name="framework"),
    path("frameworks/<str:framework_id>/scores", assessments.of_framework),
    path("frameworks", lists.frameworks, name="frameworks"),
    path("static/<path:path>", static_files.serve),
    path("search/box", search.box),
    path("search/suggestions", search.suggestions),
    path("opensearch.xml", search.description),
    re_path(r"^(?P<name>companies|people|frameworks)\.csv$", lists.as_csv),
    path("companies.atom", lists.companies_feed),
    path("people.atom", lists.people_feed),
    path("frameworks.atom", lists.frameworks_feed),
    path("companies.feed.json", lists.companies_json_feed),
    path("people.feed.json", lists.people_json_feed),
    path("frameworks.feed.json", lists.frameworks_json_feed),
    path("companies/<str:slug>/feed.json", feeds.of_company),
    path("people/<str:slug>/feed.json", feeds.of_person),
    path("connect", connecting_agents.connect, name="connect"),
    re_path(r"^connect/(?P<key>registry|my-registry)\.mcpb$", connecting_agents.connect_bundle),
    re_path(r"^docs/?$", reference.home, name="docs"),
    path("docs/guides/<str:key>", reference.guide),
    path("docs/rest/objects", reference.rest_objects),
    path("docs/rest/<str:key>", reference.rest_group),
    re_path(r"^docs/tools/(?P<key>public|owner)$", reference.tools),
    path("favicon.ico", static_files.serve, {"path": "web/favicon.ico"}),
    re_path(r"^apple-touch-icon(-precomposed)?\.png$", site_pages.phone_icon),
    path("manifest.webmanifest", site_pages.manifest),
    path("robots.txt", feeds.robots),
    path("sitemap.xml", feeds.sitemap),
    re_path(r"^sitemap-(?P<room>[a-z]+)-(?P<number>[1-9]\d{0,5})\.xml$", feeds.sitemap_part),
    path("feed.atom", feeds.feed),
    path("feed.json", feeds.newest_as_json),
    re_path(r"^(?P<name>imprint|privacy|terms)$", site_pages.legal),
    re_path(r"^brand\.(?P<tag>[0-9a-f]{12})\.css$", site_pages.colors),
]


class PublicPages:
    """Answers reads of public pages ahead of the middleware for accounts; it is inside that of the headers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._resolver = URLResolver(RegexPattern(r"^/"), PUBLIC)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in READS:
            return self._get_response(request)
        redirect = moved_page(request)
        if redirect is not None:
            return redirect
        try:
            match = self._resolver.resolve(request.path_info)
        except Resolver404:
            return self._get_response(request)
        response = answered(request, match.func, **match.kwargs)
        if not response.has_header("Content-Length"):
            response["Content-Length"] = str(len(response.content))
        return response
