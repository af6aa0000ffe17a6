"""Rows that SQL loads are what the ORM would load, in as few statements as is promised."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from make.registry import owner
from make.reports import framework
from muniment.assessments import operations as runs
from muniment.registry import history
from muniment.registry.company.access import owned
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import create_company, update_company
from muniment.registry.models import Company, HistoryEntry

pytestmark = pytest.mark.django_db
EVERYTHING = CompanyChange(
    name="Tide Works",
    symbol="TIDE",
    teamSize=7,
    treasury="$1,234.56",
    themes=["Water", "Energy"],
    website="https://tide.example",
    socials={"twitter": "https://twitter.com/tide"},
)


def test_a_listing_that_was_loaded_by_sql_is_saved_and_read_again_whole():
    me = owner()
    made = create_company(me, EVERYTHING)
    before = Company.objects.values().get(slug=made.slug)
    update_company(me, made.slug, CompanyChange(teamSize=8))
    after = Company.objects.values().get(slug=made.slug)
    assert {key for key in after if after[key] != before[key]} == {"team_size", "version", "updated_at"}
    assert owned(me, made.slug).team_size == 8


def test_how_far_runs_are_takes_one_statement_that_reads_no_specification(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    me = owner()
    slug = create_company(me, EVERYTHING).slug
    started = [runs.start_run(me, slug, framework()).run.row.pk for _ in range(3)]
    runs.execute_run(me, started[0])
    looks = {1: lambda: [runs.get_run(me, started[0])], 3: lambda: runs.list_runs(me).items}
    for statements, look in looks.items():  # the list counts and chooses first
        with CaptureQueriesContext(connection) as asked:
            shown = [each.to_wire() for each in look()]
        assert len(asked) == statements
        assert not [each for each in asked if "registry_frameworkspecification" in each["sql"]]
        assert {each["progress"]["total"] for each in shown} == {3}
    assert sorted(each["runId"] for each in shown) == sorted(started)


def test_the_entries_of_created_rows_are_those_of_an_empty_change():
    me = owner()
    company = Company.objects.get(slug=create_company(me, EVERYTHING).slug)
    history.insert_creations(me, "imported", "company", [company], None)
    HistoryEntry.objects.bulk_create([history.entry(me, "imported", before={}, after={}, company=company)])
    one, other = HistoryEntry.objects.filter(action="imported").order_by("pk").values()
    assert {name for name in one if one[name] != other[name]} == {"id", "at"}
