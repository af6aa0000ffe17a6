"""In a real browser: an operator declares a field on the page, and it is in use, with JavaScript and without."""

import pytest
from playwright.sync_api import expect

from browser.eyes import look_at
from browser.tour import OPERATOR, PASSWORD, origin, sign_in
from services.prepared import copied, demo_registry
from services.product import Product, run

HOME = "/operate/fields"


def _with_an_operator(data, **settings):
    demo_registry(data, **settings)
    made = ("user", "create", OPERATOR, "--role", "operator", "--password-stdin")
    run(*made, data=data, stdin=PASSWORD + "\n", **settings)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Product(copied(_with_an_operator, tmp_path_factory.mktemp("site") / "data"), rate_limit="off") as product:
        product.wait_ready()
        yield product


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_an_operator_declares_a_field_that_comes_into_use(browser, site, scripts):
    context = browser.new_context(base_url=origin(site), java_script_enabled=scripts)
    label = "Berths" if scripts else "Moorings"
    key = label.lower()
    page = sign_in(context, site, OPERATOR)
    page.goto(HOME)
    page.locator(f"a[href='{HOME}/company']").click()
    page.get_by_label("Label").fill(label)
    page.get_by_label("Kind of value").select_option(label="Choice")
    page.get_by_label("Choices").fill("Deep water\nShallow")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    expect(page.locator(f"#preview_{key}")).to_have_value("Deep water")
    page.get_by_role("button", name="Add field").click()
    page.wait_for_url(f"**{HOME}")
    expect(page.get_by_role("link", name=label, exact=True)).to_be_visible()
    in_use = page.get_by_text("The fields have been in use since")
    expect(in_use).to_be_visible(timeout=20_000)  # reloaded by a script, or by the browser
    assert f'"{key}"' in site.get("/openapi.json").body.decode()
    context.close()


def test_the_pages_of_a_field_are_accessible(browser, site):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OPERATOR)
    paths = [HOME, f"{HOME}/company", f"{HOME}/company/berths", f"{HOME}/company/berths/remove?version=1"]
    look_at(page, site, paths)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{HOME}/company/berths")
    page.get_by_label("Choices").fill("")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Enter at least one choice, one per line.")).to_be_visible()
    context.close()
