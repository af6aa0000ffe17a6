"""Documents that another version of the software published are made anew, and followers begin again."""

from contextlib import closing

import msgspec
import pytest
from django.db import OperationalError, connection, transaction

from make.registry import changes, owner, published, reviewer
from muniment.kernel.actor import COMMAND
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.frameworks import authoring as frameworks
from muniment.registry.models import Person
from muniment.registry.publishing import publisher
from muniment.registry.publishing.publisher import changed_fields
from muniment.registry.review import workflow
from muniment.store.postgres_feed import head
from muniment.store.published import decode_fields

pytestmark = pytest.mark.django_db(transaction=True)


def documents():
    """Return what is published, without the stamps of its versions."""
    if connection.vendor == "sqlite":
        asked = "SELECT kind, key, position, body, etag FROM published_document ORDER BY kind, key"
    else:
        asked = "SELECT kind, key, document FROM published_document ORDER BY kind, key"
    with connection.cursor() as cursor:
        cursor.execute(asked)
        rows = cursor.fetchall()
    if connection.vendor == "sqlite":
        return rows
    return [(kind, key, msgspec.msgpack.decode(bytes(document)) | {"modified_at": ""}) for kind, key, document in rows]


def stand():
    """Return edition and epoch."""
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        return connection.connection.execute("SELECT edition, epoch FROM published_meta").fetchone()
    return tuple(head(connection.connection)[:2])


def test_documents_of_another_version_are_rendered_again_once():
    for number in range(3):
        published(owner(), name=f"Harbour {number}")
    assert publisher.renew_outdated() is False
    before, (edition, epoch) = documents(), stand()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("UPDATE published_meta SET schema = 0")
            cursor.execute("UPDATE published_document SET body = x'00'")
        else:
            cursor.execute("UPDATE published_edition SET epoch = '0:old'")
            cursor.execute("UPDATE published_document SET document = '\\x00'")
    assert publisher.renew_outdated() is True
    assert documents() == before
    now_edition, now_epoch = stand()
    assert now_edition == edition
    assert now_epoch not in {epoch, "0:old"}
    assert publisher.renew_outdated() is False
    published(owner(), name="Harbour after")
    assert len(documents()) == len(before) + 1


def test_a_closed_connection_is_opened_again():
    published(owner())
    edition, epoch, _ = publisher.head()
    connection.close()
    assert publisher.head()[:2] == (edition, epoch)
    connection.close()
    publisher.create_tables()
    assert publisher.head()[:2] == (edition, epoch)


@pytest.mark.postgresql
def test_a_publisher_waits_for_the_lock_of_another():
    with closing(connection.copy()) as other, other.cursor() as cursor, transaction.atomic():
        cursor.execute("SET lock_timeout = 50")
        publisher.lock()
        with pytest.raises(OperationalError):
            cursor.execute("UPDATE published_edition SET value = value")


def test_only_the_framework_that_changed_is_published():
    for name in ("A", "B"):
        frameworks.create_framework(COMMAND, name=name, kind="score")
    before = len(changes())
    frameworks.update_framework(COMMAND, "a", name="Another")
    assert changes()[before:] == [("framework", "a", "updated")]


def test_the_head_is_read_and_tables_are_created_on_a_connection_that_was_closed():
    before = publisher.head()
    connection.close()
    publisher.create_tables()
    connection.close()
    assert publisher.head() == before


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
    listings.update_company(me, slug, change)
    assert feed("company", slug) == [("published", None), ("updated", ("themes", "description", "proposals"))]


def test_a_cleared_field_is_named_and_what_follows_from_a_change_too():
    me = owner()
    slug = published(me, website="https://ferry.example", positions=[{"person": {"name": "Ida Kelp"}}]).slug
    listings.update_company(me, slug, CompanyChange(website="", positions=[]), expected_totals={"positions": 1})
    assert set(feed("company", slug)[-1][1]) == {"teamSize", "positions", "website"}


def test_a_rename_names_the_members_of_the_people_that_show_the_company():
    me = owner()
    slug = published(me, positions=[{"person": {"name": "Ida Kelp"}}]).slug
    person = Person.objects.get(name="Ida Kelp").slug
    listings.update_company(reviewer(), slug, CompanyChange(name="Kelp Ferries"))
    assert feed("company", slug)[-1] == ("updated", ("name", "formerNames"))
    assert feed("person", person)[-1] == ("updated", ("positions",))


def test_an_unlisted_and_a_relisted_company_have_no_changed_fields():
    slug = published(owner()).slug
    workflow.unlist_company(reviewer(), slug, "Closed.")
    workflow.relist_company(reviewer(), slug)
    assert feed("company", slug)[-2:] == [("unlisted", None), ("published", None)]


def test_a_member_of_an_open_person_may_have_any_name():
    before, after = b'{"data":{"name":"Ida","company":"Kelp"}}', b'{"data":{"name":"Ida","company":null,"bio":"x"}}'
    assert changed_fields("person", before, after) == ("company", "bio")
    assert changed_fields("person", before, before) == ()
