"""An owner with a listing to upload documents to. Pytest may load this before Django is set up."""

import pytest

from muniment import config


@pytest.fixture
def owner():
    from make import registry as make

    return make.owner()


@pytest.fixture
def company(owner):
    """Return the slug of the owner's draft."""
    from make import registry as make

    return make.draft(owner).slug


@pytest.fixture
def settings_with(monkeypatch):
    """Change settings of documents for one test."""

    def change(**values):
        current = config.current()
        kept = {name: getattr(current, name) for name in ("data", "database_url", "rate_limit")}
        monkeypatch.setattr(config, "_current", config.Config({}, **kept, **values))

    return change
