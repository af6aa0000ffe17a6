"""Constant texts are looked up once in each language; others when they are rendered."""

import pytest
from django.template import Context, Template

from muniment.languages.speaking import speaking


def test_a_constant_text_is_looked_up_once(monkeypatch):
    template = Template('{% translate "Owner\'s 5%" %}')
    assert template.render(Context()) == "Owner's 5%"
    monkeypatch.setattr(template.nodelist[0]._node, "render", lambda _: pytest.fail("was looked up again"))
    assert template.render(Context()) == "Owner's 5%"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{% translate name %}", "&lt;Ada&gt;"),
        ('{% translate "About"|upper %}', "ABOUT"),
        ('{% translate "About" as text %}{{ text }}', "About"),
        ('{% translate "May" context "month" %}', "May"),
    ],
)
def test_every_other_text_is_resolved_when_rendered(source, shown):
    assert Template(source).render(Context({"name": "<Ada>"})) == shown


def test_each_language_has_its_own_text():
    template = Template('{% translate "Yes" %}')
    shown = []
    for language in ("en", "de", "en"):
        with speaking(language):
            shown.append(template.render(Context()))
    assert shown == ["Yes", "Ja", "Yes"]
