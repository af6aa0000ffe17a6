"""Rows that SQL loads are what the ORM would load, in as few statements as is promised."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from make.registry import owner
from make.reports import framework
from muniment.assessments import operations as runs
from muniment.kernel.problems import BadRequest
from muniment.registry import history
from muniment.registry.company.access import owned
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import create_company, update_company
from muniment.registry.models import Company, GivenSlug, HistoryEntry, Position
from muniment.registry.sql import insert, insert_from, insert_values, rows, stored

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


def test_inserted_rows_are_stored_as_the_orm_stores_them():
    me = owner()
    slug = create_company(me, EVERYTHING).slug
    values = Company.objects.values().get(slug=slug)
    twins = [
        Company(**{**values, "id": None, "slug": name, "extra": {"größe": [1, None]}}) for name in ("by-orm", "by-sql")
    ]
    Company.objects.bulk_create(twins[:1])
    insert(twins[1:])
    insert([])
    names = [field.column for field in Company._meta.concrete_fields if field.column not in {"id", "slug"}]
    kept = rows(f"SELECT {', '.join(names)} FROM registry_company WHERE slug IN (%s, %s)", ["by-orm", "by-sql"])
    assert kept[0] == kept[1]
    whole = {each["slug"]: each for each in stored(Company, "SELECT * FROM registry_company WHERE 1 = %s", [1])}
    assert whole["by-sql"] == Company.objects.values().get(slug="by-sql")
    assert twins[1].pk == whole["by-sql"]["id"]


def test_rows_inserted_by_their_values_are_stored_as_the_orm_stores_them():
    company = Company.objects.get(slug=create_company(owner(), EVERYTHING).slug)
    values = {"company_id": company.pk, "item_id": "7c2m", "title": None, "extra": {"größe": [1, None], "a": {}}}
    Position.objects.create(rank=8, name="Ida Löwe", **values)
    insert_values(Position, ("rank", "name", *values), [(9, "Ida Löwe", *values.values())])
    insert_values(Position, ("rank", "name", *values), [])
    names = "company_id, person_id, name, item_id, title, extra"
    by_orm, by_values = rows(f"SELECT {names} FROM registry_position WHERE rank IN (%s, %s) ORDER BY rank", [8, 9])
    assert by_orm == by_values


def test_rows_inserted_by_their_values_are_refused_as_the_orm_refuses_them():
    names, text = ("kind", "slug"), "of\0nothing"
    with pytest.raises(BadRequest, match="slug contains the character"), transaction.atomic():
        insert_values(GivenSlug, names, [("company", "whole"), ("company", text)])
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_values(GivenSlug, names, [("company", "twice"), ("company", "twice")])
    assert not GivenSlug.objects.filter(slug__in=["whole", "twice"]).exists()


def test_the_entries_of_created_rows_are_those_of_an_empty_change():
    me = owner()
    company = Company.objects.get(slug=create_company(me, EVERYTHING).slug)
    history.insert_creations(me, "imported", Company, [company.pk], None)
    insert([history.entry(me, "imported", before={}, after={}, company=company)])
    one, other = HistoryEntry.objects.filter(action="imported").order_by("pk").values()
    assert {name for name in one if one[name] != other[name]} == {"id", "at"}


def test_inserted_rows_refer_to_rows_that_had_no_key_yet():
    company = Company(slug="later", name="Later")
    entry = history.entry(owner(), "imported", before={}, after={}, company=company)
    insert([company])
    insert([entry])
    assert HistoryEntry.objects.get(company=company).pk == entry.pk


def test_rows_that_cannot_be_stored_are_refused_together():
    with pytest.raises(IntegrityError), transaction.atomic():
        insert([GivenSlug(kind="company", slug="one"), GivenSlug(kind="company", slug="one")])
    with pytest.raises(BadRequest, match=r"U\+0000"), transaction.atomic():
        insert([Company(slug="fine", name="Fine"), Company(slug="nul", name="a\0b")])
    assert not GivenSlug.objects.filter(slug="one").exists()
    assert not Company.objects.filter(slug="fine").exists()


def test_inserted_rows_get_keys_that_no_row_has_had():
    Company.objects.all().delete()
    first, second = (Company(slug=slug, name="Tide") for slug in ("first", "second"))
    insert([first, second])
    assert second.pk == first.pk + 1
    Company.objects.all().delete()
    third = Company(slug="third", name="Tide")
    insert([third])
    assert third.pk > second.pk
    assert create_company(owner(), EVERYTHING).slug
    assert Company.objects.latest("pk").pk > third.pk


def test_rows_are_inserted_for_those_of_another_table():
    made = [Company(slug=slug, name="Tide") for slug in ("one", "two", "three")]
    insert(made)
    insert_from(Company, [made[2].pk, made[0].pk], GivenSlug, {"slug": "slug"}, {"kind": "company"})
    insert_from(Company, [], GivenSlug, {"slug": "slug"}, {"kind": "company"})
    assert list(GivenSlug.objects.order_by("pk").values_list("kind", "slug")) == [
        ("company", "one"),
        ("company", "three"),
    ]


def test_rows_for_those_of_another_table_are_refused_as_the_orm_refuses_them():
    made = Company(slug="one", name="Tide")
    insert([made])
    insert_from(Company, [made.pk], GivenSlug, {"slug": "slug"}, {"kind": "company"})
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_from(Company, [made.pk], GivenSlug, {"slug": "slug"}, {"kind": "company"})
    assert GivenSlug.objects.count() == 1
