"""The change feed names the members that an update changed, by any actor and on any channel."""

import pytest
from django.db import connection

from make.registry import owner, published, reviewer
from muniment.registry.company import operations
from muniment.registry.company.company_change import CompanyChange
from muniment.registry.models import Person
from muniment.registry.publishing.changed_fields import changed_fields
from muniment.registry.review import decisions
from muniment.store.change_feed import decode_fields

pytestmark = pytest.mark.django_db


def feed(kind, key):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT change, fields FROM published_change WHERE kind = %s AND key = %s ORDER BY sequence", [kind, key]
        )
        return [(change, decode_fields(fields)) for change, fields in cursor.fetchall()]


def test_an_edit_names_its_fields_and_the_parts_of_the_company():
    me = owner()
    slug = published(me).slug
    change = CompanyChange(description="Ferries.", proposals=[{"title": "A second boat"}], themes=["tides"])
    operations.update_company(me, slug, change)
    assert feed("company", slug) == [("published", None), ("updated", ("themes", "description", "proposals"))]


def test_a_cleared_field_is_named_and_what_follows_from_a_change_too():
    me = owner()
    slug = published(me, website="https://ferry.example", positions=[{"person": {"name": "Ida Kelp"}}]).slug
    operations.update_company(me, slug, CompanyChange(website="", positions=[]), expected_totals={"positions": 1})
    assert set(feed("company", slug)[-1][1]) == {"teamSize", "positions", "website"}


def test_a_rename_names_the_members_of_the_people_that_show_the_company():
    me = owner()
    slug = published(me, positions=[{"person": {"name": "Ida Kelp"}}]).slug
    person = Person.objects.get(name="Ida Kelp").slug
    operations.update_company(reviewer(), slug, CompanyChange(name="Kelp Ferries"))
    assert feed("company", slug)[-1] == ("updated", ("name", "formerNames"))
    assert feed("person", person)[-1] == ("updated", ("positions",))


def test_an_unlisted_and_a_relisted_company_have_no_changed_fields():
    slug = published(owner()).slug
    decisions.unlist_company(reviewer(), slug, "Closed.")
    decisions.relist_company(reviewer(), slug)
    assert feed("company", slug)[-2:] == [("unlisted", None), ("published", None)]


def test_a_member_of_an_open_person_may_have_any_name():
    before, after = b'{"data":{"name":"Ida","company":"Kelp"}}', b'{"data":{"name":"Ida","company":null,"bio":"x"}}'
    assert changed_fields("person", before, after) == ("company", "bio")
    assert changed_fields("person", before, before) == ()
