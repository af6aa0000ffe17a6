"""In a real browser: a founder lists an organization from a spreadsheet, by keyboard, and without a script."""

import re

import pytest
from playwright.sync_api import expect

from browser.eyes import in_the_dark, violations
from browser.keys import Keys
from browser.tour import COMPANY, OWNER, REVIEWER, origin, sign_in, stand

PEOPLE = {"Oriel": "Chair", "Tamsin": "Treasurer", "Corvin": "Harbour master", "Wenna": "Steward", "Piran": "Clerk"}
HOLDERS = "Holder;Tokens;Share\nCommon treasury;500.000;50.5%\nFounders;300.000;30 %\nMembers;195.000;19,5 %"
FAMILIES = {True: "Sandpiper", False: "Eelgrass"}
"""Other people for each way, because a name that the registry knows is asked about."""
MOST_STEPS = 22
"""What the founder types or presses, from the empty form to the submission."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with stand(tmp_path_factory.mktemp("site")) as product:
        yield product


class Founder:
    """A founder at a page, by keyboard alone, whose steps are counted."""

    def __init__(self, page):
        self.page, self.keys, self.steps = page, Keys(page), 0

    def fill(self, label, text):
        self.keys.write(self.page.get_by_label(label, exact=True), text)
        self.steps += 1

    def press(self, role, name):
        target = self.page.get_by_role(role, name=name)
        self.keys.reach(target)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")
        self.steps += 1


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_a_founder_lists_an_organization_with_five_people_and_a_cap_table_and_sees_it_published(browser, site, script):
    name, slug = f"Sun Harvest {script}", f"sun-harvest-{str(script).lower()}"
    context = browser.new_context(base_url=origin(site), java_script_enabled=script)
    page = sign_in(context, site, OWNER)
    founder = Founder(page)
    page.goto("/manage/companies/new")
    founder.fill("Name", name)
    founder.fill("Type (needed to publish)", "cooperative")
    founder.fill("Website (needed to publish)", f"{slug}.example")
    founder.press("button", "Save and continue")
    founder.fill("Summary (needed to publish)", "Farmers who share the roofs of their barns.")
    founder.press("button", "Save and continue")
    founder.press("button", "Save and continue")
    founder.press("link", re.compile(r"Paste from a spreadsheet\s?: Team"))
    team = [f"{first} {FAMILIES[script]}\t{title}" for first, title in PEOPLE.items()]
    founder.fill("Table", "\n".join(("Name\tPosition", *team)))
    founder.press("button", "Check table")
    expect(page.get_by_text("Nothing is saved yet.")).to_be_visible()
    founder.press("button", "Save these rows")
    expect(page.get_by_role("status").first).to_contain_text("5 rows added.")
    founder.press("button", "Save and continue")
    founder.press("link", re.compile(r"Paste from a spreadsheet\s?: Cap table"))
    founder.fill("Table", HOLDERS)
    founder.press("button", "Check table")
    founder.press("button", "Save these rows")
    founder.press("button", "Save and continue")
    page.wait_for_url(re.compile(rf"/manage/companies/{slug}/check(#|$)"))
    for shown in (f"Oriel {FAMILIES[script]}, Chair", "Common treasury · 500.000 · 50.5%", f"{slug}.example"):
        expect(page.get_by_text(shown).first).to_be_visible()
    founder.press("link", "View draft as it will look")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_text(f"Piran {FAMILIES[script]}")).to_be_visible()
    page.goto(f"/manage/companies/{slug}/check")
    founder.press("button", "Submit for review")
    expect(page.locator("h1 + .pill")).to_have_text("Submitted")
    assert founder.steps <= MOST_STEPS
    approve(browser, site, slug)
    page.goto(f"/companies/{slug}")
    expect(page.locator("#team")).to_contain_text(f"Wenna {FAMILIES[script]}")
    expect(page.locator("#cap-table")).to_contain_text("Common treasury")
    published = site.data_of(f"/api/v1/companies/{slug}")
    assert published["company"]["website"] == f"https://{slug}.example"
    assert (len(published["positions"]), len(published["capTable"])) == (5, 3)
    context.close()


def approve(browser, site, slug):
    at_work = browser.new_context()
    desk = sign_in(at_work, site, REVIEWER)
    desk.goto(f"{origin(site)}/review/companies/{slug}")
    desk.get_by_role("button", name="Approve and publish").click()
    desk.wait_for_load_state()
    at_work.close()


def test_a_person_is_picked_and_a_row_is_moved_by_keyboard_alone(browser, site):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OWNER)
    page.goto(f"/manage/companies/{COMPANY}/edit/team")
    rows = page.locator("#positions tbody tr")
    before = [row.locator("input[data-person]").input_value() for row in rows.all()][:2]
    page.get_by_role("button", name="Add person").press("Enter")
    new = page.get_by_label("Name, New").last
    expect(new).to_be_focused()
    person = site.data_of("/api/v1/people?pageSize=1")[0]
    new.press_sequentially(person["name"])
    options = page.locator(".people-found [role=option]")
    expect(options.first).to_contain_text(person["slug"])
    expect(new).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    assert new.get_attribute("aria-activedescendant") == options.first.get_attribute("id")
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(page.get_by_label("Link to existing profile, New").last).to_have_value(person["slug"])
    expect(page.locator(".people-found")).to_be_hidden()
    page.keyboard.press("Escape")
    down = page.locator("#positions").get_by_role("button", name="Move row 1 down")
    down.focus()
    page.keyboard.press("Enter")
    expect(down).to_be_focused()
    expect(page.locator("#positions .moved")).to_have_text("Moved to row 2")
    page.get_by_role("button", name="Save", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    after = [row.locator("input[data-person]").input_value() for row in rows.all()][:2]
    assert after == before[::-1]
    context.close()


def test_the_preview_beside_the_form_follows_what_is_typed(browser, site):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OWNER)
    page.goto(f"/manage/companies/{COMPANY}/edit/about")
    live = page.get_by_role("complementary", name="Live preview")
    page.get_by_label("Full description").fill("A **tenth** harbour.")
    expect(live.locator("strong", has_text="tenth")).to_be_visible()
    with context.expect_page() as opened:
        page.get_by_role("button", name="Preview").click()
    expect(opened.value.get_by_text("With your unsaved changes.")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    context.close()


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_preview_check_and_paste_fit_and_are_accessible(browser, site, width):
    context = browser.new_context(base_url=origin(site), viewport={"width": width, "height": 900})
    page = sign_in(context, site, OWNER)
    for path in ("preview", "check", "edit/about", "paste/capTable"):
        page.goto(f"/manage/companies/{COMPANY}/{path}")
        if path.startswith("paste"):
            page.get_by_label("Table").fill(HOLDERS.replace("30 %", "half"))
            page.get_by_role("button", name="Check table").click()
            expect(page.get_by_role("alert")).to_contain_text("1 row has an error.")
        page.emulate_media(color_scheme="light")
        assert violations(page) == [], path
        assert in_the_dark(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") == width, path
    context.close()
