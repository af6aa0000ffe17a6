"""Parts of pages that are kept by the values that they depend on."""

from django.template import Context, Engine, Template
from django.template.loaders import locmem

from muniment.languages.speaking import speaking
from muniment.web.templatetags import keeping

SOURCE = "{% kept room name %}<b>{{ name }}</b>{{ told }}{% endkept %}"


def test_a_part_is_rendered_once_for_each_of_its_values():
    template = Template(SOURCE)
    shown = [
        template.render(Context({"name": name, "told": told}))
        for name, told in [("<Ada>", "first"), ("<Ada>", "second"), ("Ida", "third")]
    ]
    assert shown == ["<b>&lt;Ada&gt;</b>first", "<b>&lt;Ada&gt;</b>first", "<b>Ida</b>third"]


def test_each_language_has_its_own():
    template = Template(SOURCE)
    shown = []
    for language in ("en", "de", "en"):
        with speaking(language):
            shown.append(template.render(Context({"told": language})))
    assert [each[-2:] for each in shown] == ["en", "de", "en"]


def test_beyond_the_limit_a_part_is_rendered_and_not_kept():
    template = Template("{% kept name %}{{ name }}{% endkept %}")
    names = [str(number) for number in range(keeping.MAX_KEPT + 5)]
    for _ in range(2):
        assert [template.render(Context({"name": name})) for name in names] == names
    assert len(template.nodelist[0]._kept) == keeping.MAX_KEPT


TEMPLATES = {
    "base": "({% block main %}base{% endblock %}{% block end %}.{% endblock %})",
    "middle": '{% extends "base" %}{% block main %}middle {{ block.super }}{% endblock %}',
    "page": '{% extends "middle" %}{% block main %}{% include "part" with x=y %}{% include "part" only %}'
    " {{ block.super }}{% endblock %}",
    "part": "[{{ x }}{{ z }}]",
    "any": "{% extends of %}{% block main %}{% include which %}{% include which|default:'part' %}{% endblock %}",
    "./near": '{% include "./part" %}',
}


class Counted(locmem.Loader):
    """Loads templates from a dictionary, and counts them."""

    loaded = 0

    def get_contents(self, origin):
        type(self).loaded += 1
        return super().get_contents(origin)


def engine():
    builtins = ["muniment.web.templatetags.keeping"]
    return Engine(loaders=[(f"{__name__}.Counted", TEMPLATES)], builtins=builtins)


def test_templates_that_are_named_in_the_text_are_looked_up_once():
    page = engine().get_template("page")
    shown = page.render(Context({"y": 1, "x": 0, "z": 2}))
    assert shown == "([12][] middle base.)"
    before = Counted.loaded
    assert page.render(Context({"y": 3, "z": 4})) == "([34][] middle base.)"
    assert page.render(Context({"y": 3, "z": 4})) == "([34][] middle base.)"
    assert Counted.loaded == before


def test_a_template_that_a_value_names_is_looked_up_each_time():
    page = engine().get_template("any")
    assert page.render(Context({"of": "base", "which": "part", "x": 1})) == "([1][1].)"
    assert page.render(Context({"of": "middle", "which": "base"})) == "((base.)(base.).)"


def test_a_name_beside_the_template_is_found_from_there():
    assert engine().get_template("./near").render(Context({"x": 1})) == "[1]"
