"""Which texts of the product are marked for translation, and which words its check refuses."""

import re
import runpy
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[2] / "checks"
words = runpy.run_path(str(CHECKS / "words.py"))
TEMPLATES = sorted((CHECKS.parent / "src/muniment/web/templates").rglob("*.[ht]*"))


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: "/".join(file.parts[-2:]))
def test_every_text_of_a_template_is_marked_for_translation(file):
    assert [text.words for text in words["unmarked"](file.read_text())] == []


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: "/".join(file.parts[-2:]))
def test_a_marked_text_holds_whole_elements(file):
    for body in re.findall(r"\{% blocktranslate[^%]*%\}(.*?)\{% endblocktranslate %\}", file.read_text(), re.DOTALL):
        for part in body.split("{% plural %}"):
            bare = re.sub(r"<[^<>]+>", "", part)
            assert not set("<>") & set(bare), part
            assert sorted(re.findall(r"<(\w+)", part)) == sorted(re.findall(r"</(\w+)", part)), part


@pytest.mark.parametrize(
    "source",
    [
        "<p>Sign in</p>",
        '<a title="Sign in" href="/">{{ name }}</a>',
        '<img alt="Logo">',
        "<p>{{ count }} items</p>",
        "{% if a %}Open{% endif %}",
        '{% include "part/empty.html" with empty_title="No companies yet" %}',
        '{{ name|default:"None" }}',
        '<meta name="description" content="A registry">',
        '<p>{% translate "Balance" %}: 5 credits</p>',
    ],
)
def test_a_text_that_is_not_marked_is_found(source):
    assert len(list(words["unmarked"](source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        '<p class="quiet small">{% translate "Sign in" %}</p>',
        "<p>{% blocktranslate trimmed %}Page {{ page }}{% endblocktranslate %} · {{ name }}</p>",
        '{% include "part/empty.html" with empty_title=_("No companies yet") empty_address="/companies/new" %}',
        "<script>const text = 1</script>{# A comment #}<style>p { color: red }</style>",
        '<input type="submit" name="once" value="{{ once }}">&nbsp;→ 5 %',
    ],
)
def test_tags_names_and_marked_texts_pass(source):
    assert list(words["unmarked"](source)) == []


@pytest.mark.parametrize(
    ("name", "source", "line"),
    [
        ("page.html", '<p>\n{% translate "Nobody owns it." %}</p>', 2),
        ("page.html", "{% blocktranslate %}It goes on here{% endblocktranslate %}", 1),
        ("page.html", '{% include "a.html" with text=_("It stands here") %}', 1),
        ("module.py", "\nraise Problem('Whoever asks', 'is told')\n", 2),
        ("module.py", 'def f():\n    """Make it anew."""\n', 2),
        ("module.py", "name = 1\nf'It is {name} for ever'\n", 2),
        ("script.js", 'say("Choose it to go on");', 1),
    ],
)
def test_a_banned_word_is_found_with_its_place(tmp_path, name, source, line):
    assert _banned(tmp_path, name, source)[0].startswith(f"{name}:{line}: ")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("page.html", '{% include "part/stand.html" with stand=row.before %}<p class="nobody">Anyone</p>'),
        ("module.py", 'standing = {"nobody": 1, "stand": "PAT stands for personal access token"}  # nobody\n'),
        ("script.js", "// Nobody is told.\nstand(nobody);"),
    ],
)
def test_names_comments_and_idioms_pass(tmp_path, name, source):
    assert _banned(tmp_path, name, source) == []


def _banned(folder, name, source):
    file = folder / name
    file.write_text(source)
    words["banned"].__globals__["ROOT"] = folder
    return list(words["banned"]([file]))


@pytest.mark.parametrize(
    ("opening", "found"), [("Give it.", 3), ("Tell whether it is.", 3), ("Say it.", 3), ("Return it.", 0)]
)
def test_a_docstring_says_return(tmp_path, opening, found):
    file = tmp_path / "module.py"
    text = f'"""{opening}"""'
    file.write_text(f'{text}\nclass A:\n    {text}\n    def f(self):\n        {text}\n        return "Give a name."\n')
    words["openings"].__globals__["ROOT"] = tmp_path
    assert len(list(words["openings"]([file]))) == found
