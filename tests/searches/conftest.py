"""A published file that the pages read, as the digests do."""

import pytest


@pytest.fixture
def publisher(tmp_path, settings):
    # Not before Django is set up, which is after this module is imported.
    from make.published import Publisher, company, framework, person
    from muniment.store.reader import Reader
    from muniment.web.requests import page_cache

    settings.BASE_URL = "https://registry.example"
    made = Publisher(tmp_path / "published.sqlite3")
    made.publish(
        company(1, "harbour", name="Harbour Commons", type="DAO"),
        company(2, "quay", name="Quay Trust", type="collective"),
        person(1, "layla", name="Layla Haddad"),
        framework(1, "tide-score", name="Tide score"),
    )
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield made
    page_cache.use(None)
    reader.close()
    made.close()


@pytest.fixture
def letters(publisher):
    from make.accounts import Letters

    return Letters()
