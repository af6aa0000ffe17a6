"""The scrub of an instance: a job that stores its progress, and forgets what names an erased person."""

from types import SimpleNamespace

import pytest
from django.db import DatabaseError, OperationalError, connection

from make import registry as make
from muniment.jobs import handlers
from muniment.registry.models import Person
from muniment.registry.people.erasing import erase_person
from muniment.scrub import database_file, instance, orphan_rows
from muniment.scrub.checks import Check, Damage, checks
from muniment.scrub.progress import Progress

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = [
    *("database pages", "references", "published documents", "public log", "pictures", "credit ledger"),
    "document files",
]
RUN = SimpleNamespace(check=lambda: None)


def test_the_job_is_periodic_and_stores_where_it_stopped():
    assert handlers.handler("scrub.due") is instance.HANDLER
    instance.take_turn(RUN, clock=lambda: 1_800_000_000.0)
    assert instance.stored().check == ""
    instance.take_turn(RUN, clock=lambda: 1_800_003_600.0)
    begun = instance.stored()
    assert begun.check in NAMES
    assert begun.examined < begun.total


def test_a_whole_pass_finds_nothing_in_a_whole_instance():
    make.published(make.owner(), positions=[{"title": "Chair", "person": {"name": "Marguerite Vale"}}])
    told = []
    done = instance.run_whole_pass(told.append)
    assert [check.name for check in checks()] == NAMES
    assert (done.former, done.check) == ((), "")
    assert done.examined >= done.total - len(NAMES)
    assert told[-1] == done == instance.stored()


def test_a_row_that_refers_to_a_missing_row_is_found():
    company = make.draft(make.owner())
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA foreign_keys=OFF")
        else:
            cursor.execute("SET session_replication_role = replica")
        cursor.execute("DELETE FROM registry_company WHERE slug = %s", [company.slug])
    found = [damage for part in orphan_rows.CHECK.whole() for damage in part.damages]
    connection.close()
    assert any(damage.subject == "registry_ownership.company_id" for damage in found)
    assert "1 rows refer to missing rows of registry_company" in str(found)


def test_a_check_that_cannot_decode_what_is_stored_reports_it_and_one_without_a_database_does_not():
    def look(error):
        def raising(*_):
            raise error

        return Check(name="shelf", fine="", count=raising, look=raising)

    damaged = look(DatabaseError("database disk image is malformed"))
    (damage,) = damaged.part("", 1, mend=True).damages
    assert damage.says == "cannot be read: database disk image is malformed"
    assert damaged.size() == 1
    away = look(OperationalError("the connection is closed"))
    with pytest.raises(OperationalError):
        away.part("", 1, mend=True)
    with pytest.raises(OperationalError):
        away.size()


def test_what_was_found_about_a_person_is_erased_with_the_person():
    judge = make.reviewer()
    slug = make.published(make.owner(), positions=[{"title": "Chair", "person": {"name": "Marguerite Vale"}}]).slug
    make.link_names(slug)
    person = Person.objects.get()
    found = [
        Damage(check="published documents", subject=f"{room}/{key}", says="body not as in the source", remedy="none")
        for room, key in (("people", person.slug), ("companies", slug))
    ]
    instance.store(Progress(began_at=1.0, check="references", damages=(found[0],), former=tuple(found)))
    erase_person(judge, person.slug)
    stored = instance.stored()
    assert (stored.damages, stored.former) == ((), (found[1],))


@pytest.mark.sqlite
@pytest.mark.django_db
def test_damage_that_a_whole_pass_does_not_find_is_not_known_any_more():
    assert not database_file.is_unreadable()
    database_file.record_unreadable()
    assert database_file.is_unreadable()
    instance.run_whole_pass(lambda _: None)
    assert not database_file.is_unreadable()
