"""Constant texts are translated when a template is parsed, as long as there is one language."""

import pytest
from django.template import Context, Template
from django.template.base import TextNode
from django.utils import translation


def test_a_constant_text_is_resolved_at_parse_time():
    template = Template('{% translate "Owner\'s 5%" %}')
    assert isinstance(template.nodelist[0], TextNode)
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
    template = Template(source)
    assert not isinstance(template.nodelist[0], TextNode)
    assert template.render(Context({"name": "<Ada>"})) == shown


@pytest.mark.usefixtures("two_languages")
def test_with_a_second_language_each_rendering_translates():
    template = Template('{% translate "Yes" %}')
    shown = []
    for language in ("en", "de"):
        with translation.override(language):
            shown.append(template.render(Context()))
    assert shown == ["Yes", "Ja"]
