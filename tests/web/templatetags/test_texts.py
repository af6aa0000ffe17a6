"""Texts of templates are looked up in the visitor's language each time they are shown."""

import pytest
from django.template import Context, Template

from muniment.languages.speaking import speaking


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{% translate name %}", "&lt;Ada&gt;"),
        ('{% translate "About"|upper %}', "ABOUT"),
        ('{% translate "About" as text %}{{ text }}', "About"),
        ('{% translate "May" context "month" %}', "May"),
        ('{% translate "Owner\'s 5%" %}', "Owner's 5%"),
    ],
)
def test_every_text_is_resolved_when_rendered(source, shown):
    assert Template(source).render(Context({"name": "<Ada>"})) == shown


def test_each_language_has_its_own_text():
    template = Template('{% translate "Yes" %}')
    shown = []
    for language in ("en", "de", "en"):
        with speaking(language):
            shown.append(template.render(Context()))
    assert shown == ["Yes", "Ja", "Yes"]
