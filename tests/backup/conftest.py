"""Backups begin without the files of other tests. Pytest may load this before Django is set up."""

import pytest


@pytest.fixture(autouse=True)
def _no_blobs_stay():
    from make import instances

    instances.without_blobs()
    yield
    instances.without_blobs()


@pytest.fixture
def place(tmp_path):
    return tmp_path / "place"
