"""An operator's own templates and static files: over the built-in ones, and never in the way of a page."""

import re
from pathlib import Path

import pytest

import muniment.web
from muniment.web.site.notes import STABLE
from services.prepared import demo_registry
from services.product import Product, run

BASE = """{% extends "base.html" %}{% load static %}
{% block site_head %}<link rel="stylesheet" href="{% static 'own.css' %}">{% endblock %}
{% block footer %}<footer>The guild since 1801</footer>{% endblock %}
"""
HOME = '{% extends "registry/home.html" %}{% block hero %}<h1>Clocks</h1>{% include "own/news.html" %}{% endblock %}'


def laid(data, **templates):
    """Lay templates into the site folder of *data*, by name with two underscores for a slash."""
    for name, text in templates.items():
        file = data / "site" / "templates" / f"{name.replace('__', '/')}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    static = data / "site" / "static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "own.css").write_text("body { color: teal }")
    return data


def test_blocks_are_replaced_own_templates_are_included_and_own_files_are_served_with_a_digest(tmp_path):
    data = laid(demo_registry(tmp_path / "data"), base=BASE, registry__home=HOME, own__news="<p>News of the guild</p>")
    examined = run("doctor", data=data).stdout
    assert "OK    templates: those in" in examined
    assert "WARN  template" not in examined
    with Product(data) as product:
        product.wait_ready()
        home = product.get("/").body.decode()
        assert "<h1>Clocks</h1><p>News of the guild</p>" in home
        for path in ("/", "/companies/quillmere", "/accounts/login/", "/no-such-page"):
            page = product.get(path).body.decode()
            assert page.count("The guild since 1801") == 1, path
            assert 'class="bottom"' not in page
            assert page.count("/static/own.") == 1, path
        assert product.get("/").body.decode() == home
        again = product.get("/?again=1").body.decode()  # rendered again, by what the first rendering kept
        [address] = re.findall(r'href="(/static/own\.[0-9a-f]{12}\.css)"', again)
        found = product.get(address)
        assert (found.status, found.body) == (200, b"body { color: teal }")
        assert "immutable" in found.headers["cache-control"]
        again = product.get("/companies/quillmere", If_None_Match=product.get("/companies/quillmere").headers["etag"])
        assert again.status == 304


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '{% extends "registry/home.html" %}\n\n{% block hero %}{% nonsense %}{% endblock %}',
            "line 3: Invalid block tag",
        ),
        ('{% extends "registry/home.html" %}\n{% block hero %}', "Unclosed tag on line 2"),
        (
            '{% extends "registry/home.html" %}\n{% block hero %}{% include "gone.html" %}{% endblock %}',
            "no template gone",
        ),
        ('{% extends "registry/home.html" %}{% block hero %}{{ 1|add }}{% endblock %}', "add requires 2 arguments"),
    ],
    ids=["tag", "unclosed", "include", "filter"],
)
def test_a_broken_template_shows_the_built_in_page_and_tells_the_operator_where(tmp_path, text, says):
    data = laid(demo_registry(tmp_path / "data"), registry__home=text)
    examined = run("doctor", data=data, check=False)
    assert examined.returncode == 1
    [line] = [each for each in examined.stdout.splitlines() if each.startswith("FAIL  template")]
    assert f"{data / 'site/templates/registry/home.html'}" in line
    assert says in line
    with Product(data) as product:
        product.wait_ready()
        home = product.get("/")
        assert home.status == 200
        assert "A public record of organizations" in home.body.decode()
        assert "home.html" in product.output()


def test_what_fails_while_a_page_is_rendered_shows_the_built_in_page(tmp_path):
    broken = '{% extends "base.html" %}{% block footer %}{% url "no-such-name" %}{% endblock %}'
    data = laid(demo_registry(tmp_path / "data"), base=broken)
    with Product(data) as product:
        product.wait_ready()
        for path, status in (("/", 200), ("/companies/quillmere", 200), ("/accounts/login/", 200), ("/nothing", 404)):
            page = product.get(path)
            assert page.status == status, path
            assert 'class="bottom"' in page.body.decode()
        assert "page rendered without the templates of the site folder" in product.output()


def test_a_template_that_replaces_more_than_stable_blocks_is_a_warning(tmp_path):
    more = '{% extends "base.html" %}{% block main %}x{% endblock %}'
    data = laid(demo_registry(tmp_path / "data"), base=more, part__footer="<footer>mine</footer>")
    examined = run("doctor", data=data).stdout
    assert "WARN  template: base.html replaces main, which is no stable block" in examined
    assert "WARN  template: part/footer.html replaces a whole template of Muniment" in examined


@pytest.mark.parametrize(
    ("name", "block"), [(name, block) for name, blocks in STABLE.items() for block in sorted(blocks)]
)
def test_each_stable_block_exists_and_is_documented(name, block):
    template = Path(muniment.web.__file__).parent / "templates" / name
    assert f"{{% block {block} %}}" in template.read_text()
    others = (file.read_text() for file in (Path(muniment.web.__file__).parent / "templates").rglob("*.html"))
    assert sum(f"{{% block {block} %}}" in text for text in others) == 1  # no page replaces it
    section = (Path(__file__).parents[3] / "docs" / "REGISTRY.md").read_text().partition("## Templates")[2]
    assert f"`{block}`" in section
