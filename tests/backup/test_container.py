"""The backup file: written whole under its name or not at all, and read back byte for byte."""

import fcntl
import hashlib
import io
import os
import tarfile

import pytest
import zstandard

from muniment.backup import container
from muniment.backup.container import Damaged
from muniment.backup.contents import part
from muniment.kernel.problems import Conflict

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
    return zstandard.compress(out.getvalue())


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
        zstandard.compress(b"no archive" * 100),
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
