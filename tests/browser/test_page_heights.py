"""In a real browser: whatever the data, no page is taller than 12,000 px or larger than 150 KB at 1,280 px."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from browser.test_search_box import ORIGIN, Site
from make.published import company, framework, person
from make.rest import Rest
from muniment import web
from muniment.web.requests import page_cache

MOST_PX, MOST_BYTES = 12_000, 150_000
ROWS = 2_000
WORDS = "Harbours, boats and the tides that carry them. "


def _largest():
    """Return a company whose every list and text is as long as owners may make it, or longer."""
    made = company(
        1,
        "largest",
        name="Largest of all",
        description=WORDS * 12,
        body="\n\n".join(f"## Part {n}\n\n{WORDS * 10}\n\n| a | b |\n|---|---|\n| 1 | 2 |" for n in range(90)),
        themes=[f"theme of some length {n}" for n in range(60)],
        capTable=[{"name": f"Holder {n} {WORDS}", "address": f"0x{n:040}", "percentage": 0.01} for n in range(ROWS)],
        **{f"note{n}": WORDS * 3 for n in range(40)},
    )
    bundle = json.loads(made.body)
    bundle["data"] |= {
        "positions": [
            {
                "title": f"Author of the paper numbered {n % 40} of {n}",
                "person": {"name": f"Person {n % 700}", "slug": f"p-{n % 700}"},
            }
            for n in range(ROWS)
        ],
        "proposals": [
            {
                "id": f"p{n}",
                "title": f"{WORDS * 4}{n}.",
                "status": "active" if n % 3 else "passed",
                "endDate": "2999-01-01" if n % 2 else "2020-01-01",
                "votes": {"for": n, "against": 7, "abstain": 2},
            }
            for n in range(ROWS)
        ],
        "fundingRounds": [{"name": f"{WORDS * 2}{n}.", "opened": "2020-01-01"} for n in range(ROWS)],
    }
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    return type(made)(**{**fields, "body": json.dumps(bundle).encode()})


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    rest = Rest(tmp_path_factory.mktemp("large"))
    rest.publish(
        _largest(),
        *(
            company(n, name=f"{WORDS}{n}", description=WORDS * 12, type=f"type of some length {n % 60}", industry=WORDS)
            for n in range(2, 130)
        ),
        person(
            1,
            "p-0",
            name=WORDS,
            bio=WORDS * 40,
            positions=tuple((f"{WORDS}{n}", f"company-{n}") for n in range(2, 130)),
        ),
        *(
            person(n, f"p-{n}", bio=WORDS * 9, positions=((WORDS, "largest"), (WORDS, "company-2")))
            for n in range(2, 60)
        ),
        *(framework(n, f"f-{n}", name=f"{WORDS}{n}", description=WORDS * 200) for n in range(1, 60)),
    )
    page_cache.use(rest.reader)
    made = Site(rest)
    yield made
    made.close()
    page_cache.use(None)
    rest.close()


@pytest.fixture(scope="module")
def page(browser, site):
    context = browser.new_context(base_url=ORIGIN, viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.route("**/*", site)
    yield context.new_page()
    context.close()


@pytest.mark.whole(keeps=2)
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/companies",
        "/companies?q=harbours",
        "/people",
        "/frameworks",
        "/search?q=harbours",
        "/companies/largest",
        *(f"/companies/largest/{part}" for part in ("about", "team", "team?by=title", "proposals", "cap-table")),
        *(f"/companies/largest/{part}" for part in ("funding", "history", "network", "embed")),
        "/people/p-0",
        "/people/p-0/positions",
        "/frameworks/f-1",
        "/compare?c=largest&c=company-2&c=company-3&c=company-4",
    ],
)
def test_no_page_is_too_tall_or_too_large(page, path):
    answer = page.goto(path)
    assert answer.status == 200
    assert page.evaluate("document.documentElement.scrollHeight") <= MOST_PX
    assert len(answer.body()) <= MOST_BYTES
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_long_label_of_a_filter_does_not_widen_the_filters(browser):
    sheet = (Path(web.__file__).parent / "static" / "web" / "muniment.css").read_text("utf-8")
    filters = "".join(
        f'<div><label for="{end}">Annual turnover of the last closed year (EUR) {end}</label>'
        f'<input id="{end}" type="text" inputmode="decimal"></div>'
        for end in ("from", "to")
    )
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_content(
        f'<style>{sheet}</style><main><div class="faceted"><details class="facets" open><summary>Filters</summary>'
        f'<div class="stack"><section class="typed">{filters}</section></div></details>'
        '<div class="stack matches">Results</div></div></main>'
    )
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('input')].map(e => e.getBoundingClientRect().right))"
    )
    assert right <= page.evaluate("document.querySelector('.matches').getBoundingClientRect().left")
    page.close()


def phone_of_large_letters(browser):
    """Open a page on a phone whose letters are twice as large as usual; return its context too."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("Page.enable")
    devtools.send("Page.setFontSizes", {"fontSizes": {"standard": 32, "fixed": 26}})
    return context, page


def test_letters_twice_as_large_keep_the_skip_link_away_and_tables_on_a_phone(browser):
    sheet = (Path(web.__file__).parent / "static" / "web" / "muniment.css").read_text("utf-8")
    context, page = phone_of_large_letters(browser)
    page.set_content(
        f'<style>{sheet}</style><body><a class="skip" href="#main">Zu den Ergebnissen springen</a>'
        '<main class="frame" id="main"><figure class="chart"><table class="numbers"><tbody>'
        '<tr><th scope="row">Against</th><td class="number">101,805,432.288196 (95.1%)</td></tr>'
        "</tbody></table></figure></main></body>"
    )
    assert page.evaluate("document.querySelector('.skip').getBoundingClientRect().bottom") <= 0
    assert page.evaluate("document.querySelector('table').getBoundingClientRect().right") <= 390
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('.skip').getBoundingClientRect().top") >= 0
    context.close()


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_names_of_the_pages_are_in_one_row_beside_the_account(browser, site, language):
    context = browser.new_context(base_url=ORIGIN, viewport={"width": 1280, "height": 900})
    context.route("**/*", site)
    page = context.new_page()
    site.language = language
    page.goto("/companies/company-2")
    site.language = "en"
    page.evaluate("document.fonts.ready.then(() => null)")
    assert page.evaluate("document.documentElement.lang") == language
    assert page.evaluate("document.querySelector('.top').getBoundingClientRect().height") < 100
    context.close()


def test_letters_twice_as_large_enlarge_the_picture_of_a_network_as_a_whole(browser, site):
    context = browser.new_context(base_url=ORIGIN, viewport={"width": 1280, "height": 900})
    context.route("**/*", site)
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("Page.enable")
    devtools.send("Page.setFontSizes", {"fontSizes": {"standard": 32, "fixed": 26}})
    page.goto("/companies/largest/network")
    page.evaluate("document.fonts.ready.then(() => null)")
    drawing, own, *names = page.evaluate(
        "[...document.querySelectorAll('.network, .network text')].map(e => {"
        " const box = e.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom] })"
    )
    assert len(names) > 20
    assert own[0] >= drawing[0]
    assert max(right for _, _, right, _ in names) <= drawing[2]
    people = sorted(box for box in names if box[0] < drawing[2] / 2)
    tops = sorted((top, bottom) for _, top, _, bottom in people)
    assert all(above[1] <= below[0] + 1 for above, below in pairwise(tops))
    assert tops[0][1] - tops[0][0] > 26
    context.close()


def test_each_name_of_a_comparison_is_beside_the_next_on_a_phone(browser, site):
    context = browser.new_context(base_url=ORIGIN, viewport={"width": 390, "height": 844})
    context.route("**/*", site)
    page = context.new_page()
    page.goto("/compare?c=company-2&c=company-3&c=company-4&c=company-5")
    names = page.evaluate(
        "[...document.querySelectorAll('.sides thead .name')].map(e => {"
        " const range = document.createRange(); range.selectNodeContents(e);"
        " return [range.getBoundingClientRect().right, e.closest('th').getBoundingClientRect().right] })"
    )
    assert len(names) == 4
    assert all(name <= column for name, column in names)
    context.close()


def test_a_printed_list_has_the_whole_page_and_nothing_to_press(browser, site):
    context = browser.new_context(base_url=ORIGIN, viewport={"width": 1000, "height": 900})
    context.route("**/*", site)
    page = context.new_page()
    page.emulate_media(media="print")
    page.goto("/companies?q=harbours")
    box = page.locator(".matches").bounding_box()
    assert box["width"] > 850
    page.goto("/companies/company-2")
    assert not page.get_by_role("heading", name="Actions").is_visible()
    context.close()


def test_letters_twice_as_large_widen_no_trail_form_or_row_of_buttons_of_a_phone(browser):
    sheet = (Path(web.__file__).parent / "static" / "web" / "muniment.css").read_text("utf-8")
    context, page = phone_of_large_letters(browser)
    field = '<div class="field"><label>Name der Runde</label><input></div>'
    page.set_content(
        f'<style>{sheet}</style><body><main class="frame">'
        '<nav class="crumbs"><ol><li><a href="/">Kriterienkataloge</a></li>'
        '<li><span aria-current="page">Encoding and Sanitization of the whole web</span></li></ol></nav>'
        '<form class="sift" role="search"><div><label>E-Mail</label><input></div>'
        "<div><label>Status</label><select></select></div></form>"
        f'<fieldset><legend>Finanzierungsrunden</legend><div class="repeat">{field}{field}</div></fieldset>'
        '<div class="actions stays"><button class="button main">Speichern und weiter</button><button class="button">'
        'Vorschau</button><a class="leave" href="/">Abbrechen</a></div></main></body>'
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
