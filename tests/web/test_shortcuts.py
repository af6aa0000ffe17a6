"""What the pages do in Django's place has the results of Django."""

import threading
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.template import Context, base, engines
from django.utils import translation
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe

from muniment.kernel.phrases.phrase import marked
from muniment.web import shortcuts

TEXT = """<a href="x">'&'</a>"""
VALUES = [
    TEXT,
    "",
    mark_safe(TEXT),
    lazystr(TEXT),
    marked(TEXT),
    1234567,
    Decimal("1234.5"),
    True,
    None,
    datetime(2026, 11, 28, 23, 59, tzinfo=UTC),
    [TEXT],
]


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("autoescape", [True, False])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_each_value_is_shown_as_django_shows_it(value, autoescape, language, monkeypatch):
    template = engines["django"].from_string("<p>{{ value }}</p>").template
    context = {"value": value}
    with translation.override(language):
        quick = template.render(Context(context, autoescape=autoescape))
        assert base.render_value_in_context is not shortcuts._render_any
        monkeypatch.setattr(base, "render_value_in_context", shortcuts._render_any)
        assert template.render(Context(context, autoescape=autoescape)) == quick


def test_the_active_language_is_that_of_a_thread():
    seen = []
    with translation.override("de"):
        other = threading.Thread(target=lambda: seen.append(translation.get_language()))
        other.start()
        other.join()
        assert translation.get_language() == "de"
        with translation.override("en"):
            assert translation.gettext("Website") == "Website"
        assert translation.get_language() == "de"
    assert seen == ["en"]
