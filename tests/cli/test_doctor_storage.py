"""`muniment doctor` proves the store, and with --storage finds what has come apart."""

import pytest
from click.testing import CliRunner

from make import registry as make
from make.documents import blob_keys, uploaded
from muniment import cli, config
from muniment.config import Config
from muniment.documents import records
from muniment.server.doctor import examine_storage
from services.prepared import new_instance
from services.product import run
from services.s3 import S3


@pytest.mark.django_db(transaction=True)
def test_a_lost_blob_and_an_orphaned_blob_are_reported():
    owner = make.owner()
    document = uploaded(owner, make.draft(owner).slug)
    assert [finding.is_good for finding in examine_storage()] == [True, True]
    records.storage().write("documents/missing/1", b"orphan")
    records.storage().delete(document.blob_key)
    documents, blobs = examine_storage()
    assert (documents.is_good, blobs.is_good) == (False, False)
    assert document.pk in documents.says
    assert "documents/missing/1" in blobs.says
    for key in blob_keys():
        records.storage().delete(key)


def test_the_command_checks_a_store_and_reports_failures_without_the_secret(tmp_path):
    data = new_instance(tmp_path / "data")
    fine = run("doctor", "--storage", data=data)
    assert "a probe was written, read and deleted" in fine.stdout
    assert "OK    documents: each has its blob; 0 blobs of 0 bytes" in fine.stdout
    with S3(tmp_path / "served") as server:
        wrong = run("doctor", data=data, check=False, storage_url=server.url("wrong-secret"))
    assert wrong.returncode == 1
    assert "FAIL  document store" in wrong.stdout
    assert "wrong-secret" not in wrong.stdout


def test_a_folder_that_is_not_there_is_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path / "none"))
    done = CliRunner().invoke(cli.main, ["doctor", "--help"])
    assert "--storage" in done.output
    from muniment.server.doctor import _store

    assert "does not exist yet" in _store(config.current()).says
    assert not (tmp_path / "none").exists()
