"""A published file and a visitor of its pages."""

import pytest
from django.test import Client

from make.published import Publisher
from muniment.store.reader import Reader


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    yield made
    made.close()


@pytest.fixture
def visitor(publisher, tmp_path):
    from muniment.web.requests import page_cache  # not before Django has its settings

    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client()
    page_cache.use(None)
    reader.close()
