"""The newest good backup that is not after a time is restored, and the loss is told."""

from datetime import UTC, datetime, timedelta

import pytest

from make import backups, instances, registry
from muniment import config
from muniment.backup.scheduled import reading
from muniment.backup.scheduled.reading import choose, parse_time, restore_at
from muniment.documents.models import Document
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest, NotFound
from muniment.registry.models import Person
from muniment.registry.people.erasing import erase_person
from services.s3 import S3

pytestmark = pytest.mark.django_db(transaction=True)


def named_person():
    """Publish a person and return the slug."""
    person = {"title": "Chair", "person": {"name": "Ottoline Ferrisbrook"}}
    registry.published(registry.owner(), name="Pier", positions=[person])
    return "ottoline-ferrisbrook"


def restored(place, at=None):
    instances.emptied()
    return restore_at(config.current(), backups.opened(place), at)


def test_a_restored_instance_is_the_one_of_the_backup_with_its_files(place):
    instances.filled()
    before = instances.counted()
    backups.made(place)
    choice, loaded = restored(place)
    assert instances.counted() == before
    assert (loaded.blobs, loaded.notes) == (3, [])
    assert choice.lost == f"Every change after {reading.shown(choice.record.made_at)} is lost."


def test_the_newest_not_after_the_time_is_taken_and_the_loss_is_told(place):
    names = []
    for number in range(3):
        backups.change(f"Name {number}")
        names.append(backups.made(place).name)
    covered = backups.made(place).covered_at
    opened = backups.opened(place)
    first, second, third = opened.records()
    assert choose(opened, second.made_at).record == second
    early = choose(opened, third.made_at - timedelta(microseconds=1))
    assert early.record == second
    assert early.lost.endswith(f"although later backups exist: the next is of {reading.shown(third.made_at)}.")
    latest = choose(opened, None)
    assert (latest.record, latest.covered_at, latest.next) == (third, covered, None)
    assert reading.shown(covered) in latest.lost
    with pytest.raises(NotFound, match="has no good backup not after") as refused:
        choose(opened, first.made_at - timedelta(seconds=1))
    assert reading.shown(first.made_at) in refused.value.hint


def test_a_damaged_backup_is_skipped_for_the_one_before(place):
    first = backups.made(place)
    backups.change("Another name")
    second = backups.made(place)
    archive = place / f"{second.name}.backup"
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    choice, _ = restored(place)
    assert choice.record.name == first.name
    assert choice.skipped == [f"{second.name} ({archive} is damaged: its checksum does not match)"]
    assert choice.covered_at == choice.record.made_at, "what came after it was in the damaged one"
    archive.with_name(f"{first.name}.backup").write_bytes(b"")
    with pytest.raises(NotFound, match="has no good backup"):
        restored(place)


def test_a_file_that_is_missing_or_damaged_beside_the_backup_costs_its_document_alone(place):
    first, second, _ = backups.with_documents(3)
    backups.made(place)
    (place / "files" / first.blob_key).unlink()
    copy = place / "files" / second.blob_key
    copy.write_bytes(b"x" * copy.stat().st_size)
    _, loaded = restored(place)
    assert loaded.blobs == 1
    (note,) = loaded.notes
    assert note.startswith("Files of 2 documents were already missing: ")
    assert Document.objects.filter(deleted_at=None).count() == 3


def test_people_who_were_erased_after_the_backup_are_erased_again(place):
    slug = named_person()
    backups.made(place)
    erase_person(COMMAND, slug)
    assert (place / "suppressions.jsonl").exists()
    _, loaded = restored(place)
    assert loaded.erased == 1
    assert not Person.objects.filter(slug=slug).exists()


def test_a_store_holds_backups_files_and_the_list_of_erased_people(tmp_path):
    backups.with_documents(3)
    slug = named_person()
    with S3(tmp_path / "s3") as s3:
        backups.made(s3.url())
        erase_person(COMMAND, slug)
        before = instances.counted(without=("published_change", "published_chain"))
        second = backups.made(s3.url(), keep={"recent": 1})
        assert (second.removed, second.files_copied) == (1, 0)
        assert "secret" not in second.place
        assert backups.made(s3.url()).name is None
        _, loaded = restored(s3.url())
        assert (loaded.blobs, loaded.notes) == (3, [])
        assert instances.counted(without=("published_change", "published_chain")) == before
        assert not list((config.current().data).glob("tmp*")), "no copy stays"
        assert backups.opened(s3.url()).store.size_bytes("suppressions.jsonl")


@pytest.mark.parametrize("wrong", ["yesterday", "2026-11-22", "2026-11-22T14:00", ""])
def test_a_time_needs_its_offset(wrong):
    with pytest.raises(BadRequest, match="is not a time with its offset from UTC"):
        parse_time(wrong)


def test_times_are_read_with_their_offset():
    assert parse_time("2026-11-22T15:00+01:00") == datetime(2026, 11, 22, 14, 0, tzinfo=UTC)
    assert parse_time("latest") is None
