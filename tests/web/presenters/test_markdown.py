"""Markdown that people wrote comes out as safe HTML that fits the page's outline."""

import re
import time

import pytest

from muniment.web.presenters import markdown
from muniment.web.presenters.markdown import plain, render

ATTACKS = [
    "<script>alert(1)</script>",
    "<style>body{display:none}</style>",
    "<iframe src='https://elsewhere.example'></iframe>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](java&#10;script:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:msgbox)",
    "<a href='javascript:alert(1)'>x</a>",
    "<img src=x onerror=alert(1)>",
    "![x](javascript:alert(1))",
    '![x](https://elsewhere.example/a.png "onload=alert(1)")',
    "<svg onload=alert(1)>",
    "<math><mtext><style><img src onerror=alert(1)></style></mtext></math>",
    "<form action=/manage><input name=csrf></form>",
    "```html\n<script>alert(1)</script>\n```",
    "[our rooms](/admin)",
    "[our rooms](admin)",
    "[our rooms](?do=leave)",
    "[our rooms](#top)",
    "[elsewhere](//elsewhere.example)",
    "![x](/admin)",
    "<https://example.org/\"onmouseover='alert(1)'>",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_no_script_style_frame_form_or_dangerous_link_survives(text):
    html = render(text)
    tags = re.findall(r"<\s*/?\s*([a-z0-9]+)", html, re.IGNORECASE)
    assert not {tag.lower() for tag in tags} & {"script", "style", "iframe", "img", "svg", "math", "form", "input"}
    attributes = " ".join(re.findall(r"<[^>]*>", html)).lower()
    assert not re.search(r'href="(?!https?:|mailto:)', attributes), html
    assert not re.search(r"\son[a-z]+\s*=", re.sub(r'"[^"]*"', '""', attributes)), html


def test_pictures_become_links_so_that_a_page_makes_no_request_to_others():
    assert render("![our harbour](https://elsewhere.example/a.png)") == (
        '<p dir="auto"><a href="https://elsewhere.example/a.png" rel="nofollow ugc noopener noreferrer">our harbour</a>'
        "</p>\n"
    )


def test_headings_continue_the_outline_of_the_page_without_a_gap():
    html = render("#### first\n\n## second\n\n###### third\n\n### fourth")
    assert re.findall(r"<(h\d)", html) == ["h3", "h3", "h4", "h4"]


def test_every_block_takes_the_direction_of_its_own_words():
    assert render("مرحبا\n\nhello").count('dir="auto"') == 2


def test_wide_tables_scroll_by_themselves_and_by_keyboard():
    html = render("| a | b |\n|---|---|\n| 1 | 2 |")
    assert html.startswith('<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>')


def test_plain_words_lose_their_signs_and_end_at_a_word():
    assert plain("# Title\n\nSome **bold** [link](https://a.example) `code`", 100) == "Title Some bold link code"
    assert plain("one two three four", 12) == "one two…"


@pytest.mark.parametrize(
    "text",
    [
        "Runs a harbour.",
        "Élan! (see #4) costs > 3 % + 1 = x ~ y",
        "A  *b*",
        "Owns [a](https://b.example)",
        "A &amp; B",
        "- not a list",
        "1. not a number",
        "A\n=",
        "# Head",
        "港 is a harbour: https://harbour.example!",
        "a\\*b",
        "x < y",
        "tab\there",
        "two  spaces ",
        "A | B",
        "\u00a0\u2028a\u2028b",
        "A harbour.\n\n* and a quay",
        "A long harbour. " * 20 + "\n\n[b]: https://b.example",
        "A long harbour. " * 20 + "\n===",
        "Ilsabet keeps the quay. More: [@ilsabet](https://code.example/ilsabet_m).",
        "A [quay](https://a.example) and a [port](https://b.example/x-y/)",
        "A ![quay](https://a.example/q.png) here",
        "A [*quay*](https://a.example)",
        "A [quay](https://a.example/(b)) here",
        "A [quay ](https://a.example) here",
        "A [](https://a.example) here",
        "A [quay](https://a.example 'title') here",
        "A [[quay](https://a.example)] here",
        "A [quay](mailto:ann@a.example) here",
        "A [quay](https://a.example/?q=1) here",
        "[quay](https://a.example) first",
        "[1. quay](https://a.example) first",
        "A \\[quay](https://a.example) here",
        "https://b.example/[quay](https://a.example)",
    ],
)
def test_a_text_without_markup_is_as_if_it_was_parsed(text, monkeypatch):
    shown = markdown.plain(text)
    monkeypatch.setattr(markdown, "_UNMARKED", re.compile("(?!)"))
    markdown._plain.cache_clear()
    assert markdown.plain(text) == shown


@pytest.mark.parametrize("address", ["/companies/harbour", "/people/ilsabet-moorhen", "/frameworks/tide-score"])
def test_a_text_may_lead_to_a_public_record_of_this_registry(address):
    assert f'<a href="{address}" ' in render(f"[the record]({address})")


@pytest.mark.parametrize(
    "address", ["/companies/harbour/claim", "/companies/..", "/companies/harbour?next=1", "/people", "/manage/tokens"]
)
def test_a_text_leads_to_no_other_page_of_this_registry(address):
    assert "href" not in render(f"[our rooms]({address})")


def test_a_summary_ends_before_the_list_behind_its_first_paragraphs():
    assert plain("Checks of projects.\n\nRun weekly.\n\n- **Maintained** (High)") == "Checks of projects. Run weekly."
    assert plain("- one\n- two") == "one two"
    assert plain("# Title\n\n- one") == "Title one"


def test_a_column_that_is_aligned_to_the_right_is_one_of_numbers():
    html = markdown.render("| Power | Where |\n| ---: | :--- |\n| 380 kW | North |\n")
    assert '<th class="number" dir="auto">Power</th>' in html or '<th dir="auto" class="number">Power</th>' in html
    assert html.count('class="number"') == 2
    assert "style" not in html


def repeated(start: str, part: str = "") -> str:
    """Return a text of full length: *start*, then *part* again and again."""
    part = part or start
    return (start + part * (markdown.MAX_CHARACTERS // len(part)))[: markdown.MAX_CHARACTERS]


HALF = markdown.MAX_CHARACTERS // 2
HEAVY = {
    **{
        sign: repeated(sign)
        for sign in ("![", "[", "]", "[]", "[](", "[a](", "[a](<", "![a](", "[a][b]", "[a", "![[]()")
    },
    **{
        sign: repeated(sign)
        for sign in ("*", "_", "*a", "a*", "a**b", "*a_ ", "**a *a ", "~~", "~~a ", "*[", "_[", "]*")
    },
    **{
        sign: repeated(sign)
        for sign in ("`", "`a", "`[", "\\", "\\[", "&", "&amp", "&#", "\0", "\t", " ", "\n", "\u00a0*")
    },
    **{sign: repeated(sign) for sign in ("<", "<a ", "<!-- ", "<? ", "<![CDATA[", "<http://a", "<div>\n", "<a b='")},
    **{
        sign: repeated(sign)
        for sign in (">", "> ", ">\n", "> a\n", "> - ", "- > ", "- ", "- a\n", "-\n", "1. ", "a\n=\n")
    },
    **{
        sign: repeated(sign)
        for sign in ("# a\n", "a\n", "a  \n", "    a\n", "* * *\n", "```\n", "~~~ a\n", "|", "|-\n")
    },
    **{sign: repeated(sign) for sign in ("[a]: b\n", "[a]: ", "[a]: b 'c\n", "[\n", "[a](b '", "[a](http://b) ")},
    "ever more ticks": repeated("".join("`" * count + " a " for count in range(1, 600))),
    "ever deeper lists": repeated("".join("  " * depth + "- a\n" for depth in range(400))),
    "lazy lines of quotes": repeated("> " * 20 + "a\n", "a\n"),
    "short rows": repeated("a|b\n-|-\n", "a\n"),
    "short rows of a wide table": repeated("|a" * 300 + "\n" + "|-" * 300 + "\n", "a\n"),
    "a wide table": "|a" * (HALF // 2) + "\n" + "|-" * (HALF // 2),
    "definitions": repeated("".join(f"[a{number}]: b\n" for number in range(20_000))),
    "references": "".join(f"[a{number}]: b\n" for number in range(8_000)) + "[a1] " * 15_000,
    "nested brackets": "[" * HALF + "]" * HALF,
    "nested links": "[" * (HALF // 2) + "](a)" * (HALF // 4),
    "nested pictures": "![" * (HALF // 2) + "](a)" * (HALF // 4),
    "nested emphasis": "*a **a " * (HALF // 7) + "b** b* " * (HALF // 7),
}
ORDINARY = "".join(
    f"- [Entry {number}](https://example.org/{number}) has *a word* or two.\n" for number in range(4_000)
)


def cpu_s(text: str) -> float:
    began = time.process_time()
    markdown._rendered.__wrapped__(text[: markdown.MAX_CHARACTERS], 2, "Table")
    return time.process_time() - began


@pytest.fixture(scope="module")
def ordinary_s():
    """Return what a list of full length costs, which is shown with its markup."""
    assert "<a href" in render(ORDINARY[:HALF])
    assert "<ul>" in render(repeated(ORDINARY))
    return min(cpu_s(repeated(ORDINARY)) for _ in range(3))


@pytest.mark.parametrize("kind", HEAVY)
def test_no_text_costs_much_more_than_an_ordinary_one_of_its_length(kind, ordinary_s):
    most_s = 4 * ordinary_s
    assert cpu_s(HEAVY[kind]) < most_s or cpu_s(HEAVY[kind]) < most_s  # a busy machine can disturb one


def test_a_text_with_more_steps_than_the_limit_is_shown_as_it_was_typed(monkeypatch):
    text = "*one*\ntwo\n\n<three>"
    env = {}
    markdown._parser.parse(text, env)
    show = markdown._rendered.__wrapped__
    monkeypatch.setattr(markdown, "MAX_STEPS", env["steps"])
    assert "<em>one</em>" in show(text, 2, "Table")
    monkeypatch.setattr(markdown, "MAX_STEPS", env["steps"] - 1)
    assert show(text, 2, "Table") == '<p dir="auto">*one*<br>\ntwo</p>\n<p dir="auto">&lt;three&gt;</p>'
    assert markdown._plain.__wrapped__("*one* two", 200) == "one two"
    monkeypatch.setattr(markdown, "MAX_STEPS", 0)
    assert markdown._plain.__wrapped__("*one* two", 200) == "*one* two"


def test_a_table_that_is_filled_up_with_more_cells_than_the_limit_is_shown_as_it_was_typed(monkeypatch):
    text = "a|b\n-|-\n" + "c\n" * 10 + "\nafter"
    show = markdown._rendered.__wrapped__
    tokens = [token.type for token in markdown._parser.parse(text)]
    monkeypatch.setattr(markdown, "MAX_BLOCKS", tokens.index("table_close") + 1)
    assert "<table>" in show(text, 2, "Table")
    monkeypatch.setattr(markdown, "MAX_BLOCKS", tokens.index("table_close"))
    assert "<table>" not in show(text, 2, "Table")
