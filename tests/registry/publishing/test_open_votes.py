"""Published companies carry the days on which their open votes end."""

import pytest
from django.db import connection

from make.registry import owner, published
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.store.lists.highlights import VOTES_END

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def days():
    with connection.cursor() as cursor:
        cursor.execute("SELECT value FROM published_value WHERE name = %s AND n > 0 ORDER BY value", [VOTES_END])
        return [row[0] for row in cursor.fetchall()]


def test_only_votes_that_can_be_cast_count_and_each_day_once():
    me = owner()
    proposals = [
        {"title": "A second boat", "status": "active", "endDate": "2199-12-05"},
        {"title": "A third boat", "status": "active", "endDate": "2199-12-05"},
        {"title": "A mole", "status": "active", "endDate": "2199-11-30"},
        {"title": "Open without an end", "status": "active"},
        {"title": "Paint", "status": "passed", "endDate": "2199-12-01"},
    ]
    slug = published(me, proposals=proposals).slug
    assert days() == ["2199-11-30", "2199-12-05"]
    change = CompanyChange(proposals=[{**proposals[0], "status": "passed"}])
    listings.update_company(me, slug, change, expected_totals={"proposals": 5})
    assert days() == []
