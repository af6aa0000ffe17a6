"""The query page in a browser: the editor, parameters, sorting and canceling without leaving the page, by keyboard."""

import pytest

from browser.eyes import violations
from services.editor import BUNDLE, bundled

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
NOTE_VIOLATIONS = """window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));"""
BY_CHROMIUM = {"style-src-attr"}
"""When a selection is typed over, Chromium tries to keep its colors by an attribute; the editor then draws its own."""
FOCUSED = "document.activeElement.className || document.activeElement.id"


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def opened(page, url):
    page.add_init_script(NOTE_VIOLATIONS)
    page.goto(url)
    page.wait_for_selector(".editor")
    return page.locator(".editor .cm-content")


def test_a_statement_is_run_sorted_and_canceled_by_keyboard_without_the_editor(demo, page):
    page.route("**/editor.min*.js", lambda route: route.abort())
    page.goto(f"{demo.url}/data/query")
    page.locator("#sql").fill("SELECT slug AS company FROM companies WHERE type = :type")
    page.locator("#sql").press("Control+Enter")
    page.locator("#p-type").fill("DAO")
    page.locator("#p-type").press("Enter")
    page.wait_for_selector("#answer table")
    assert "type=DAO" in page.url
    page.locator("#answer thead a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer th[aria-sort]")
    page.locator("#sql").fill(ENDLESS)
    page.locator("#sql").press("Control+Enter")
    page.wait_for_selector("#cancel", state="visible")
    page.locator("#cancel").press("Enter")
    page.wait_for_selector("#cancel", state="hidden")
    assert page.evaluate("document.activeElement.id") == "sql"
    assert page.locator("#sql").input_value() == ENDLESS
    assert not page.locator("#editor-hint").is_visible()


def test_the_editor_completes_tables_and_columns_runs_by_keyboard_and_lets_tab_leave(demo, page):
    with page.expect_response("**/api/v1/tables"):
        editor = opened(page, f"{demo.url}/data/query?sql=SELECT+1")
    assert editor.inner_text() == "SELECT 1"
    editor.press("Control+a")
    page.keyboard.type("SELECT treas FROM companies")
    for _ in " FROM companies":
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Control+Space")
    # By the mouse, since the key is ignored for the 75 ms in which it may have been meant for the text.
    page.locator(".editor .cm-tooltip-autocomplete [role=option]", has_text="treasury_minor").click()
    assert page.locator("#sql").input_value() == "SELECT treasury_minor FROM companies"
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT slug FROM companies WHERE slug <> ''")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**slug%20%3C%3E**")
    assert page.evaluate(FOCUSED) == "editor"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "submit"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED) == "editor"
    page.keyboard.press("Control+a")
    page.keyboard.type(ENDLESS)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#cancel", state="visible")
    page.locator("#cancel").press("Enter")
    page.wait_for_selector("#cancel", state="hidden")
    assert page.evaluate(FOCUSED) == "editor"
    assert set(page.evaluate("violations")) <= BY_CHROMIUM


def test_what_was_typed_before_the_editor_came_stays_with_the_cursor(demo, page):
    held = []

    def hold(route):
        held.append(route)

    page.route("**/editor.min*.js", hold)
    with page.expect_request("**/editor.min*.js"):
        page.goto(f"{demo.url}/data/query")
        page.locator("#sql").press_sequentially("SELECT 2")
    held[0].continue_()
    page.wait_for_selector(".editor")
    page.keyboard.type("5 AS n")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#answer table")
    assert page.locator("#answer td").inner_text() == "25"


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_editor_is_accessible_in_both_themes_and_in_german(demo, browser, scheme):
    context = browser.new_context(color_scheme=scheme, locale="de", viewport={"width": 1280, "height": 900})
    page = context.new_page()
    statement = "SELECT+name,+'text'+AS+t,+1+AS+n+FROM+companies+--+note"
    editor = opened(page, f"{demo.url}/data/query?sql={statement}")
    assert editor.get_attribute("aria-label") == "Anweisung"
    assert page.locator("#editor-hint").inner_text().startswith("Eingabe übernimmt")
    editor.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.type("SEL")
    page.locator(".editor .cm-tooltip-autocomplete [role=option]").first.wait_for()
    assert violations(page) == []
    context.close()


def test_the_page_is_small_before_the_editor_is_loaded(demo, page):
    sizes = []
    page.on("requestfinished", lambda request: sizes.append((request.url, request.sizes()["responseBodySize"])))
    page.goto(f"{demo.url}/data/query")
    page.wait_for_selector(".editor")
    editor = next(place for place, (url, _) in enumerate(sizes) if "/editor.min" in url)
    assert sum(size for _, size in sizes[:editor]) < 100_000


def test_the_bundle_is_that_of_its_sources():
    assert BUNDLE.read_bytes() == bundled()
