"""The search box in a real browser: results while typing, by keyboard, for screen readers, and under pressure."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from playwright.sync_api import expect

from browser.eyes import in_the_dark, violations
from make.published import company, framework, person
from make.rest import Rest
from muniment.web.requests import page_cache

pytestmark = pytest.mark.requirement("search.header")
ORIGIN = "http://registry.test"
HOSTILE = '<img src=x onerror="document.title=1">'


class Site:
    """Answers a browser's requests from this process: pages, static files and REST."""

    def __init__(self, rest: Rest) -> None:
        self._rest, self._pages = rest, Client(SERVER_NAME="registry.test")
        # Playwright has an event loop in its thread.
        self._thread = ThreadPoolExecutor(1)
        self.language = "en"
        self.asked: list[str] = []
        """The searches that arrived."""
        self.refusals = 0
        """How many searches to refuse from now on."""

    def close(self) -> None:
        self._thread.shutdown()

    def __call__(self, route) -> None:
        url = urlsplit(route.request.url)
        target = f"{url.path}?{url.query}" if url.query else url.path
        if url.path == "/search/box":
            self.asked.append(parse_qs(url.query)["q"][0])
            if self.refusals:
                self.refusals -= 1
                route.fulfill(status=429, headers={"Retry-After": "1"}, body="{}")
                return
        ask = self._rest.ask if url.path.startswith("/api/") else self._page
        answer = self._thread.submit(ask, target).result()
        route.fulfill(status=answer.status, headers=dict(answer.headers), body=answer.body)

    def _page(self, target: str):
        answer = self._pages.get(target, headers={"Accept-Language": self.language})
        answer.status, answer.body = answer.status_code, b"".join(answer)
        return answer


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    rest = Rest(tmp_path_factory.mktemp("search"))
    rest.publish(
        company(1, "tide", name="Tide", symbol="TIDE", description="Keeps boats."),
        *(company(n, name=f"Tide {n}") for n in range(2, 12)),
        company(12, "hostile", name=f"Zebra {HOSTILE}", description=HOSTILE),
        company(13, "rtl", name="تعاونية المد"),
        company(14, "han", name="潮"),
        company(15, "a/b c", name="Quarry", type="DAO", themes=["stone pits"]),
        person(1, "ada-tide", name="Ada Tide", bio="Measures water."),
        framework(1, "tide-score", name="Tide score"),
    )
    page_cache.use(rest.reader)
    made = Site(rest)
    yield made
    made.close()
    page_cache.use(None)
    rest.close()


@pytest.fixture
def page(browser, site):
    site.asked.clear()
    context = browser.new_context(base_url=ORIGIN, viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.route("**/*", site)
    opened = context.new_page()
    opened.goto("/companies/tide")
    yield opened
    context.close()


def options(page):
    return page.get_by_role("listbox", name="Results").get_by_role("option")


def test_a_slash_and_ctrl_k_focus_the_box_and_a_slash_elsewhere_is_typed(page):
    box = page.get_by_role("combobox", name="Search companies, people and frameworks")
    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.keyboard.type("a/b")
    expect(box).to_have_value("a/b")
    page.goto("/companies")
    page.locator("#q").focus()
    page.keyboard.type("c/d")
    expect(page.locator("#q")).to_have_value("c/d")
    page.keyboard.press("Control+k")
    expect(box).to_be_focused()


def test_results_of_all_kinds_come_while_typing_without_moving_the_page(page):
    main = page.locator("main").bounding_box()
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(options(page)).to_have_count(9)
    assert options(page).nth(0).inner_text().split("\n") == ["Tide TIDE", "Company", "Keeps boats."]
    assert {"Person", "Framework"} <= set(options(page).locator(".kind").all_inner_texts())
    assert options(page).last.inner_text() == "All results for “tide” (13)"
    expect(page.locator(".everything [aria-live]")).to_have_text("13 results")
    assert page.locator("main").bounding_box() == main


def test_the_keyboard_reaches_every_result_and_goes_back_to_the_box(page):
    box = page.locator("#find")
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(box).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowUp")
    expect(options(page).last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    assert box.get_attribute("aria-activedescendant") is None
    page.keyboard.press("ArrowDown")
    assert box.get_attribute("aria-activedescendant") == options(page).nth(0).get_attribute("id")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".found")).to_be_hidden()
    expect(box).to_have_value("tide")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    with page.expect_navigation(url="**/companies/tide"):
        page.keyboard.press("Enter")
    page.locator("#find").fill("quarry")
    options(page).nth(0).click()
    page.wait_for_url("**/companies/a%2Fb%20c")


def test_enter_opens_all_results_and_back_is_one_step(page):
    page.keyboard.press("/")
    page.keyboard.type("ada tide")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=ada+tide")
    expect(page.get_by_role("heading", level=1)).to_have_text("Results for “ada tide”")
    expect(page.locator(".found")).to_be_hidden()
    page.go_back()
    page.wait_for_url("**/companies/tide")


def test_fast_typing_asks_once_and_what_was_asked_before_is_remembered(page, site):
    page.evaluate(
        """() => {
          const box = document.querySelector("#find");
          box.focus();
          for (const letter of "tide score") {
            box.value += letter;
            box.dispatchEvent(new Event("input"));
          }
        }"""
    )
    expect(options(page).nth(0)).to_contain_text("Tide score")
    assert site.asked == ["tide score"]
    page.locator("#find").fill("quarry")
    expect(options(page).nth(0)).to_contain_text("Quarry")
    page.locator("#find").fill("tide score")
    expect(options(page).nth(0)).to_contain_text("Tide score")
    assert site.asked == ["tide score", "quarry"]


def test_one_letter_asks_nothing_and_one_sign_of_a_script_without_spaces_does(page, site):
    page.locator("#find").fill("t")
    page.locator("#find").fill("潮")
    expect(options(page).nth(0)).to_contain_text("潮")
    assert site.asked == ["潮"]


def test_a_refused_search_is_asked_again_in_silence(page, site):
    site.refusals = 1
    page.locator("#find").fill("tide")
    expect(options(page)).to_have_count(9)
    assert site.asked == ["tide", "tide"]


def test_what_others_wrote_is_text_and_runs_from_its_own_side(page):
    page.locator("#find").fill("zebra")
    expect(options(page).nth(0).locator("bdi")).to_have_text(f"Zebra {HOSTILE}")
    assert page.title() != "1"
    assert page.locator(".found img").count() == 0
    page.locator("#find").fill("تعاونية")
    expect(options(page).nth(0).locator("bdi")).to_have_text("تعاونية المد")
    page.locator("#find").fill(HOSTILE)
    expect(options(page).last.locator("bdi")).to_have_text(HOSTILE)


def test_nothing_and_something_close_are_said(page):
    note = page.locator(".everything .note")
    page.locator("#find").fill("zzyzx quorl")
    expect(note).to_have_text("Nothing found. Use fewer or other words.")
    expect(options(page)).to_have_count(1)
    page.locator("#find").fill("who is ada tide here")
    expect(note).to_have_text("No exact match. Closest:")
    expect(options(page).nth(0)).to_contain_text("Ada Tide")


@pytest.mark.requirement("search.values")
def test_values_of_filters_are_suggested_and_reached_by_keyboard(page):
    page.locator("#find").fill("stone")
    expect(options(page)).to_have_count(3)
    value = page.get_by_role("group", name="Filters").get_by_role("option")
    expect(value).to_have_text("Theme: Stone pits 1")
    page.keyboard.press("ArrowDown")
    expect(value).to_have_attribute("aria-selected", "true")
    assert page.locator("#find").get_attribute("aria-activedescendant") == "value-0"
    assert violations(page) == []
    assert in_the_dark(page) == []
    with page.expect_navigation(url="**/companies?theme=stone+pits"):
        page.keyboard.press("Enter")
    expect(page.locator("#count")).to_contain_text("1 company")


def test_the_open_box_is_accessible_in_light_and_dark_and_fits_a_small_phone(page):
    page.keyboard.press("/")
    page.keyboard.type("tide")
    expect(options(page)).to_have_count(9)
    page.keyboard.press("ArrowDown")
    assert violations(page) == []
    assert in_the_dark(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    found = page.locator(".found").bounding_box()
    assert found["x"] >= 0
    assert found["x"] + found["width"] <= 320


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("path", ["/search?q=tide", "/search", "/search?q=zzyzx"])
def test_the_search_page_is_accessible_and_fits_a_small_phone(page, path):
    page.goto(path)
    assert violations(page) == []
    assert in_the_dark(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_the_box_is_a_form_without_javascript(browser, site):
    context = browser.new_context(base_url=ORIGIN, java_script_enabled=False)
    context.route("**/*", site)
    page = context.new_page()
    page.goto("/people")
    page.locator("#find").fill("ada tide")
    page.locator("#find").press("Enter")
    page.wait_for_url("**/search?q=ada+tide")
    expect(page.locator(".kinds .listing").first).to_contain_text("Ada Tide")
    context.close()
