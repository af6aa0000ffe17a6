"""The same code keeps blobs in a local folder and on a real S3 server that checks signatures."""

import asyncio
import hashlib
import os

import pytest

from muniment.config import Config, ConfigError
from muniment.documents.storage import Storage, StorageUnavailable, StoreFault, storage_at
from muniment.plugins import hook
from services.plugins import plugged, steward
from services.s3 import S3, SECRET

CONTENT = os.urandom(1 << 20) * 12
"""More than two parts."""


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with S3(tmp_path_factory.mktemp("s3") / "served") as server:
        yield server


@pytest.fixture(params=["folder", "s3", "plugin"])
def storage(request, tmp_path):
    if request.param == "folder":
        return Storage(tmp_path / "blobs")
    if request.param == "s3":
        return Storage(tmp_path, request.getfixturevalue("s3").url())
    (tmp_path / "drive").mkdir()
    with plugged(steward=steward()):
        return storage_at(tmp_path / "blobs", f"folder://{tmp_path / 'drive'}")


async def stream(content=CONTENT, *, fails_after=None):
    for start in range(0, len(content), 1 << 18):
        if fails_after is not None and start >= fails_after:
            raise RuntimeError("the sender hung up")
        yield content[start : start + (1 << 18)]


def keys(storage):
    return sorted(blob.key for blob in storage.blobs())


def test_a_streamed_blob_is_read_back_the_same_and_can_be_opened_locally(storage):
    asyncio.run(storage.write_stream("documents/a/1", stream()))
    digest = hashlib.sha256()
    for piece in storage.stream("documents/a/1"):
        digest.update(piece)
    assert digest.digest() == hashlib.sha256(CONTENT).digest()
    with storage.local("documents/a/1") as file:
        assert file.stat().st_size == len(CONTENT)
        assert file.read_bytes() == CONTENT
    with pytest.raises(FileNotFoundError), storage.local("documents/a/2"):
        pass
    assert [(blob.key, blob.size_bytes) for blob in storage.blobs("documents")] == [("documents/a/1", len(CONTENT))]
    storage.delete("documents/a/1")
    assert keys(storage) == []


def test_both_ways_of_writing_are_equal_and_deleting_twice_is_no_error(storage):
    storage.write("documents/b/1", b"small")
    storage.write("documents/b/2", (bytes([65]) * 3_000_000 for _ in range(3)))
    assert b"".join(storage.stream("documents/b/1")) == b"small"
    assert sum(len(piece) for piece in storage.stream("documents/b/2")) == 9_000_000
    for key in ("documents/b/1", "documents/b/2", "documents/b/1"):
        storage.delete(key)
    with pytest.raises(FileNotFoundError):
        storage.stream("documents/b/1")


def test_a_stream_that_breaks_off_leaves_nothing(storage):
    with pytest.raises(Exception, match="hung up"):
        asyncio.run(storage.write_stream("documents/c/1", stream(fails_after=7 << 20)))
    assert keys(storage) == []
    assert list(storage.unfinished()) == []


def test_the_probe_passes_and_leaves_nothing(storage):
    storage.probe()
    assert keys(storage) == []


def test_the_probe_says_what_fails_and_no_secret(s3, tmp_path):
    with pytest.raises(StorageUnavailable, match="cannot write") as wrong:
        Storage(tmp_path, s3.url("the-wrong-secret")).probe()
    assert "the-wrong-secret" not in str(wrong.value)
    assert SECRET not in repr(Storage(tmp_path, s3.url()))


def test_the_probe_finds_a_store_that_changes_what_it_keeps(tmp_path, monkeypatch):
    monkeypatch.setattr(Storage, "stream", lambda *_: iter([b"other bytes"]))
    with pytest.raises(StorageUnavailable):
        Storage(tmp_path).probe()


def test_no_key_leaves_the_folder(tmp_path):
    storage = Storage(tmp_path / "blobs")
    with pytest.raises(Exception, match=r"\.\."):
        storage.write("../escape", b"x")
    assert not (tmp_path / "escape").exists()


def test_a_half_written_file_of_a_dead_process_is_found_and_removed(tmp_path):
    storage = Storage(tmp_path)
    storage.write("documents/d/1", b"whole")
    for name in ("1#1", "2#1"):
        (tmp_path / "documents/d" / name).write_bytes(b"half")
    assert sorted(storage.unfinished()) == ["documents/d/1", "documents/d/2"]
    storage.remove_unfinished("documents/d/2")
    storage.remove_unfinished("documents/d/1")
    assert list(storage.unfinished()) == []
    assert b"".join(storage.stream("documents/d/1")) == b"whole"


def test_an_address_that_is_no_store_is_refused_by_name():
    with pytest.raises(ConfigError, match="MUNIMENT_STORAGE_URL must be a URL such as s3://"):
        Config({"MUNIMENT_STORAGE_URL": "https://somewhere"})


class Poor:
    """A store of a plugin that fails in its own way."""

    @hook
    def blob_store(self, scheme, url):
        if scheme == "shut":
            raise ValueError("no such account")
        return self if scheme == "poor" else None

    def get(self, key):
        raise ValueError("unreadable")

    def put(self, key, chunks):
        raise ConnectionError("away")


def test_faults_of_a_plugins_store_are_those_of_a_store(tmp_path):
    with plugged(poor=Poor(), gone=ImportError("gone")):
        poor = storage_at(tmp_path / "blobs", "poor://here")
        with pytest.raises(StoreFault, match="the store of poor:// failed: ValueError: unreadable") as fault:
            poor.stream("a")
        assert poor.is_away(fault.value)
        with pytest.raises(ConnectionError):
            poor.write("a", b"1")
        with pytest.raises(StorageUnavailable, match="cannot write: away"):
            poor.probe()
        assert "poor" in repr(poor)
        with pytest.raises(StoreFault, match="plugin poor cannot open its store: ValueError: no such account"):
            storage_at(tmp_path / "blobs", "shut://here")
        with pytest.raises(StoreFault, match="no installed plugin knows stores of gs://; gone could not be loaded"):
            storage_at(tmp_path / "blobs", "gs://bucket")


@pytest.mark.parametrize("address", ["gs://bucket/prefix", "folder:///mnt/documents"])
def test_the_setting_takes_the_scheme_of_a_plugin(address):
    assert Config({"MUNIMENT_STORAGE_URL": address}).storage_url == address
    for wrong in ("documents", "https://bucket.example", "s3:///prefix", "gs:bucket"):
        with pytest.raises(ConfigError, match="MUNIMENT_STORAGE_URL must be a URL such as s3"):
            Config({"MUNIMENT_STORAGE_URL": wrong})
