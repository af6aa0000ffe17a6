"""Stamps, by which If-Modified-Since is answered: new with each change of the bytes, never used twice."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from make.registry import owner, published
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.models import Company
from muniment.registry.publishing import publisher
from muniment.registry.review.workflow import relist_own_company, unlist_own_company
from muniment.store import postgres_feed
from muniment.store import published as published_file
from muniment.store.published import last_stamp

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch):
    """Return a function that sets the clock of publishing to some seconds after 10:00:00 in ten days."""
    start = (datetime.now(UTC) + timedelta(days=10)).replace(hour=10, minute=0, second=0, microsecond=0)

    def to(second):
        monkeypatch.setattr(publisher, "now", lambda: start + timedelta(seconds=second))

    return to


def stamps(*slugs):
    """Return the seconds of the stamps of companies and of the edition, after 10:00:00."""
    store = published_file if connection.vendor == "sqlite" else postgres_feed
    found = store.bodies(connection.connection, "company", list(slugs))
    edition, stamp = last_stamp(connection.connection)
    assert edition == publisher.head()[0]
    return [int(each[14:16]) * 60 + int(each[17:19]) for each in (*(found[slug][1] for slug in slugs), stamp)]


def describe(me, slug, text):
    update_company(me, slug, CompanyChange(description=text))


def test_each_change_has_a_stamp_of_its_own_also_within_the_same_seconds(clock):
    me = owner()
    clock(1)
    one, other = published(me).slug, published(me).slug
    clock(101.5)
    describe(me, one, "Ferries.")
    assert stamps(one) == [100, 100]
    clock(101.9)
    describe(me, one, "Ferries and boats.")
    assert stamps(one) == [102, 102]
    describe(me, other, "Lighthouses.")
    assert stamps(one, other) == [102, 100, 104]
    clock(90)
    describe(me, other, "Lighthouses and fog horns.")
    assert stamps(one, other) == [102, 102, 106]
    clock(121)
    describe(me, one, "Ferries.")
    assert stamps(one, other) == [120, 102, 120]


def test_a_document_that_is_published_again_without_a_change_keeps_its_stamp(clock):
    clock(1)
    slug = published(owner()).slug
    before = stamps(slug)
    clock(50)
    publisher.publish(publisher.AffectedRows().company(Company.objects.get(slug=slug).pk))
    assert stamps(slug) == [before[0], 50]


def test_a_listing_that_returns_does_not_return_to_a_stamp_that_it_had(clock):
    me = owner()
    clock(1)
    slug, other = published(me).slug, published(me).slug
    clock(60)
    describe(me, slug, "Ferries.")
    describe(me, other, "Boats.")
    unlist_own_company(me, slug)
    relist_own_company(me, slug)
    assert stamps(slug) == [66, 66]


def test_documents_that_are_rendered_again_get_new_stamps(clock):
    me = owner()
    clock(1)
    one, other = published(me).slug, published(me).slug
    clock(80)
    describe(me, one, "Ferries.")
    publisher.rebuild()
    assert stamps(one, other) == [82, 82, 82]


@pytest.mark.sqlite  # on PostgreSQL, the document itself has the stamp
def test_a_document_without_a_stamp_gets_one_that_no_other_edition_had(clock):
    me = owner()
    clock(1)
    slug = published(me).slug
    connection.connection.execute("UPDATE published_document SET modified_at = ''")
    clock(70)
    publisher.record_unlisted("person", "absent")
    describe(me, slug, "Ferries.")
    assert stamps(slug) == [72, 72]
