"""A second language for the tags that depend on whether there is one."""

import pytest

from muniment.web.translating import has_languages


@pytest.fixture
def two_languages(settings):
    settings.LANGUAGES = [("en", "English"), ("de", "Deutsch")]
    has_languages.cache_clear()
    yield
    has_languages.cache_clear()
