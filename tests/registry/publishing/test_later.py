"""A long import publishes people once, after its companies; whatever ends it, everybody who waits is published."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import msgspec
import pytest
from django.db import connection, transaction

from make import registry as make
from make.registry import bring, changes, document, keys, lines
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.jobs.queue import JobRun
from muniment.kernel.ids import now
from muniment.kernel.wire import timestamp
from muniment.registry.exchange import importer, reading
from muniment.registry.models import Company, Person, Position, State, WaitingPerson
from muniment.registry.people.erasing import erase_person
from muniment.registry.publishing import later, publisher, republishing
from muniment.registry.publishing.publisher import AffectedRows
from muniment.store import postgres_feed
from services.ports import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def batches_of_two(monkeypatch):
    """Let an import be long after its first batch, of two rows."""
    monkeypatch.setattr(reading, "BATCH_LINES", 2)
    monkeypatch.setattr(importer, "BATCH_LINES", 2)


def company(number, *people, **members):
    positions = [{"title": "Director", "person": {"name": slug.title(), "slug": slug}} for slug in people]
    row = {"company": {"id": f"c{number}", "name": f"Company {number}", **members}}
    return {**row, "positions": positions} if people else row


def bring_companies(folder, *rows, **options):
    return bring(lines(folder / "companies.jsonl", *rows), **options)


def changes_of(slug):
    return [change for kind, key, change in changes() if (kind, key) == ("person", slug)]


def companies_of(slug):
    return [place["company"]["id"] for place in document("person", slug)["positions"]]


def names_of(slug):
    return [place["company"]["name"] for place in document("person", slug)["positions"]]


def waiting():
    return sorted(WaitingPerson.objects.values_list("person__slug", flat=True))


def damages():
    return [damage for part in republishing.CHECK.whole(mend=False, limit=2) for damage in part.damages]


class Stop:
    """Looks at a running import after each of its batches, and interrupts it after the one with number *last*."""

    def __init__(self, look=lambda: None, last=99):
        self.look, self.last, self.seen = look, last, []

    def __call__(self, *_):
        self.seen.append(self.look())
        if len(self.seen) == self.last:
            raise KeyboardInterrupt


def interrupted(folder, *rows, last):
    with pytest.raises(KeyboardInterrupt):
        bring_companies(folder, *rows, progress=Stop(last=last))


def run_job():
    run = JobRun(Job.objects.get(pk=queue.enqueue(later.HANDLER.kind)), later.HANDLER)
    run.check = lambda: None
    return later.HANDLER.work(run)


@pytest.mark.usefixtures("batches_of_two")
def test_a_person_of_many_companies_is_published_with_the_first_and_after_the_last(tmp_path):
    look = Stop(lambda: (waiting(), len(companies_of("ada")), damages()))
    told = []
    rows = [company(number, "ada") for number in range(8)]
    bring_companies(tmp_path, *rows, progress=look, publishing=lambda *done: told.append(done))
    assert look.seen == [([], 2, []), (["ada"], 2, []), (["ada"], 2, []), (["ada"], 2, [])]
    assert changes_of("ada") == ["published", "updated"]
    assert changes()[-1] == ("person", "ada", "updated")
    assert sorted(companies_of("ada")) == [f"c{number}" for number in range(8)]
    assert (waiting(), told, damages()) == ([], [(1, 1)], [])


def test_a_short_import_publishes_people_with_their_companies(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_LINES", 2)
    monkeypatch.setattr(importer, "BATCH_LINES", 401)  # transactions have room for 100, 200 and 400 rows
    look = Stop(lambda: len(companies_of("ada")))
    bring_companies(tmp_path, *[company(number, "ada") for number in range(6)], progress=look)
    assert (look.seen, changes_of("ada")) == ([2, 4, 6], ["published", "updated", "updated"])


@pytest.mark.usefixtures("batches_of_two")
def test_a_person_who_is_new_or_not_public_is_published_with_the_company_that_links_to_them(tmp_path):
    look = Stop(lambda: sorted(slug for kind, slug, _ in _public() if kind == "person"))
    bring_companies(tmp_path, company(1), company(2), company(3, "bo"), company(4), progress=look)
    assert look.seen == [[], ["bo"]]
    Person.objects.create(slug="cy", name="Cy")  # stored, but public by nothing yet
    bring_companies(tmp_path, company(5), company(6), company(7, "cy"), company(8), progress=look)
    assert look.seen[2:] == [["bo"], ["bo", "cy"]]


def _public():
    with transaction.atomic():
        return list(publisher.etags())


@pytest.mark.usefixtures("batches_of_two")
def test_what_is_not_true_any_more_does_not_wait(tmp_path):
    bring_companies(tmp_path, company(1, "ada"), company(2, "bo"), company(3, "cy"))
    look = Stop(lambda: (waiting(), names_of("ada"), companies_of("bo")))
    renamed = company(1, "ada", name="Another")
    left = {**company(2), "positions": []}
    # In their second batch, the companies of Ada and Bo change; besides, new ones name them, and Cy.
    rows = [company(8), company(9), renamed, company(10, "ada", "cy"), left, company(11, "bo")]
    bring_companies(tmp_path, *rows, progress=look)
    (_, former, _), (second, names, _), (third, _, of_bo) = look.seen
    assert (former, second, sorted(names)) == (["Company 1"], ["cy"], ["Another", "Company 10"])
    assert (third, of_bo) == (["cy"], ["c11"])
    assert sorted(companies_of("cy")) == ["c10", "c3"]
    assert damages() == []


@pytest.mark.usefixtures("batches_of_two")
def test_drafts_of_a_long_import_change_nothing_public(tmp_path):
    bring_companies(tmp_path, company(1, "ada"))
    bring_companies(tmp_path, company(2), company(3), company(4, "ada"), company(5), draft=True)
    assert (companies_of("ada"), waiting()) == (["c1"], [])


@pytest.mark.usefixtures("batches_of_two")
def test_a_job_publishes_who_waits_after_an_interrupted_import(tmp_path):
    rows = [company(number, "ada", "bo") for number in range(6)]
    interrupted(tmp_path, *rows, last=2)
    assert (waiting(), companies_of("ada")) == (["ada", "bo"], ["c1", "c0"])
    assert damages() == []
    assert run_job() == {"people": 2}
    assert (waiting(), len(companies_of("ada")), len(companies_of("bo"))) == ([], 4, 4)
    assert run_job() == {"people": 0}
    assert damages() == []


@pytest.mark.usefixtures("batches_of_two")
def test_the_next_import_publishes_who_waits(tmp_path):
    rows = [company(number, "ada") for number in range(4)]
    interrupted(tmp_path, *rows, last=2)
    bring(lines(tmp_path / "other" / "companies.jsonl", company(9)))
    assert (waiting(), len(companies_of("ada"))) == ([], 4)


@pytest.mark.usefixtures("batches_of_two")
def test_people_are_published_in_transactions_of_a_chunk(tmp_path, monkeypatch):
    names = ("ada", "bo", "cy", "di", "ed")
    interrupted(tmp_path, *[company(number, *names) for number in range(4)], last=2)
    monkeypatch.setattr(later, "CHUNK", 2)
    editions = [publisher.head()[0]]
    counts = []
    for count in later.publish_waiting():
        counts.append(count)
        editions.append(publisher.head()[0])
    assert counts == [2, 2, 1]
    assert [after - before for before, after in pairwise(editions)] == counts


@pytest.mark.usefixtures("batches_of_two")
def test_a_person_who_is_erased_while_waiting_is_published_by_nothing(tmp_path):
    interrupted(tmp_path, *[company(number, "ada", "bo") for number in range(4)], last=2)
    erase_person(make.reviewer(), "ada")
    assert waiting() == ["bo"]
    assert run_job() == {"people": 1}
    assert document("person", "ada") is None


@pytest.mark.usefixtures("batches_of_two")
def test_publishing_again_serves_what_a_person_waits_for(tmp_path):
    interrupted(tmp_path, *[company(number, "ada") for number in range(4)], last=2)
    before = Person.objects.get().updated_at
    publisher.rebuild()
    assert (len(companies_of("ada")), waiting(), damages()) == (4, [], [])
    assert Person.objects.get().updated_at > before


@pytest.mark.usefixtures("batches_of_two")
def test_republish_publishes_who_waits(tmp_path):
    interrupted(tmp_path, *[company(number, "ada") for number in range(4)], last=2)
    republishing.republish()
    assert (len(companies_of("ada")), waiting()) == (4, [])


@pytest.mark.usefixtures("batches_of_two")
def test_damage_to_the_document_of_a_person_who_waits_is_found(tmp_path):
    interrupted(tmp_path, *[company(number, "ada") for number in range(4)], last=2)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("UPDATE published_document SET body = replace(body, 'Ada', 'Eva') WHERE key = 'ada'")
    else:
        with transaction.atomic():
            stored = next(each for each in postgres_feed.documents(connection.connection) if each.key == "ada")
        changed = msgspec.structs.replace(stored, body=stored.body.replace(b"Ada", b"Eva"))
        with connection.cursor() as cursor:
            statement = "UPDATE published_document SET document = %s WHERE key = 'ada'"
            cursor.execute(statement, [msgspec.msgpack.encode(changed)])
    assert [damage.subject for damage in damages()] == ["people/ada"]


@pytest.mark.usefixtures("batches_of_two")
def test_a_person_changes_when_they_are_published_unless_their_row_says_when(tmp_path):
    said = "2024-05-01T00:00:00.000000Z"
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada", "updatedAt": said}, {"slug": "bo", "name": "Bo"})
    seen = []
    lines(tmp_path / "companies.jsonl", *[company(number, "ada", "bo") for number in range(4)])
    bring(tmp_path, publishing=lambda *_: None, progress=lambda *_: seen.append(timestamp(now())))
    changed = {slug: document("person", slug)["updatedAt"] for slug in ("ada", "bo")}
    assert changed["ada"] == said
    assert changed["bo"] > seen[-1], "so that a client which asked meanwhile does not miss it"


@pytest.mark.usefixtures("batches_of_two")
def test_whether_a_person_keeps_their_time_of_change_is_said_by_the_last_import(tmp_path):
    said = "2024-05-01T00:00:00.000000Z"
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada", "updatedAt": said}, {"slug": "bo", "name": "Bo"})
    lines(tmp_path / "companies.jsonl", *[company(number, "ada") for number in range(4)])
    with pytest.raises(KeyboardInterrupt):
        bring(tmp_path, progress=Stop(last=3))
    assert WaitingPerson.objects.get().is_dated
    interrupted(tmp_path / "second", *[company(number, "ada") for number in range(5, 9)], last=2)
    assert not WaitingPerson.objects.get().is_dated
    run_job()
    assert document("person", "ada")["updatedAt"] > said


@pytest.mark.postgresql
def test_a_batch_can_commit_positions_of_people_whom_the_job_has_locked():
    slug = make.published(make.owner(), positions=[{"title": "Chair", "person": {"name": "Ada Vale"}}]).slug
    make.link_names(slug)
    person, (chair,) = Person.objects.get(), Position.objects.all()

    def commit():
        try:
            Position.objects.create(company_id=chair.company_id, person=person, rank=2, title="Treasurer")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        publisher.lock_people([person.pk])
        threads.submit(commit).result(timeout=10)


@pytest.mark.usefixtures("batches_of_two")
def test_a_person_whom_a_public_company_names_only_now_waits(tmp_path):
    bring_companies(tmp_path, company(1, "ada"), company(2))
    look = Stop(waiting)
    bring_companies(tmp_path, company(8), company(9), company(2, "ada"), company(10), progress=look)
    assert look.seen == [[], ["ada"]]
    assert sorted(companies_of("ada")) == ["c1", "c2"]


@pytest.mark.usefixtures("batches_of_two")
def test_a_person_who_was_unlisted_meanwhile_is_published_at_once_when_a_company_names_them(tmp_path):
    bring_companies(tmp_path, company(1, "ada"))
    Company.objects.update(state=State.UNLISTED)
    with transaction.atomic():
        publisher.publish(AffectedRows().company_with_dependents(*Company.objects.values_list("pk", flat=True)))
    assert document("person", "ada") is None
    before = timestamp(now())
    look = Stop(lambda: (waiting(), document("person", "ada") is not None))
    bring_companies(tmp_path, company(8), company(9), company(2, "ada"), company(10), progress=look)
    assert look.seen == [([], False), ([], True)]
    assert document("person", "ada")["updatedAt"] > before


@pytest.mark.usefixtures("batches_of_two")
def test_people_who_appear_in_a_long_import_have_the_order_in_which_it_names_them(tmp_path):
    for slug in ("ada", "bo", "cy"):
        Person.objects.create(slug=slug, name=slug.title())
    bring_companies(tmp_path, company(1), company(2), company(3, "bo", "cy", "ada"), company(4))
    assert keys("person") == ["ada", "cy", "bo"], "later publication first"


@pytest.mark.postgresql
@pytest.mark.usefixtures("batches_of_two")
def test_a_long_import_waits_for_people_before_it_takes_the_edition(tmp_path, monkeypatch):
    monkeypatch.setattr(importer, "ATTEMPTS", 1)  # a deadlock would be tried again
    bring_companies(tmp_path, company(1, "ada"))

    def bring_more():
        try:
            bring_companies(tmp_path, company(2), company(3), company(4, "ada"), company(5))
        finally:
            connection.close()

    def is_waiting():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return cursor.fetchone()[0] > 0

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            list(Person.objects.select_for_update())
            bringing = threads.submit(bring_more)
            wait_until(is_waiting, within_s=20, what="the batch that names Ada")
            publisher.lock()
        bringing.result(timeout=20)
    assert sorted(companies_of("ada")) == ["c1", "c4"]


@pytest.mark.postgresql
def test_a_note_that_is_made_while_people_are_published_is_kept(monkeypatch):
    slug = make.published(make.owner(), positions=[{"title": "Chair", "person": {"name": "Ada Vale"}}]).slug
    make.link_names(slug)
    person = Person.objects.get()
    with transaction.atomic():
        publisher.publish(AffectedRows(later={person.pk: False}))

    def note():
        try:
            with transaction.atomic():
                publisher.publish(AffectedRows(later={person.pk: False}))
        finally:
            connection.close()

    def publish(affected):
        noting.append(threads.submit(note))
        with pytest.raises(TimeoutError):
            noting[0].result(timeout=1)  # it waits until what is published now is committed
        return publisher.publish(affected)

    noting = []
    monkeypatch.setattr(later, "publish", publish)
    with ThreadPoolExecutor(1) as threads:
        assert next(later.publish_waiting()) == 1
        noting[0].result(timeout=10)
    assert waiting() == [person.slug]
