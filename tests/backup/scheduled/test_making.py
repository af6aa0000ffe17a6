"""A scheduled backup is whole, copies files once, leaves nothing half done, and never costs the last good one."""

import errno
import stat
from types import SimpleNamespace

import msgspec
import pytest

from make import backups, documents, registry
from muniment import config
from muniment.backup import container
from muniment.backup.container import Damaged
from muniment.backup.scheduled import making
from muniment.backup.scheduled import place as places
from muniment.backup.scheduled.making import Pace
from muniment.backup.scheduled.place import Place
from muniment.backup.scheduled.reading import check_all
from muniment.documents.records import storage
from muniment.documents.uploads import remove_blob
from muniment.jobs import queue
from muniment.kernel.problems import BadRequest, Conflict, Unavailable
from services.s3 import S3

pytestmark = pytest.mark.django_db(transaction=True)


def files(place):
    return sorted(str(file.relative_to(place / "files")) for file in (place / "files").rglob("*") if file.is_file())


def test_a_backup_is_recorded_verified_and_readable_by_this_user_only(place):
    found = backups.with_documents(2)
    made = backups.made(place)
    (record,) = backups.opened(place).records()
    assert (record.name, record.files, made.files_copied, made.kept) == (made.name, 2, 2, 1)
    assert files(place) == sorted(each.blob_key for each in found)
    assert record.sha256 == container.digest_at_end(place / f"{made.name}.backup")
    assert [each.fault for each in check_all(backups.opened(place), config.current().data)] == [""]
    for path in (place, *place.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert path.is_dir() or mode == 0o600, (path, oct(mode))
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_without_a_change_none_is_made_and_the_newest_covers_the_time(place):
    first = backups.made(place)
    queue.enqueue("jobs.grown_old")  # what the instance does by itself is no change
    second = backups.made(place)
    assert (second.name, second.kept) == (None, 1)
    assert second.covered_at > first.covered_at
    assert backups.opened(place).index().covered_at == second.covered_at
    backups.change("Another name")
    third = backups.made(place)
    assert backups.names(place) == [first.name, third.name]
    assert not list(place.glob(".*.partial"))


def test_files_are_copied_once_and_removed_with_the_last_backup_that_needs_them(place, monkeypatch):
    first, second = backups.with_documents(2)
    backups.made(place)
    wrote, put = [], Place.put
    monkeypatch.setattr(Place, "put", lambda self, key, content: (wrote.append(key), put(self, key, content)))
    owner = registry.owner("another@harbour.example")
    third = documents.uploaded(owner, registry.published(owner, name="Pier").slug)
    assert backups.made(place).files_copied == 1
    assert [key for key in wrote if key.startswith("files/")] == [f"files/{third.blob_key}"]
    key = first.blob_key
    first.delete()
    remove_blob(key)
    backups.made(place)
    assert key in files(place), "older backups need it"
    for number in range(2):
        backups.change(f"Name {number}")
        backups.made(place, keep={"recent": 2})
    assert files(place) == sorted([second.blob_key, third.blob_key])
    assert len(backups.names(place)) == 2


def test_an_interrupted_run_leaves_nothing_that_looks_whole_and_the_next_one_clears_it(place, monkeypatch):
    backups.with_documents(1)

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Place, "put_record", die)
    with pytest.raises(KeyboardInterrupt):
        backups.made(place)
    assert [file.suffix for file in place.glob("muniment-*")] == [".backup"]
    assert backups.names(place) == []
    (place / ".muniment-20261122T000000Z.backup.partial").write_bytes(b"half")
    (place / "files" / "documents" / "half#1").write_bytes(b"half")
    (place / ".backup-draft-1").mkdir()
    (place / "own.backup").write_bytes(b"not ours")
    monkeypatch.undo()
    made = backups.made(place)
    assert sorted(file.name for file in place.glob("*.backup")) == [f"{made.name}.backup", "own.backup"]
    assert not [*place.rglob("*#1"), *place.glob(".*.partial"), *place.glob(".backup-draft-*")]


def test_a_full_disk_leaves_the_older_backups_as_they_were(place, monkeypatch):
    backups.with_documents(1)
    backups.made(place)
    before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file()}
    backups.change("Another name")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(container, "_archive", full)
    with pytest.raises(OSError, match="No space left"):
        backups.made(place)
    monkeypatch.undo()
    disk = SimpleNamespace(f_bavail=10, f_frsize=4096, f_blocks=1 << 20)
    monkeypatch.setattr(places.os, "statvfs", lambda _: disk)
    with pytest.raises(Unavailable, match=r"has 0 MB free; the backup needs 0 MB, and 204 MB stay free"):
        backups.made(place)
    assert {file: file.read_bytes() for file in place.rglob("*") if file.is_file()} == before


def test_a_backup_that_cannot_be_read_back_is_not_kept(place, monkeypatch):
    backups.made(place)
    backups.change("Another name")

    def damaged(_):
        raise Damaged("a flipped bit")

    monkeypatch.setattr(making, "verify", damaged)
    with pytest.raises(Damaged):
        backups.made(place)
    assert len(list(place.glob("*.backup"))) == len(backups.names(place)) == 1


def test_a_place_that_returns_another_file_than_was_written_is_refused(place, monkeypatch):
    backups.with_documents(1)
    monkeypatch.setattr("muniment.backup.scheduled.making.digest_of", lambda _: "another")
    with pytest.raises(Unavailable, match="returned other content than was written"):
        backups.made(place)
    assert backups.names(place) == []


def test_a_store_that_returns_another_backup_than_was_written_keeps_none(tmp_path, monkeypatch):
    # Without documents, whose copies are compared first.
    backups.change("Another name")
    monkeypatch.setattr("muniment.backup.scheduled.making.digest_of", lambda _: object())
    with S3(tmp_path / "s3") as s3:
        with pytest.raises(Unavailable, match="returned other content than was written"):
            backups.made(s3.url())
        store = backups.opened(s3.url()).store
        assert [blob.key for blob in store.blobs("") if blob.key.endswith(".backup")] == []


def test_a_damaged_file_is_copied_again_and_a_damaged_backup_is_noted_and_never_counts_as_the_last(place, monkeypatch):
    (document,) = backups.with_documents(1)
    first = backups.made(place)
    copy = place / "files" / document.blob_key
    content = copy.read_bytes()
    copy.write_bytes(b"x" * len(content))
    archive = place / f"{first.name}.backup"
    archive.write_bytes(archive.read_bytes()[:-40] + bytes(40))
    faults = [each.fault for each in check_all(backups.opened(place), config.current().data)]
    assert len(faults) == 1
    assert faults[0]
    monkeypatch.setattr(making, "_AGAIN_AFTER", -making._AGAIN_AFTER)
    second = backups.made(place)
    assert len(second.damaged) == 2
    assert copy.read_bytes() == content
    assert second.name, "a new one, although nothing has changed: the damaged one does not count"
    assert backups.names(place) == [second.name], "a damaged one goes when it is older than every good one"


def test_a_file_that_is_missing_beside_the_backups_is_copied_again(place):
    (document,) = backups.with_documents(1)
    backups.made(place)
    (place / "files" / document.blob_key).unlink()
    (found,) = check_all(backups.opened(place), config.current().data)
    assert found.fault == f"the files of 1 documents are missing or damaged: {document.pk}"
    backups.made(place)
    assert files(place) == [document.blob_key]


def test_a_lost_index_is_made_again_and_a_record_that_cannot_be_read_does_not_count(place):
    backups.with_documents(1)
    first = backups.made(place)
    (place / "index.json").write_bytes(b"{")
    backups.change("Another name")
    second = backups.made(place)
    assert [each.fault for each in check_all(backups.opened(place), config.current().data)] == ["", ""]
    (place / f"{first.name}.json").write_bytes(b"{")
    assert backups.names(place) == [second.name]


def test_a_document_that_lost_its_file_is_named_and_everything_else_is_backed_up(place):
    first, second = backups.with_documents(2)
    storage().delete(first.blob_key)
    made = backups.made(place)
    assert made.lost == [first.pk]
    assert files(place) == [second.blob_key]
    assert [each.fault for each in check_all(backups.opened(place), config.current().data)] == [""]


def test_one_process_at_a_time_writes_to_a_folder(place):
    backups.made(place)
    backups.change("Another name")
    with backups.opened(place).locked(), pytest.raises(Conflict, match=r"Another backup to .* is running"):
        backups.made(place)


def test_without_a_place_or_an_instance_it_is_refused(tmp_path):
    with pytest.raises(BadRequest, match="No place for backups is set"):
        backups.made("off")
    empty = config.Config({}, data=tmp_path / "none")
    with pytest.raises(Conflict, match="There is no instance here"):
        making.make_backup(empty)


def test_what_is_recorded_beside_a_backup_holds_no_secret(place):
    backups.with_documents(1)
    made = backups.made(place)
    for file in (place / "index.json", place / f"{made.name}.json"):
        found = msgspec.json.decode(file.read_bytes())
        assert set(found) <= {
            *("name", "madeAt", "version", "database", "edition", "rows", "sizeBytes", "sha256", "files", "fileBytes"),
            *("lost", "tables", "coveredAt", "checked", "damaged"),
        }


class Clock:
    def __init__(self):
        self.at, self.slept = 0.0, []

    def __call__(self):
        return self.at

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.at += seconds


def test_it_rests_as_long_as_it_worked_and_a_second_at_most():
    clock = Clock()
    pace = Pace(0.5, clock=clock, sleep=clock.sleep)

    def work():
        for seconds in (0.1, 0.4, 3.0):
            clock.at += seconds
            yield seconds

    assert list(pace.through(work())) == [0.1, 0.4, 3.0]
    assert [round(each, 6) for each in clock.slept] == [0.1, 0.4, 1.0]


def test_without_a_limit_it_never_rests():
    clock = Clock()
    pace = Pace(1, clock=clock, sleep=clock.sleep)
    clock.at += 5
    pace.rest()
    assert clock.slept == []
