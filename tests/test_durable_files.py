"""Files that survive a power cut; `trouble/test_power_cut.py` cuts the power."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from muniment.documents.storage import Storage
from muniment.durable_files import replacing


@pytest.fixture
def synced(monkeypatch):
    """Record the paths that are synced, in order."""
    found: list[Path] = []
    sync = os.fsync

    def record(descriptor: int) -> None:
        found.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    return found


def test_a_file_is_replaced_whole_and_synced_before_it_gets_its_name(tmp_path, synced):
    file = tmp_path / "list.jsonl"
    file.write_bytes(b"before")
    with replacing(file) as out:
        out.write(b"after")
        assert file.read_bytes() == b"before"
    assert file.read_bytes() == b"after"
    assert file.stat().st_mode & 0o077 == 0
    assert [path.name.startswith(".list.jsonl.") for path in synced] == [True, False]
    assert synced[-1] == tmp_path


def test_a_failed_replacement_changes_nothing_and_leaves_nothing_behind(tmp_path):
    file = tmp_path / "list.jsonl"
    file.write_bytes(b"before")

    def fail() -> None:
        with replacing(file) as out:
            out.write(b"aft")
            raise OSError(errno.ENOSPC, "the disk is full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("list.jsonl", b"before")]


@pytest.mark.parametrize("content", [b"small", [b"in ", b"parts"]])
def test_a_stored_blob_is_synced_with_the_folders_that_name_it(tmp_path, synced, content):
    folder = tmp_path / "blobs"
    storage = Storage(folder)
    synced.clear()
    storage.write("documents/one/1", content)
    assert synced == [folder / "documents/one/1", folder / "documents/one", folder / "documents", folder]


def test_a_streamed_blob_is_synced_too(tmp_path, synced):
    async def pieces():
        yield b"in "
        yield b"parts"

    folder = tmp_path / "blobs"
    storage = Storage(folder)
    synced.clear()
    asyncio.run(storage.write_stream("documents/one/1", pieces()))
    assert synced == [folder / "documents/one/1", folder / "documents/one", folder / "documents", folder]
