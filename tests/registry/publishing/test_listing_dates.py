"""Lists are ordered and bounded by the listing date, whether it is past, in the future or unknown."""

from datetime import UTC, datetime, timedelta

import pytest

from make.published import Publisher, ids
from make.registry import changes, lines
from muniment.registry.exchange.importer import import_registry
from muniment.registry.publishing import documents
from muniment.schema.objects import registry_schema
from muniment.store.queries import ListQuery
from muniment.store.reader import Reader

pytestmark = pytest.mark.django_db
LISTING = registry_schema("USD").listings["company"]


def day(offset: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=offset):%Y-%m-%d}"


def bring(tmp_path, **dates: str | None) -> None:
    """Import listings with these dates; those without a date are undated."""
    rows = [
        {"company": {"id": slug, "name": slug.title(), **({"listedAt": at} if at else {})}}
        for slug, at in dates.items()
    ]
    import_registry(lines(tmp_path / "companies.jsonl", *rows))


@pytest.fixture
def listed(tmp_path):
    """Return the slugs of a page of everything that is published, and the cursor of the next one."""
    publisher = Publisher(tmp_path / "published.sqlite3")
    reader = Reader(tmp_path / "published.sqlite3")

    def page(number=1, *, size=25, cursor=None, **bounds):
        values = {name: LISTING.criteria[name].parse(text) for name, text in bounds.items()}
        query = ListQuery(page=number, page_size=size, cursor=cursor, **LISTING.select(values)._asdict())
        publisher.publish(*documents.all_documents())
        found = reader.page("company", query)
        return ids(found), found.next_cursor

    yield page
    reader.close()
    publisher.close()


def test_the_newest_date_is_first_though_it_is_in_the_future_and_undated_listings_are_last(tmp_path, listed):
    bring(tmp_path, undated=None, old="2020-01-01", ahead=day(2), far="2999-12-31", new=day(0), blank=None)
    newest = ["far", "ahead", "new", "old", "blank", "undated"]
    assert listed()[0] == newest
    assert [listed(page, size=2)[0] for page in (1, 2, 3)] == [newest[:2], newest[2:4], newest[4:]]
    walked, cursor = listed(size=1)
    while cursor:
        rows, cursor = listed(size=1, cursor=cursor)
        walked += rows
    assert walked == newest


def test_bounds_of_the_date_include_their_day_and_days_in_the_future(tmp_path, listed):
    bring(tmp_path, undated=None, old="2020-01-01", ahead=day(2), new=day(0))
    assert listed(listedFrom=day(2))[0] == ["ahead"]
    assert listed(listedFrom=day(3))[0] == []
    assert listed(listedFrom=day(1))[0] == ["ahead"]
    assert listed(listedTo=day(1))[0] == ["new", "old"]
    assert listed(listedTo=day(2))[0] == ["ahead", "new", "old"]
    assert listed(listedFrom="2020-01-01", listedTo="2020-01-01")[0] == ["old"]


def test_an_import_moves_a_listing_with_its_date(tmp_path, listed):
    bring(tmp_path, one=day(9), two="2020-01-01")
    before = len(changes())
    bring(tmp_path, one="2021-01-01", two=day(9))
    assert (listed()[0], len(changes()) - before) == (["two", "one"], 2)
