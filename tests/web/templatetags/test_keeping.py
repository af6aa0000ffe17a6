"""Parts of pages that are kept by the values that they depend on."""

from django.template import Context, Template

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
