"""A visitor's journey, counted in steps: the companies on an issue that are raising."""

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
    page_cache.use(None)
    rest.close()


@pytest.fixture(params=[{"width": 1280, "height": 900}, {"width": 390, "height": 844}], ids=["desk", "phone"])
def page(request, browser, site):
    context = browser.new_context(base_url=ORIGIN, viewport=request.param, reduced_motion="reduce")
    context.route("**/*", site)
    yield context.new_page()
    context.close()


def test_the_companies_on_an_issue_are_found_in_two_steps_by_keyboard(page):
    page.goto("/companies")
    page.keyboard.press("/")
    page.keyboard.type("solar ener")
    chip = page.get_by_role("option", name="Solar energy").first
    expect(chip).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(chip).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")  # step 1: a value of a filter
    page.wait_for_url("**/companies?**theme=**")
    found = page.locator("main a[href^='/companies/']")
    slugs = {link.get_attribute("href") for link in found.all()}
    assert {f"/companies/{slug}" for slug in ("sunhold", "raypool", "quietsun", "glasswork")} <= slugs
    assert "/companies/tidewell" not in slugs
    Keys(page).press(page.get_by_role("link", name="Sunhold").first)  # step 2
    page.wait_for_url("**/companies/sunhold")
    expect(page.locator("main")).to_contain_text("Panels for the quay")
    expect(page.locator("main")).to_contain_text("$2M")


def test_filters_of_the_list_lead_to_the_same_companies(page):
    page.goto("/companies?type=DAO&theme=solar+energy&raising=true")
    rows = page.locator("main a[href^='/companies/']")
    slugs = {each.get_attribute("href") for each in rows.all()}
    assert {"/companies/sunhold", "/companies/raypool"} <= slugs
    assert slugs.isdisjoint({"/companies/quietsun", "/companies/glasswork", "/companies/tidewell"})
