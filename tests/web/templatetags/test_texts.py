"""Texts of templates are looked up in the visitor's language each time they are shown."""

import pytest
from django.template import Context, Template

from muniment.languages.speaking import speaking
from muniment.registry_toml import applied
from muniment.registry_toml.document import RegistrySettings, Words
from muniment.web.templatetags import texts


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


@pytest.mark.parametrize("source", ['{% translate "5% <of> it" %}', '{% trans "5% <of> it" %}'])
def test_a_constant_text_is_translated_once_in_each_language(source, monkeypatch):
    template = Template(source)
    (node,) = template.nodelist
    assert isinstance(node, texts.ConstantText)
    rendered = []
    original = type(node._node).render
    monkeypatch.setattr(type(node._node), "render", lambda *given: rendered.append(1) or original(*given))
    for language in ("en", "de", "en", "de"):
        with speaking(language):
            assert template.render(Context()) == "5% <of> it"
            assert template.render(Context(autoescape=False)) == "5% <of> it"
    assert len(rendered) == 4


def test_a_constant_text_follows_the_words_that_the_operator_declares(monkeypatch):
    template = Template('{% translate "Organization" %}')
    found = [template.render(Context())]
    for word in ("guild", "order"):
        words = RegistrySettings(words=Words(company=word, companies=f"{word}s"))
        changed = applied.Applied(settings=words)
        monkeypatch.setattr(applied, "look", lambda changed=changed: changed)
        monkeypatch.setattr(applied._seen, "looked_at", float("-inf"))
        found.append(template.render(Context()))
    assert found == ["Organization", "Guild", "Order"]
