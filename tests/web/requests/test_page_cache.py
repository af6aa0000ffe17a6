"""
Kept pages: each publication drops those that show what it changed, and no others.

Every kind of public page is visited, then each kind of document changes by an operation, and every page that is still
kept is compared with a new rendering.
"""

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import Resolver404, URLResolver
from django.urls.resolvers import RegexPattern

from make import reports
from make.registry import lines, owner, published, reviewer
from muniment import config
from muniment.assessments import scores
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange.importer import import_registry
from muniment.registry.frameworks.authoring import update_framework
from muniment.registry.people.erasing import erase_person
from muniment.registry.people.moderation import correct_person, merge_people, unlist_person
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review.workflow import relist_company, unlist_company
from muniment.server.app.interfaces import describe_interfaces
from muniment.store.reader import Reader
from muniment.web import public_pages
from muniment.web.cards import views as cards
from muniment.web.reference import interfaces
from muniment.web.requests import page_cache, static_files
from muniment.web.views.public import company_lists, data, lists, queries, site_pages
from services.product import DEMO

ADDRESSES = (
    *("/", "/companies", "/companies?page=2", "/companies?q=tidal", "/companies?type=DAO&sort=treasury", "/people"),
    *("/people?q=fenn", "/frameworks", "/search?q=water", "/search/box?q=tid", "/search/suggestions?q=sal", "/map"),
    "/data/verify",
    *("/companies/saltmarsh-commons", "/companies/tarnwick-tidal", "/companies/oxbow-mutual", "/companies/grainline"),
    *(f"/companies/saltmarsh-commons/{part}" for part in ("about", "team", "proposals", "cap-table", "network")),
    *("/companies/tarnwick-tidal/funding", "/companies/tarnwick-tidal/history", "/companies/oxbow-mutual/network"),
    *("/companies/newcomer", "/people/marenka-osterfjell", "/people/evander-lisle", "/people/evander-lisle/positions"),
    *("/people/ptolemy-fenn", "/frameworks/plain-governance", "/frameworks/plain-governance/scores"),
    *("/compare?c=saltmarsh-commons&c=oxbow-mutual", "/compare", "/companies.atom", "/people.atom", "/frameworks.atom"),
    *("/companies.feed.json?type=DAO", "/people.feed.json", "/frameworks.feed.json", "/feed.json"),
    *("/companies/saltmarsh-commons/feed.json", "/people/evander-lisle/feed.json"),
    *("/feed.atom", "/sitemap.xml", "/sitemap-companies-1.xml", "/sitemap-people-1.xml", "/sitemap-frameworks-1.xml"),
    *("/companies/saltmarsh-commons/embed", "/oembed?url=http://testserver/companies/saltmarsh-commons"),
    *("/connect", "/connect/registry.mcpb", "/docs", "/docs/guides/read", "/docs/rest/objects", "/docs/rest/companies"),
    *("/docs/tools/public", "/robots.txt", "/opensearch.xml", "/imprint", "/manifest.webmanifest"),
)
NOT_OF_THE_FILE = {
    static_files.serve,
    site_pages.colors,
    *(cards.registry_picture, cards.company_picture, cards.person_picture, cards.framework_picture),
    cards.assessment_picture,
    *(data.data, queries.query, queries.saved, queries.feed, queries.embedded),
    *(company_lists.as_csv, lists.as_csv, site_pages.phone_icon),
}
"""Views that send or list files, ask the tables, lead elsewhere, or send pictures that are drawn by their digest."""


@pytest.fixture
def reader(transactional_db, monkeypatch):
    import_registry(DEMO)
    made = Reader(config.current().published_file)
    page_cache.use(made)
    monkeypatch.setattr(interfaces, "_described", [])
    describe_interfaces(config.current(), SimpleNamespace(call=None))
    yield made
    page_cache.use(None)
    made.close()


def visit(addresses):
    """Return the status and the body of each page."""
    visitor = Client()
    answers = {address: visitor.get(address) for address in addresses}
    return {address: (answer.status_code, answer.content) for address, answer in answers.items()}


def kept_addresses():
    return {key.rpartition(" ")[2].removesuffix("?") for key in page_cache.pages.ready}


def compare(reader, addresses, change):
    """Make a change, compare all pages with new renderings, and return the addresses that were kept meanwhile."""
    visit(addresses)
    change()
    assert reader.refresh()
    kept = kept_addresses()
    shown = visit(addresses)
    page_cache.use(reader)
    assert shown == visit(addresses)
    return kept


@pytest.mark.sqlite
def test_no_kept_page_shows_what_a_publication_has_changed(reader, tmp_path):
    me, judge = owner(), reviewer()
    assessed = reports.finished(me).run
    slug, framework_id = assessed.company.slug, assessed.framework.slug
    assessments = f"/companies/{slug}/assessments"
    addresses = (
        *ADDRESSES,
        *(f"/companies/{slug}", f"/frameworks/{framework_id}/scores", assessments),
        *(f"{assessments}/{framework_id}", f"{assessments}/{framework_id}/badge.svg"),
    )

    saltmarsh = lines(tmp_path / "companies.jsonl", {"company": {"id": "saltmarsh-commons", "name": "Saltmarsh Trust"}})
    changes = {
        "a listing's text": lambda: update_company(me, slug, CompanyChange(description="We mend tidal sails.")),
        "a new listing": lambda: published(me, name="Newcomer"),
        "a name": lambda: import_registry(saltmarsh),
        "a score": lambda: scores.publish_score(me, assessed.pk, sections=True),
        "a withdrawn score": lambda: scores.withdraw_score(me, assessed.pk),
        "an unlisted company": lambda: unlist_company(judge, "oxbow-mutual", "It has closed."),
        "a company listed again": lambda: relist_company(judge, "oxbow-mutual"),
        "a framework": lambda: update_framework(judge, "plain-governance", name="Plainer Governance"),
        "a profile": lambda: correct_person(judge, "marenka-osterfjell", ProfileChange(bio="Draws maps of tides.")),
        "a person's name": lambda: correct_person(judge, "evander-lisle", ProfileChange(name="Evander Leigh")),
        "an unlisted person": lambda: unlist_person(judge, "zofia-krzemienna", "They asked for it."),
        "people in one": lambda: merge_people(judge, "ptolemy-fenn", "evander-lisle"),
        "an erased person": lambda: erase_person(judge, "teodrick-vashnell"),
    }
    kept = {name: compare(reader, addresses, change) for name, change in changes.items()}
    # A company's page lists the frameworks that the company runs, so one that is published ends all of them.
    of_frameworks = {"a score", "a withdrawn score", "a framework"}
    for name, those in kept.items():
        assert ("/companies/grainline" in those) is (name not in of_frameworks), name
        assert "/" not in those, name
    assert "/companies/saltmarsh-commons" not in kept["a name"]
    assert "/companies/saltmarsh-commons" in kept["a listing's text"]
    # They share a person, so whether its tabs lead to a network may change with the other.
    assert "/companies/tarnwick-tidal/funding" not in kept["an unlisted company"]
    assert "/companies/tarnwick-tidal/funding" in kept["a profile"]
    assert {"/people", "/people/ptolemy-fenn"} <= kept["a framework"]
    assert "/companies/oxbow-mutual/network" not in kept["a person's name"]
    assert "/companies" in kept["a profile"]


@pytest.mark.django_db
def test_every_view_of_public_pages_is_compared():
    resolver = URLResolver(RegexPattern(r"^/"), public_pages.PUBLIC)

    def view_of(address):
        try:
            return resolver.resolve(address.partition("?")[0]).func
        except Resolver404:
            pytest.fail(f"no public page is at {address}")

    more = ("/companies/x/assessments", "/companies/x/assessments/y", "/companies/x/assessments/y/badge.svg")
    visited = {view_of(address) for address in (*ADDRESSES, *more)}
    assert {each.callback for each in public_pages.PUBLIC} - visited - NOT_OF_THE_FILE == set()
