"""Templates inside others: found once where the name is constant, with Django's results."""

import pytest
from django.template import Context, Engine

from muniment.languages.speaking import speaking

SOURCES = {
    "root": "<{% block a %}a{% endblock %}{% block b %}b{% endblock %}>",
    "middle": '{% extends "root" %}{% block b %}[{{ block.super }}]{% endblock %}',
    "leaf": '{% extends "middle" %}{% block a %}{{ name }}{% endblock %}',
    "any": "{% extends where %}{% block a %}any{% endblock %}",
    "part": "({{ label }}{{ name }})",
    "whole": '{% include "part" with label=_("Yes") %}{% include "part" only %}{% include which %}',
}
BUILTINS = [f"muniment.web.templatetags.{name}" for name in ("texts", "keeping", "composing")]
SHOWN = [
    ("leaf", {}, "<Ada[b]>"),
    ("middle", {}, "<a[b]>"),
    ("any", {"where": "root"}, "<anyb>"),
    ("any", {"where": "middle"}, "<any[b]>"),
    ("whole", {"which": "part"}, "(YesAda)()(Ada)"),
]


@pytest.fixture
def engine():
    loaders = [("django.template.loaders.cached.Loader", [("django.template.loaders.locmem.Loader", SOURCES)])]
    return Engine(loaders=loaders, builtins=BUILTINS)


def test_pages_are_composed_as_by_django(engine):
    plain = Engine(loaders=engine.loaders)
    for name, more, shown in SHOWN * 2:
        values = {"name": "Ada", **more}
        assert engine.get_template(name).render(Context(values)) == shown
        assert plain.get_template(name).render(Context(values)) == shown


def test_with_a_second_language_what_an_include_is_given_is_translated_when_rendered(engine):
    template = engine.get_template("whole")
    shown = []
    for language in ("en", "de"):
        with speaking(language):
            shown.append(template.render(Context({"which": "part"})))
    assert shown == ["(Yes)()()", "(Ja)()()"]
