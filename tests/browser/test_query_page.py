"""The query page in a browser: parameters, sorting and canceling without leaving the page, and all by keyboard."""

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_statement_is_run_sorted_and_canceled_by_keyboard(demo, browser):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
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
    context.close()
