"""Markdown that people wrote comes out as safe HTML that fits the page's outline."""

import re
import time
from html import unescape

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
    ("text", "shown"),
    [
        ("Élan! (see #4) costs > 3 % + 1 = x ~ y", "Élan! (see #4) costs > 3 % + 1 = x ~ y"),
        ("A  *b* &amp; `c`", "A b & c"),
        ("x < y", "x < y"),
        ("- not a list", "not a list"),
        ("A | B", "A | B"),
        ("| A | B |\n| --- | --- |\n| 1 | 2 |", "A B 1 2"),
        ("A  \nharbour.\nOpen.", "A harbour. Open."),
        ("A ![quay](https://a.example/q.png) here", "A here"),
        ("Owns [a](https://b.example) and <https://c.example>", "Owns a and https://c.example"),
        ("A <b>quay</b> here", "A quay here"),
        ("A harbour.\n\n```\nlet quay = 1\n```", "A harbour."),
        ("A harbour.\n\n* and a quay", "A harbour."),
        ("A \\[quay](https://a.example) here", "A [quay](https://a.example) here"),
    ],
)
def test_a_summary_is_the_words_of_its_text(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize(
    "text",
    ["a <three> b", "<div>\nwithin\n</div>", "a <!-- b --> c", "<script>alert(1)</script>", "é <b>é</b> é"],
)
def test_raw_html_is_shown_as_it_was_typed(text):
    shown = unescape(re.sub(r"</?p[^>]*>\n?", "", render(text)))
    assert shown == text


def test_an_address_in_angle_brackets_beside_raw_html_stays_a_link():
    assert '<a href="https://a.example"' in render("<b> <https://a.example> `<i>`")
    assert "<code>&lt;i&gt;</code>" in render("<b> <https://a.example> `<i>`")


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
    # The dearest, 200,000 signs that are escaped, costs 16 times as much; a square would be a thousand times.
    most_s = 40 * ordinary_s
    assert cpu_s(HEAVY[kind]) < most_s or cpu_s(HEAVY[kind]) < most_s  # a busy machine can disturb one


@pytest.mark.parametrize("depth", [markdown.MAX_DEPTH, markdown.MAX_DEPTH + 1])
def test_a_text_that_is_nested_more_deeply_than_the_limit_is_shown_as_it_was_typed(depth):
    html = render(">" * depth + " deep <three>\nlast")
    is_shown = depth <= markdown.MAX_DEPTH
    assert ("<blockquote" in html) == is_shown
    assert ("&gt;&gt;" in html) != is_shown
    assert "deep &lt;three&gt;" in html
