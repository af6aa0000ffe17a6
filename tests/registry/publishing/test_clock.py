"""Times of the feed and of its documents never go back, whatever the clock does."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from make.registry import document, lines, owner, published
from muniment.kernel.wire import timestamp
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange import batch
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company
from muniment.registry.publishing import publisher
from muniment.registry.publishing.redaction import retire_exports

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch):
    """Return a function that sets the clock of publishing back by days."""

    def back(days):
        def earlier():
            return datetime.now(UTC) - timedelta(days=days)

        for module in (publisher, listings, batch):
            monkeypatch.setattr(module, "now", earlier)

    return back


def times():
    with connection.cursor() as cursor:
        cursor.execute("SELECT at FROM published_change ORDER BY sequence")
        return [at for (at,) in cursor.fetchall()]


def test_a_clock_that_is_set_back_takes_neither_the_feed_nor_a_document_back(clock):
    me = owner()
    slug, other = published(me).slug, published(me).slug
    before, untouched = document("company", slug)["company"]["updatedAt"], document("company", other)
    last = times()[-1]
    clock(days=1)
    update_company(me, slug, CompanyChange(description="Ferries."))
    assert times() == sorted(times())
    assert before <= document("company", slug)["company"]["updatedAt"] == last == publisher.head()[2]
    assert timestamp(Company.objects.get(slug=slug).updated_at) == last, "the source says the same"
    assert document("company", other) == untouched
    retire_exports()
    assert times()[-1] == last


def test_times_that_an_import_brings_are_kept(clock, tmp_path):
    published(owner())
    clock(days=1)
    line = {"company": {"id": "old-harbour", "name": "Old Harbour", "updatedAt": "2025-01-01T00:00:00Z"}}
    import_registry(lines(tmp_path / "companies.jsonl", line))
    assert document("company", "old-harbour")["company"]["updatedAt"] == "2025-01-01T00:00:00.000000Z"
    assert times() == sorted(times())
