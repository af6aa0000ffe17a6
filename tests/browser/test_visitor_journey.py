"""A visitor's journey, counted in steps: the DAOs on an issue that are raising."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.keys import Keys
from browser.test_search_box import ORIGIN, Site
from make.published import company
from make.rest import Rest
from muniment.web.requests import page_cache

ROUNDS = [{"id": "r1", "name": "Panels for the quay", "target": "$2M", "opened": "2026-01-02"}]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    rest = Rest(tmp_path_factory.mktemp("journey"))
    rest.publish(
        company(1, "sunhold", name="Sunhold", type="DAO", themes=["solar energy"], raising=True, fundingRounds=ROUNDS),
        company(2, "raypool", name="Raypool", type="DAO", themes=["solar energy"], raising=True),
        company(3, "quietsun", name="Quietsun", type="DAO", themes=["solar energy"], raising=False),
        company(4, "glasswork", name="Glasswork", type="corporation", themes=["solar energy"], raising=True),
        company(5, "tidewell", name="Tidewell", type="DAO", themes=["tidal energy"], raising=True),
    )
    page_cache.use(rest.reader)
    made = Site(rest)
    yield made
    made.close()
    page_cache.pages.clear()
    page_cache._reader = None
    rest.close()


@pytest.fixture(params=[{"width": 1280, "height": 900}, {"width": 390, "height": 844}], ids=["desk", "phone"])
def page(request, browser, site):
    context = browser.new_context(base_url=ORIGIN, viewport=request.param, reduced_motion="reduce")
    context.route("**/*", site)
    yield context.new_page()
    context.close()


def test_the_daos_on_an_issue_that_are_raising_are_found_in_three_steps_by_keyboard(page):
    page.goto("/companies")
    page.keyboard.press("/")
    page.keyboard.type("which DAOs on solar energy are raising")  # step 1
    page.keyboard.press("Enter")  # step 2
    page.wait_for_url("**/search?**")
    chips = page.locator("main .chips, main .chosen").first
    for word in ("DAO", "Solar energy", "aising"):
        expect(chips).to_contain_text(word)
    found = page.locator("main a[href^='/companies/']")
    assert {each.get_attribute("href") for each in found.all()} == {"/companies/sunhold", "/companies/raypool"}
    Keys(page).press(page.get_by_role("link", name="Sunhold").first)  # step 3
    page.wait_for_url("**/companies/sunhold")
    expect(page.locator("main")).to_contain_text("Panels for the quay")
    expect(page.locator("main")).to_contain_text("$2M")


def test_filters_of_the_list_lead_to_the_same_companies(page):
    page.goto("/companies?type=DAO&theme=solar+energy&raising=true")
    rows = page.locator("main a[href^='/companies/']")
    slugs = {each.get_attribute("href") for each in rows.all()}
    assert {"/companies/sunhold", "/companies/raypool"} <= slugs
    assert slugs.isdisjoint({"/companies/quietsun", "/companies/glasswork", "/companies/tidewell"})
