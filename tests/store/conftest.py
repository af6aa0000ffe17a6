"""Fixtures of the store's tests: an empty published file, and a reader of it."""

import pytest

from make.published import Publisher
from muniment.store.reader import Reader


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    yield made
    made.close()


@pytest.fixture
def reader(publisher, tmp_path):
    made = Reader(tmp_path / "published.sqlite3")
    yield made
    made.close()
