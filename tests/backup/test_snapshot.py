"""A backup holds everything, is proved byte by byte, and becomes an instance whole or not at all."""

import errno
import stat
import threading
from contextlib import contextmanager

import msgspec
import pytest
from django.db import connection, connections, models
from django.db.migrations.loader import MigrationLoader

from make import documents, instances, registry
from muniment import config
from muniment.accounts.models import Account, SecurityEvent
from muniment.accounts.security.effective_settings import record_settings
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.backup import container, rows
from muniment.backup.container import BLOBS, HEADER, MANIFEST, ROWS, Damaged, Header, part, verify
from muniment.backup.moving import move
from muniment.backup.restoring import Mismatch, load, restore
from muniment.backup.snapshot import RunningInstance, back_up
from muniment.credits.operations import check_ledger as prove_ledger
from muniment.documents import cleanup
from muniment.documents.models import BlobHold, Document
from muniment.documents.records import storage
from muniment.documents.storage import Storage
from muniment.documents.uploads import remove_blob
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict
from muniment.kernel.wire import timestamp
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company
from muniment.registry.publishing import publisher
from muniment.store.database import form
from muniment.store.database.snapshots import snapshot

pytestmark = pytest.mark.django_db(transaction=True)


def parts():
    return RunningInstance(config.current(), "default", storage()).parts()


def written(path, each):
    container.write(path, each, verify=lambda _: None)
    return path


def with_header(**changes):
    """Yield the parts of the instance, with another header."""
    for each in parts():
        if each.name == HEADER:
            header = msgspec.json.decode(each.read(), type=Header)
            changed = msgspec.structs.replace(header, **changes)
            yield part(HEADER, msgspec.json.encode(changed))
        else:
            yield each


def test_a_file_that_is_in_the_store_is_not_sent_again_and_a_wrong_one_is_replaced(tmp_path, monkeypatch):
    stands, wrong, _ = instances.filled()
    before = instances.counted()
    back_up(config.current(), tmp_path / "b")
    kept = {each.pk: b"".join(storage().stream(each.blob_key)) for each in (stands, wrong)}
    instances.emptied()
    storage().write(stands.blob_key, kept[stands.pk])
    storage().write(wrong.blob_key, b"x" * len(kept[wrong.pk]))
    cut = storage().folder / f"{wrong.blob_key}#1"  # as the store leaves it when the process is killed
    cut.write_bytes(b"half of")
    written, write = [], Storage.write
    monkeypatch.setattr(Storage, "write", lambda self, key, chunks: (written.append(key), write(self, key, chunks)))
    assert restore(config.current(), tmp_path / "b").blobs == 3
    assert len(written) == 2
    assert stands.blob_key not in written
    assert not cut.exists()
    assert instances.counted() == before


@pytest.mark.requirement("cli.operate")
def test_a_backup_restores_to_the_same_rows_answers_and_blobs_under_a_new_epoch(tmp_path):
    instances.filled()
    gone = Company.objects.create(slug="soon-gone", name="Soon Gone").pk
    Company.objects.filter(pk=gone).delete()
    before, feed = instances.counted(), publisher.identity()
    found = back_up(config.current(), tmp_path / "b")
    assert (found.manifest.blobs.n, found.keys) == (3, 1)
    instances.emptied()
    loaded = restore(config.current(), tmp_path / "b")
    assert loaded.notes == []
    assert instances.counted() == before
    assert publisher.identity().feed_id != feed.feed_id, "readers and cursors notice"
    assert publisher.identity()._replace(feed_id=feed.feed_id) == feed, "the chain continues"
    assert publisher.log_faults() == []
    assert prove_ledger() == []
    assert cleanup.examine().missing == []
    after = Company.objects.create(slug="the-next", name="The Next")
    assert after.pk > gone, "a number that was given is not given again"
    assert Document.objects.filter(deleted_at=None).count() == 3


def test_a_restored_change_feed_still_says_which_fields_changed(tmp_path):
    me = registry.owner()
    listings.update_company(me, registry.published(me).slug, CompanyChange(description="Ferries."))
    back_up(config.current(), tmp_path / "b")
    instances.emptied()
    restore(config.current(), tmp_path / "b")
    with connection.cursor() as cursor:
        cursor.execute("SELECT change, fields FROM published_change ORDER BY sequence")
        assert cursor.fetchall() == [("published", None), ("updated", '["description"]')]


def test_both_logs_survive_a_restore_and_the_one_of_an_unused_server_gives_way(tmp_path):
    instances.filled()
    account = Account.objects.get(email="keeper@harbour.example")
    record(Event.SIGNED_IN, account=account, detail={"method": ["password"]})
    before = list(SecurityEvent.objects.order_by("pk").values_list())
    assert {"records_imported", "submission_decided", "token_created"} <= {each[2] for each in before}
    back_up(config.current(), tmp_path / "b")
    instances.emptied()
    assert record_settings(), "a server that was started here once recorded its settings"
    restore(config.current(), tmp_path / "b")
    assert list(SecurityEvent.objects.order_by("pk").values_list()) == before


def test_a_backup_is_readable_by_its_owner_alone_and_replaces_nothing(tmp_path):
    instances.filled()
    file = tmp_path / "b"
    back_up(config.current(), file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(Conflict, match="already exists"):
        back_up(config.current(), file)
    assert file.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["b"]


def test_a_flipped_bit_and_a_missing_end_are_noticed_anywhere(tmp_path):
    instances.filled()
    back_up(config.current(), tmp_path / "b")
    good = (tmp_path / "b").read_bytes()
    step = len(good) // 300
    ends = {*range(64), *(len(good) - n for n in range(1, 128))}
    for place in sorted({*range(0, len(good), step), *ends}):
        bad = bytearray(good)
        bad[place] ^= 1 << (place % 8)
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(Damaged):
            verify(tmp_path / "bad")
    for length in (0, 1, 100, len(good) // 2, len(good) - 1):
        (tmp_path / "bad").write_bytes(good[:length])
        with pytest.raises(Damaged, match=r"no backup|end is missing|damaged"):
            verify(tmp_path / "bad")
    (tmp_path / "bad").write_bytes(good + b"\0")
    with pytest.raises(Damaged):
        verify(tmp_path / "bad")


def test_a_backup_has_everything_of_its_moment(monkeypatch):
    instances.filled()
    snapshots = []

    @contextmanager
    def slow(using):
        with snapshot(using):
            snapshots.append(timestamp(now()))
            yield

    monkeypatch.setattr("muniment.backup.snapshot.snapshot", slow)
    header = msgspec.json.decode(next(parts()).read(), type=Header)
    assert header.made_at <= snapshots[0]  # what was acknowledged between the two is in the backup, not beyond it


def test_a_good_digest_over_wrong_contents_is_noticed_too(tmp_path):
    instances.filled()

    def without_a_blob():
        first = True
        for each in parts():
            if each.name.startswith(BLOBS) and first:
                first = False
                each.read()
                continue
            yield each

    def with_a_row_twice():
        for each in parts():
            if each.name.startswith(f"{ROWS}accounts_account/"):
                lines = each.read()
                yield part(each.name, lines + lines.splitlines(keepends=True)[0])
            else:
                yield each

    for number, made in enumerate((without_a_blob(), with_a_row_twice())):
        with pytest.raises(Damaged, match="do not match its manifest"):
            verify(written(tmp_path / f"{number}", made))


def test_an_instance_that_is_not_empty_is_not_restored_into(tmp_path):
    instances.filled()
    back_up(config.current(), tmp_path / "b")
    before = instances.counted()
    with pytest.raises(Conflict, match="not empty: there are rows in accounts_account"):
        restore(config.current(), tmp_path / "b")
    assert instances.counted() == before


def test_a_newer_version_and_another_currency_are_refused_with_the_way_out(tmp_path):
    instances.filled()
    newer = [*sorted(rows.applied("default")), ("registry", "9999_from_tomorrow")]
    written(tmp_path / "newer", with_header(migrations=newer, version="9.0"))
    written(tmp_path / "euro", with_header(currency="EUR"))
    instances.emptied()
    with pytest.raises(Conflict, match=r"newer version, Muniment 9\.0; missing here.*registry\.9999_from_tomorrow"):
        restore(config.current(), tmp_path / "newer")
    with pytest.raises(Conflict, match="EUR") as refused:
        restore(config.current(), tmp_path / "euro")
    assert refused.value.hint == "Set MUNIMENT_CURRENCY=EUR."
    assert rows.filled("default") == []


def test_a_backup_from_before_the_first_release_is_refused_with_the_way_out(tmp_path):
    instances.filled()
    written(tmp_path / "b", with_header(migrations=[("accounts", "0001_first")]))
    instances.emptied()
    for read in (lambda: restore(config.current(), tmp_path / "b"), lambda: verify(tmp_path / "b")):
        with pytest.raises(BadRequest, match=r"before 0\.1\.0") as refusal:
            read()
        assert "muniment export FOLDER" in refusal.value.hint


def test_no_backup_is_made_of_a_database_from_before_the_first_release(tmp_path, monkeypatch):
    instances.filled()
    monkeypatch.setattr("muniment.backup.rows.applied", lambda _using: [("accounts", "0001_first")])
    with pytest.raises(Conflict, match=r"before 0\.1\.0") as refusal:
        back_up(config.current(), tmp_path / "b")
    assert "muniment export FOLDER" in refusal.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_backup_or_restore_leaves_nothing_behind(tmp_path, monkeypatch):
    instances.filled()
    back_up(config.current(), tmp_path / "b")

    def full():
        for number, each in enumerate(parts()):
            if number == 20:
                raise OSError(errno.ENOSPC, "No space left on device")
            yield each

    with pytest.raises(OSError, match="No space left"):
        written(tmp_path / "full", full())
    assert [file.name for file in tmp_path.iterdir()] == ["b"]
    assert BlobHold.objects.count() == 0
    instances.emptied()
    monkeypatch.setattr(publisher, "publish_all", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        restore(config.current(), tmp_path / "b")
    assert rows.filled("default") == []
    assert documents.blob_keys() == []
    monkeypatch.undo()
    restore(config.current(), tmp_path / "b")


def test_a_store_that_gives_other_bytes_back_undoes_the_restore(tmp_path, monkeypatch):
    instances.filled()
    back_up(config.current(), tmp_path / "b")
    instances.emptied()
    monkeypatch.setattr(type(storage()), "stream", lambda *_: iter([b"rotten"]))
    with pytest.raises(Mismatch, match="different content for documents/"):
        restore(config.current(), tmp_path / "b")
    assert rows.filled("default") == []


def test_blobs_that_go_while_a_backup_reads_are_in_it(tmp_path):
    found = instances.filled()

    def removal():
        for document in found:
            Document.objects.filter(pk=document.pk).delete()
            remove_blob(document.blob_key)
        cleanup.sweep()
        connections.close_all()

    def meanwhile():
        for number, each in enumerate(parts()):
            if number == 1:
                remover = threading.Thread(target=removal)
                remover.start()
                remover.join()
                assert Document.objects.count() == 3, "the snapshot sees them still"
            yield each

    written(tmp_path / "b", meanwhile())
    assert verify(tmp_path / "b").manifest.blobs.n == 3
    assert Document.objects.count() == 0
    assert len(documents.blob_keys()) == 3, "they stay while the backup reads"
    assert cleanup.sweep().orphans == 3
    assert documents.blob_keys() == []


def test_a_document_without_its_blob_is_reported_and_delays_nothing(tmp_path):
    lost, damaged, _ = instances.filled()
    remove_blob(lost.blob_key)
    storage().write(damaged.blob_key, b"rotten")
    found = back_up(config.current(), tmp_path / "b")
    assert (found.manifest.lost, found.manifest.damaged) == ([lost.pk], [damaged.pk])
    instances.emptied()
    loaded = restore(config.current(), tmp_path / "b")
    assert [note.split(":")[0] for note in loaded.notes] == [
        "Files of 1 documents were already missing",
        "Files of 1 documents were already damaged",
    ]


def test_every_table_has_a_portable_form_and_every_migration_can_be_undone_with_the_rest():
    assert set(rows.tables(rows.applied("default"))) >= {"registry_company", "mfa_authenticator", "jobs_job"}
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        assert migration.atomic, f"{app}.{name}: a restore is one transaction, whatever form it begins with"


def test_a_public_listing_that_waits_unread_goes_along(tmp_path):
    owner = registry.owner()
    registry.draft(owner, name="Waiting Harbour")
    back_up(config.current(), tmp_path / "b")
    instances.emptied()
    restore(config.current(), tmp_path / "b")
    assert Company.objects.get().name == "Waiting Harbour"


def without_manifest():
    return (each for each in parts() if each.name != MANIFEST)


def with_an_unknown_table():
    header = msgspec.json.decode(next(parts()).read(), type=Header)
    return with_header(tables={**header.tables, "registry_tide": ["id"]})


def with_a_strange_blob():
    for each in parts():
        if each.name == MANIFEST:
            yield part(f"{BLOBS}documents/none/1", b"Minutes without a row.")
        yield each


def without_one_row():
    for each in parts():
        if each.name.startswith(f"{ROWS}registry_givenslug/"):
            yield part(each.name, b"".join(each.read().splitlines(keepends=True)[1:]))
        else:
            yield each


def without_blobs():
    for each in parts():
        if each.name.startswith(BLOBS):
            each.read()
        else:
            yield each


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("made", "refusal"),
    [
        (without_manifest, BadRequest),
        (with_an_unknown_table, BadRequest),
        (with_a_strange_blob, BadRequest),
        (without_one_row, Mismatch),
        (without_blobs, Mismatch),
    ],
)
def test_an_inconsistent_backup_is_not_loaded(tmp_path, made, refusal):
    instances.filled()
    path = written(tmp_path / "b", made())
    instances.emptied()
    with pytest.raises(refusal):
        load(container.read(path), config.current(), storage())
    assert rows.filled("default") == []
    assert documents.blob_keys() == []


def test_where_there_is_no_instance_there_is_no_backup_and_no_move(tmp_path):
    nowhere = config.Config({}, data=tmp_path / "nowhere")
    for attempt in (lambda: back_up(nowhere, tmp_path / "b"), lambda: move(nowhere, config.current())):
        with pytest.raises(Conflict):
            attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "applied", [set(), {("registry", "0001_first")}, {form.FIRST, ("registry", "9999_from_tomorrow")}]
)
def test_a_database_without_tables_or_of_a_newer_version_is_not_backed_up(tmp_path, monkeypatch, applied):
    monkeypatch.setattr(rows, "applied", lambda _: applied)
    with pytest.raises(Conflict):
        back_up(config.current(), tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_column_of_an_unknown_kind_is_not_backed_up_unnoticed():
    with pytest.raises(TypeError):
        rows._type(models.DurationField())
