"""Published documents are compared with their source, and mended where the published side is the damaged one."""

from datetime import timedelta

import msgspec
import pytest
from django.db import connection, transaction

from make import registry as make
from make.registry import changes, document, item
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.jobs.queue import JobRun
from muniment.kernel.http.representations import digest
from muniment.kernel.ids import now
from muniment.registry.company import funding
from muniment.registry.models import Company, Framework
from muniment.registry.publishing import publisher, republishing, upgrade
from muniment.scrub import instance as scrub
from muniment.scrub.checks import checks
from muniment.scrub.database_file import NAME, record_unreadable
from muniment.store import postgres_feed, public_log

pytestmark = pytest.mark.django_db(transaction=True)
SEARCHES = {
    "body": "UPDATE published_document SET body = replace(body, 'Harbour', 'Evil')",
    "item": "UPDATE published_item_company SET item = replace(item, 'Harbour', 'Evil')",
    "etag": "UPDATE published_document SET etag = 'x'",
    "sort_name": "UPDATE published_document SET sort_name = 'x'",
    "provenance": "UPDATE published_document SET provenance = 'x'",
    "updated_at": "UPDATE published_document SET updated_at = 'x'",
}
STRUCTURAL = {
    "filters": "DELETE FROM published_facet",
    "search text": "UPDATE published_text_company SET name = 'evil'",
    "position": "UPDATE published_document SET position = position + 1",
    "treasuries": "UPDATE published_document SET treasury_minor = 7",
    "no number": "UPDATE published_document SET treasury_minor = 'x'",
    "facets": "UPDATE published_document SET facets = x'ff'",
    "totals": "UPDATE published_total SET n = n + 1",
    "blocks": "UPDATE published_block SET n = n + 1 WHERE kind = 'company'",
    "counts": "UPDATE published_value SET n = n + 1",
}


@pytest.fixture
def slug():
    return make.published(make.owner(), name="Harbour").slug


def sql(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def look(*, mend=False):
    return [damage for part in republishing.CHECK.whole(mend=mend, limit=2) for damage in part.damages]


def on_postgresql(slug, **values):
    """Change the published document behind Muniment's back."""
    with transaction.atomic():
        stored = next(each for each in postgres_feed.documents(connection.connection) if each.key == slug)
    changed = msgspec.structs.replace(stored, **values)
    sql("UPDATE published_document SET document = %s WHERE key = %s", msgspec.msgpack.encode(changed), slug)


def test_a_whole_registry_has_no_damage(slug):
    other = make.published(make.owner(), positions=[{"title": "Chair", "person": {"name": "Marguerite Vale"}}])
    make.link_names(other.slug)
    make.draft(make.owner(), name="Of no concern")
    assert look() == []
    assert republishing.count() == 2 + 1 + 1, "two companies, a person, and one look at what is left over"


@pytest.mark.sqlite  # its columns
@pytest.mark.parametrize("name", SEARCHES)
def test_a_damaged_published_row_is_found_and_published_again(slug, name):
    edition = publisher.head()[0]
    sql(SEARCHES[name])
    (damage,) = look()
    assert damage.subject == f"companies/{slug}"
    assert name in damage.says
    assert "run muniment republish" in damage.remedy
    (damage,) = look(mend=True)
    assert damage.is_mended
    assert look() == []
    assert document("company", slug)["company"]["name"] == item("company", slug)["name"] == "Harbour"
    assert publisher.head()[0] == edition + 1, "followers and caches are told"
    assert changes()[-1] == ("company", slug, "updated")


@pytest.mark.sqlite  # its columns
def test_what_a_read_found_damaged_is_mended_at_once_and_counted(slug):
    sql(SEARCHES["body"])
    before = scrub.stored()
    republishing.mend_damaged([("company", slug), ("company", "unlisted-since")])
    assert document("company", slug)["company"]["name"] == "Harbour"
    assert scrub.stored().mended == before.mended + 1
    republishing.mend_damaged([("company", slug)])
    assert scrub.stored().mended == before.mended + 1, "another process was faster"
    assert scrub.stored().open(checks()) == []


@pytest.mark.sqlite  # its columns
def test_what_a_read_found_and_nothing_mends_is_told_until_a_pass_has_examined_it(slug, monkeypatch):
    sql(SEARCHES["body"])
    with monkeypatch.context() as patch:
        patch.setattr(republishing, "publish_again", lambda _: None)
        for _ in range(2):
            republishing.mend_damaged([("company", slug)])
    (damage,) = scrub.stored().open(checks())
    assert (damage.check, damage.subject) == (republishing.NAME, f"companies/{slug}")
    scrub.run_whole_pass(lambda _: None)
    assert scrub.stored().open(checks()) == []
    assert look() == []


def test_turns_do_not_forget_what_reads_have_met():
    record_unreadable()
    scrub.take_turn(None)  # the first, which only sets the time of the first pass
    progress = scrub.stored()
    record_unreadable()
    scrub.store(progress)  # of a turn that ran meanwhile
    (damage,) = scrub.stored().open(checks())
    assert damage.check == NAME


@pytest.mark.sqlite  # its tables
@pytest.mark.parametrize("name", STRUCTURAL)
def test_damage_to_what_other_rows_depend_on_is_mended_by_a_rebuild(slug, name):
    epoch = publisher.head()[1]
    sql(STRUCTURAL[name])
    assert look(), name
    assert all(damage.is_mended for damage in look(mend=True))
    assert look() == []
    assert document("company", slug)["company"]["name"] == "Harbour"
    assert publisher.head()[1] != epoch, "followers start over"


@pytest.mark.sqlite  # a limit that only its search index has
def test_a_large_registry_is_not_rebuilt_while_writers_wait(slug, monkeypatch):
    monkeypatch.setattr(republishing, "MOST_TO_REBUILD", 0)
    sql(STRUCTURAL["totals"])
    found = {(damage.is_mended, damage.remedy) for damage in look(mend=True)}
    assert found == {(False, "run muniment republish --rebuild")}
    assert republishing.republish().is_rebuilt
    assert look() == []


@pytest.mark.sqlite  # its tables
def test_a_list_without_its_items_is_mended_row_by_row(slug):
    epoch = publisher.head()[1]
    sql("DELETE FROM published_item_company")
    assert "1 documents of kind company" in str(look())
    look(mend=True)
    assert look() == []
    assert publisher.head()[1] == epoch


def test_a_missing_published_document_is_published_again(slug):
    sql("DELETE FROM published_document")
    assert any(damage.says == "is not published, though its source is public" for damage in look())
    look(mend=True)
    assert look() == []
    assert document("company", slug)["company"]["name"] == "Harbour"


def test_a_source_that_changed_without_an_operation_is_not_published(slug):
    """A flipped bit of the source must not reach readers; the document's digest proves the published side."""
    edition = publisher.head()[0]
    Company.objects.filter(slug=slug).update(name="Harbous")
    for mend in (False, True):
        (damage,) = look(mend=mend)
        assert not damage.is_mended
        assert "its source has changed without an operation" in damage.remedy
        assert "run muniment republish to publish the source as it is" in damage.remedy
    assert document("company", slug)["company"]["name"] == "Harbour"
    assert publisher.head()[0] == edition
    done = republishing.republish()
    assert (done.examined, done.replaced, done.unlisted, done.is_rebuilt) == (1, 1, 0, False)
    assert document("company", slug)["company"]["name"] == "Harbous"
    assert look() == []


@pytest.mark.parametrize("kind", ["company", "person", "framework"])
def test_a_published_document_without_a_source_is_found_and_unlisted_on_request(kind):
    slug = make.published(make.owner(), positions=[{"title": "Chair", "person": {"name": "Marguerite Vale"}}]).slug
    make.link_names(slug)
    table, key = {
        "company": ("registry_company", slug),
        "person": ("registry_person", "marguerite-vale"),
        "framework": ("registry_framework", "x"),
    }[kind]
    if kind == "framework":
        assert not Framework.objects.exists()
        assert republishing.strays(kind) == []
        return
    sql(f"UPDATE {table} SET published = %s", False)
    found = [damage for damage in look(mend=True) if damage.says == "is published without a public source"]
    assert [damage.subject for damage in found] == [f"{republishing.COLLECTIONS[kind]}/{key}"]
    assert republishing.republish().unlisted == 1
    assert document(kind, key) is None


@pytest.mark.sqlite  # its columns
def test_an_edited_body_with_a_matching_etag_is_known_by_the_log(slug):
    (body,) = make.bodies().values()
    edited = body.replace(b"Harbour", b"Evil")
    sql("UPDATE published_document SET body = %s, etag = %s", edited, digest(edited))
    (damage,) = look(mend=True)
    assert damage.is_mended
    assert document("company", slug)["company"]["name"] == "Harbour"
    assert look() == []


@pytest.mark.postgresql
def test_an_edited_document_is_known_by_the_log(slug):
    (body,) = make.bodies().values()
    on_postgresql(slug, body=body.replace(b"Harbour", b"Evil"))
    (damage,) = look(mend=True)
    assert damage.is_mended
    assert document("company", slug)["company"]["name"] == "Harbour"


def test_a_change_that_is_not_the_one_logged_is_found_and_a_rebuild_begins_another_feed(slug):
    def faults():
        return [str(damage) for part in republishing.LOG.whole() for damage in part.damages]

    assert faults() == []
    sql("UPDATE published_change SET key = 'evil'")
    (fault,) = faults()
    assert "is not the one that was logged" in fault
    assert "run muniment republish --rebuild" in fault
    republishing.republish(rebuild=True)
    assert faults() == []


def test_a_log_that_does_not_verify_is_found_and_a_rebuild_begins_another(slug):
    sql("UPDATE published_leaf SET salt = %s", bytes(16))
    sql("UPDATE published_log SET origin = 'registry.example/one'")
    damages = [damage for part in republishing.LOG.whole() for damage in part.damages]
    assert damages[-1].says == "the log has another root than was logged"
    republishing.republish(rebuild=True)
    assert publisher.log_faults() == []
    begun = public_log.state(connection.connection)
    assert begun.former.origin == "registry.example/one"
    assert begun.origin == f"registry.example/{begun.name}"


@pytest.mark.postgresql
def test_an_undecodable_document_is_published_again(slug):
    sql("UPDATE published_document SET document = '\\x00'")
    (damage,) = look(mend=True)
    assert damage.is_mended
    assert document("company", slug)["company"]["name"] == "Harbour"


@pytest.mark.postgresql
def test_an_edited_list_item_is_published_again(slug):
    on_postgresql(slug, item=b'{"name":"Evil"}', name="Evil")
    (damage,) = look(mend=True)
    assert damage.is_mended
    assert item("company", slug)["name"] == "Harbour"


@pytest.mark.postgresql
def test_a_document_of_an_earlier_version_is_no_damage_and_a_job_publishes_it_again(slug):
    (body,) = make.bodies().values()
    other = make.published(make.owner(), name="Pier").slug
    on_postgresql(slug, body=body.replace(b"Harbour", b"Former"), schema=0)
    on_postgresql(other, name="Evil")
    by_subject = {damage.subject: damage for damage in look()}
    outdated = by_subject.pop(f"companies/{slug}")
    assert (outdated.is_minor, "by a node of an earlier version" in outdated.says) == (True, True)
    assert by_subject.keys() == {f"companies/{other}"}
    first = JobRun(Job.objects.get(pk=queue.enqueue(upgrade.KIND)), upgrade.HANDLER)
    assert upgrade.HANDLER.work(first) == {"replaced": 1}
    assert document("company", slug)["company"]["name"] == "Harbour"
    assert {damage.subject for damage in look()} == {f"companies/{other}"}
    again = JobRun(Job.objects.exclude(pk=first.id).get(kind=upgrade.KIND), upgrade.HANDLER)
    assert upgrade.HANDLER.work(again) == {"replaced": 0}
    assert Job.objects.filter(kind=upgrade.KIND).count() == 2, "what is found again is looked for again, and no more"


def test_a_listing_whose_round_opens_before_the_job_of_that_day_has_no_damage(monkeypatch):
    tomorrow = now() + timedelta(days=1)
    make.published(make.owner(), fundingRounds=[{"name": "Seed", "opened": tomorrow.date().isoformat()}])
    for module in ("company.funding", "publishing.documents"):
        monkeypatch.setattr(f"muniment.registry.{module}.now", lambda: tomorrow)
    assert look() == []
    assert funding.publish_by_date() == 1
    assert look() == []


@pytest.mark.sqlite  # its columns
def test_republishing_counts_what_it_replaced_of_all_kinds(slug):
    other = make.published(make.owner(), positions=[{"title": "Chair", "person": {"name": "Marguerite Vale"}}])
    make.link_names(other.slug)
    sql(SEARCHES["etag"])
    assert republishing.republish().replaced == 2 + 1, "two companies and a person"


def test_republishing_changes_nothing_where_nothing_differs(slug):
    head = publisher.head()
    done = republishing.republish()
    assert (done.examined, done.replaced, done.unlisted, done.is_rebuilt) == (1, 0, 0, False)
    assert done.before == done.after
    assert publisher.head() == head


def test_a_rebuild_keeps_every_document_under_a_new_feed(slug):
    before, (edition, epoch, _) = make.bodies(), publisher.head()
    told = []
    done = republishing.republish(rebuild=True, told=told.append)
    assert (done.is_rebuilt, done.examined, told) == (True, 1, [])
    assert make.bodies() == before
    assert publisher.head()[0] == edition + 1
    assert publisher.head()[1] != epoch
    assert make.published(make.owner(), name="Harbour after").slug
    assert look() == []
