"""The backup file: written whole under its name or not at all, and read back byte for byte."""

import fcntl
import hashlib
import io
import os
import tarfile

import msgspec
import pytest

from muniment.backup import container
from muniment.backup.container import FORMAT, Damaged, Header, Manifest, Tally, blob_line, part, verify
from muniment.kernel.problems import Conflict
from muniment.kernel.zstandard import zstd

PARTS = (("header.json", b"{}"), ("blobs/a", os.urandom(3 << 20)), ("manifest.json", b"{}"))


def written(path):
    container.write(path, (part(*each) for each in PARTS), verify=lambda _: None)
    return path


def sealed(path, unpacked):
    """Write a file whose digest is right, whatever it contains."""
    content = unpacked + container._FRAME
    path.write_bytes(content + hashlib.sha256(unpacked).digest())
    return path


def archive(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for member in members:
            made.addfile(member)
    return zstd.compress(out.getvalue())


def test_parts_are_read_in_the_order_they_were_written(tmp_path):
    path = written(tmp_path / "b")
    container.check_bytes(path)
    assert [(each.name, each.read()) for each in container.read(path)] == list(PARTS)


def test_a_file_that_exists_is_not_replaced(tmp_path):
    (tmp_path / "b").write_bytes(b"kept")
    with pytest.raises(Conflict):
        written(tmp_path / "b")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"kept"]


def test_two_backups_are_not_written_to_one_file_at_once(tmp_path):
    draft = tmp_path / ".b.partial"
    with draft.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b"half of the other")
        other.flush()
        with pytest.raises(Conflict):
            written(tmp_path / "b")
        assert draft.read_bytes() == b"half of the other"
    written(tmp_path / "b")  # a draft that no process writes is replaced
    assert [file.name for file in tmp_path.iterdir()] == ["b"]


def test_a_backup_that_does_not_prove_right_gets_no_name(tmp_path):
    def refuse(_):
        raise Damaged("It cannot be read back.")

    with pytest.raises(Damaged):
        container.write(tmp_path / "b", (part(*each) for each in PARTS), verify=refuse)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"no archive",
        zstd.compress(b"no archive" * 100),
        archive()[:-5],
        archive(tarfile.TarInfo("a"))[:20],
    ],
    ids=["not compressed", "not an archive", "end missing", "cut off"],
)
def test_a_file_with_the_right_digest_that_cannot_be_unpacked_is_damaged(tmp_path, content):
    path = sealed(tmp_path / "b", content)
    container.check_bytes(path)
    with pytest.raises(Damaged):
        list(container.read(path))


@pytest.mark.parametrize(("window_log", "message"), [(27, "do not match its list"), (28, "too much memory")])
def test_a_frame_that_needs_more_than_128_mb_of_memory_is_damaged(tmp_path, window_log, message):
    content = bytes(tarfile.BLOCKSIZE * 2)  # an archive without members
    window = bytes([(window_log - 10) << 3])
    last_raw_block = (len(content) << 3 | 1).to_bytes(3, "little")
    path = sealed(tmp_path / "b", b"\x28\xb5\x2f\xfd\x00" + window + last_raw_block + content)
    with pytest.raises(Damaged, match=message):
        list(container.read(path))


def test_a_backup_contains_files_alone(tmp_path):
    folder = tarfile.TarInfo("blobs")
    folder.type = tarfile.DIRTYPE
    with pytest.raises(Damaged, match="not a file"):
        list(container.read(sealed(tmp_path / "b", archive(folder))))


def test_entries_that_differ_from_their_list_are_damaged(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(container, "_line", lambda *_: b"another entry\n")
        path = written(tmp_path / "b")
    container.check_bytes(path)
    with pytest.raises(Damaged):
        list(container.read(path))


BLOB = b"Minutes of the harbour board."
SHA256 = hashlib.sha256(BLOB).hexdigest()
COLUMNS = ["id", "blob_key", "size_bytes", "sha256"]
ROWS = [b'["d1","documents/d1/1",%d,"%s"]' % (len(BLOB), SHA256.encode()), b'["d2","",0,""]']


def tally(*things):
    made = Tally()
    made.add(*things)
    return made.count()


def header(**changes):
    made = Header(
        format=FORMAT,
        made_at="2024-05-01T00:00:00Z",
        version="0.1.0",
        database="sqlite",
        currency="USD",
        migrations=[],
        tables={"documents_document": COLUMNS},
        next_ids={},
        edition=1,
        edition_at="2024-05-01T00:00:00Z",
        key_check="",
    )
    return part("header.json", msgspec.json.encode(msgspec.structs.replace(made, **changes)))


def manifest(**changes):
    made = Manifest(
        tables={"documents_document": tally(*ROWS)},
        published=tally(),
        blobs=tally(blob_line("documents/d1/1", len(BLOB), SHA256)),
        blob_bytes=len(BLOB),
        lost=[],
        damaged=[],
    )
    return part("manifest.json", msgspec.json.encode(msgspec.structs.replace(made, **changes)))


def rows(*lines):
    return part("rows/documents_document/000000.jsonl", b"".join(line + b"\n" for line in lines or ROWS))


def blob(content=BLOB):
    return part("blobs/documents/d1/1", content)


def proved(folder, *parts):
    container.write(folder / "b", parts, verify=lambda _: None)
    return verify(folder / "b")


def test_a_good_backup_is_proved_with_its_numbers(tmp_path):
    found = proved(tmp_path, header(), part("keys/django.key", b"secret"), rows(), blob(), manifest())
    assert (found.rows, found.keys, found.manifest.blobs.n) == (2, 1, 1)


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    "parts",
    [
        (),
        (rows(), blob(), manifest()),
        (part("header.json", b"{"), manifest()),
        (part("header.json", b"[]"), manifest()),
        (header(format="muniment.backup/2"), rows(), blob(), manifest()),
        (header(), rows(), blob()),
        (header(), rows(), blob(), part("manifest.json", b"{}")),
        (header(), rows(), blob(), manifest(), part("extra", b"")),
        (header(), rows(), part("rows/other_table/000000.jsonl", b"[1]\n"), blob(), manifest()),
        (header(), rows(ROWS[0], b'["d2",""]'), blob(), manifest()),
        (header(), rows(ROWS[0]), blob(), manifest()),
        (header(), rows(), manifest()),
        (header(), rows(), blob(b"Other minutes"), manifest()),
        (header(), rows(), blob(), manifest(blob_bytes=5)),
        (header(), rows(), blob(), manifest(tables={})),
        (
            header(),
            rows(ROWS[1]),
            blob(),
            manifest(tables={"documents_document": tally(ROWS[1])}),
        ),
        (header(), rows(), manifest(blobs=tally(), blob_bytes=0)),
    ],
    ids=[
        "empty",
        "no header",
        "broken header",
        "header of another form",
        "another format",
        "no manifest",
        "broken manifest",
        "unexpected part",
        "rows of an unknown table",
        "a short row",
        "a row missing",
        "a blob missing",
        "another blob",
        "another size",
        "a table that the manifest lacks",
        "a blob without a document",
        "a document without a blob",
    ],
)
def test_an_inconsistent_backup_is_damaged(tmp_path, parts):
    with pytest.raises(Damaged):
        proved(tmp_path, *parts)


@pytest.mark.parametrize("told", ["lost", "damaged"])
def test_a_blob_that_was_lost_or_damaged_before_does_not_spoil_the_backup(tmp_path, told):
    parts = {"lost": (), "damaged": (blob(b"Other minutes"),)}[told]
    seen = [blob_line("documents/d1/1", 13, hashlib.sha256(b"Other minutes").hexdigest())] if parts else []
    made = manifest(**{told: ["d1"]}, blobs=tally(*seen), blob_bytes=13 if parts else 0)
    assert getattr(proved(tmp_path, header(), rows(), *parts, made).manifest, told) == ["d1"]
