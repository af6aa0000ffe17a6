"""Texts with links, as HTML."""

import re

import pytest

from muniment.web.presenters.linked_text import SHOWN_LINES, UNFOLDED_LINES, folded_html, pathed_html


def test_a_long_text_shows_its_first_lines_and_keeps_all_of_them():
    lines = [f"<b>Holder {n}</b>" for n in range(5_000)]
    html = folded_html("\n".join(lines))
    shown, _, rest = html.partition("<details>")
    assert shown.count("Holder") == SHOWN_LINES
    assert rest.startswith("<summary>Show 4,995 more lines</summary>")
    assert re.findall(r"Holder (\d+)&lt;", html) == [str(n) for n in range(5_000)]
    assert "<b>" not in html


def test_a_text_that_has_room_is_not_folded():
    text = "\n".join(["See https://tide.example/a.", *["line"] * (UNFOLDED_LINES - 1)])
    html = folded_html(text)
    assert "<details>" not in html
    assert 'href="https://tide.example/a"' in html
    assert f"Show {UNFOLDED_LINES + 1 - SHOWN_LINES} more lines<" in folded_html(f"{text}\nline")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Your listings are at /manage.", 'Your listings are at <a href="/manage">/manage</a>.'),
        ("See /docs for all of them.", 'See <a href="/docs">/docs</a> for all of them.'),
        ("Revoke it at /manage/tokens, please.", 'Revoke it at <a href="/manage/tokens">/manage/tokens</a>, please.'),
        ("<i>/api/v1/companies</i>", "&lt;i&gt;/api/v1/companies&lt;/i&gt;"),
        ("https://evil.example/manage", "https://evil.example/manage"),
        ("//manage and /managers", "//manage and /managers"),
    ],
)
def test_rooms_of_the_registry_that_a_text_names_are_links(text, html):
    assert pathed_html(text) == html
