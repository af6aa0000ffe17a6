"""A listing with a date in the future is at the end of lists until that day."""

from datetime import UTC, datetime, timedelta

import pytest

from make.registry import changes, lines, owner, published
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, HistoryEntry
from muniment.registry.publishing import documents, listing_dates

pytestmark = pytest.mark.django_db


def day(offset: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=offset):%Y-%m-%d}"


def order() -> list[str]:
    """Return the slugs of all listings, the newest first."""
    found = [each for each in documents.all_documents() if each.kind == "company"]
    return [each.key for each in sorted(found, key=lambda each: -each.position)]


def bring(tmp_path, **dates: str) -> None:
    rows = [{"company": {"id": slug, "name": slug.title(), "listedAt": at}} for slug, at in dates.items()]
    import_registry(lines(tmp_path / "companies.jsonl", *rows))


@pytest.fixture
def on_day(monkeypatch):
    def travel(offset):
        moment = datetime.now(UTC) + timedelta(days=offset)
        monkeypatch.setattr(listing_dates, "now", lambda: moment)

    return travel


def test_a_future_date_is_last_until_its_day_and_then_first(tmp_path, on_day):
    bring(tmp_path, ahead=day(2), old="2020-01-01", new=day(0))
    assert order() == ["new", "old", "ahead"]
    entries = HistoryEntry.objects.count()
    seen = []
    for offset in range(4):
        on_day(offset)
        before = len(changes())
        seen.append((listing_dates.publish_by_date(), order()[0], len(changes()) - before))
        assert listing_dates.publish_by_date() == 0
    assert seen == [(0, "new", 0), (0, "new", 0), (1, "ahead", 1), (0, "ahead", 0)]
    assert HistoryEntry.objects.count() == entries


def test_a_listing_that_an_earlier_version_published_ahead_is_moved(tmp_path):
    bring(tmp_path, ahead=day(9), old="2020-01-01")
    Company.objects.update(listed_ahead=False)
    assert order() == ["ahead", "old"]
    assert listing_dates.publish_by_date() == 1
    assert order() == ["old", "ahead"]


def test_an_import_moves_a_listing_with_its_date(tmp_path):
    bring(tmp_path, one=day(9), two="2020-01-01")
    bring(tmp_path, one="2021-01-01", two=day(9))
    assert order() == ["one", "two"]
    assert listing_dates.publish_by_date() == 0


def test_an_approved_listing_of_today_is_left_alone():
    published(owner())
    assert listing_dates.publish_by_date() == 0
