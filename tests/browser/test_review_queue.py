"""In a real browser: a reviewer works through a queue of 20, by keyboard alone and without JavaScript."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.eyes import in_the_dark, look, violations
from browser.keys import Keys
from browser.tour import OWNER, PASSWORD, REVIEWER, origin, sign_in
from services.owner import owned_registry
from services.prepared import copied
from services.product import DEMO, Product, environment, run

QUEUE = 20


def _with_a_queue(data, **settings):
    owned_registry(data, **settings)
    reviewer = ("user", "create", REVIEWER, "--role", "reviewer", "--password-stdin")
    run(*reviewer, data=data, stdin=PASSWORD + "\n", **settings)
    run("import", str(_large_framework(data.parent)), data=data, **settings)
    variables = {**environment(data, **settings), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    script = Path(__file__).parents[1] / "services" / "queued.py"
    subprocess.run([sys.executable, script, str(2 * QUEUE), OWNER], env=variables, check=True, timeout=110)


def _large_framework(folder):
    """Write a framework whose specification has more criteria than one form holds, to be imported."""
    with (DEMO / "frameworks.jsonl").open() as file:
        framework = json.loads(file.readline())
    criteria = [{"id": f"c{n}", "title": f"Criterion {n}", "weight": 1, "requirement": "Is met."} for n in range(60)]
    section = {"id": "all", "title": "All of them", "weight": 1, "criteria": criteria}
    framework["framework"] |= {"frameworkId": "large", "frameworkName": "Large", "company": None}
    framework["specification"]["sections"] = [section]
    made = folder / "large"
    made.mkdir(exist_ok=True)
    (made / "frameworks.jsonl").write_text(json.dumps(framework) + "\n")
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Product(copied(_with_a_queue, tmp_path_factory.mktemp("site") / "data"), rate_limit="off") as product:
        product.wait_ready()
        yield product


@pytest.fixture
def desk(browser, site, request):
    context = browser.new_context(base_url=origin(site), **getattr(request, "param", {}))
    yield sign_in(context, site, REVIEWER)
    context.close()


def left(page):
    return page.get_by_text("items left.").or_(page.get_by_text("item left.")).text_content()


def test_a_reviewer_decides_on_20_items_by_keyboard_alone(desk, site):
    """Two keys an item, after two to open the first: j, Enter, then a and Enter for each."""
    page, keys = desk, 0

    def press(*each):
        nonlocal keys
        keys += len(each)
        for key in each:
            page.keyboard.press(key)

    expect(page.locator(".inbox caption")).to_have_text(f"{2 * QUEUE} items, oldest first")
    press("j", "j", "k")
    expect(page.get_by_role("link", name="Fishery 00")).to_be_focused()
    press("Enter")
    page.wait_for_url("**/fishery-00")
    for number in range(QUEUE):
        press("a")
        expect(page.get_by_role("button", name="Approve and publish")).to_be_focused()
        press("Enter")
        page.wait_for_url(f"**/fishery-{number + 1:02}")
        assert left(page) == f"{2 * QUEUE - number - 1} items left."
    assert keys == 4 + 2 * QUEUE
    for number in range(QUEUE):
        assert site.get(f"/api/v1/companies/fishery-{number:02}").status == 200
    assert site.get(f"/api/v1/companies/fishery-{QUEUE:02}").status == 404


def test_a_decline_by_keyboard_needs_a_note_and_is_taken_back(desk):
    page = desk
    page.goto("/review/companies/fishery-39")
    page.keyboard.press("r")
    expect(page.get_by_label("Note to the owner")).to_be_focused()
    page.keyboard.type("ajar")  # keys in an input are text
    expect(page.get_by_label("Note to the owner")).to_have_value("ajar")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("Listing declined.")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/fishery-39")
    expect(page.locator("h1 + .pill")).to_have_text("Submitted")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.wait_for_url("**/review")


@pytest.mark.parametrize("desk", [{"viewport": {"width": 1280, "height": 860}}], indirect=True)
def test_what_decides_is_in_sight_and_a_missing_note_is_told_at_its_field(desk):
    page = desk
    for path, button in (("/review", "Approve…"), ("/review/companies/fishery-37", "Approve and publish")):
        page.goto(path)
        box = page.get_by_role("button", name=button, exact=True).bounding_box()
        assert box["y"] + box["height"] <= 860, path
    page.get_by_role("button", name="Decline", exact=True).click()
    note = page.get_by_label("Note to the owner")
    expect(note).to_be_focused()
    expect(note).to_have_attribute("aria-invalid", "true")
    expect(note).to_be_in_viewport()


def test_a_saved_reply_goes_into_the_note(desk):
    page = desk
    page.goto("/review/replies")
    page.get_by_label("Title").fill("Website")
    page.get_by_label("Text").fill("Please add a website.")
    page.get_by_role("button", name="Save reply").click()
    page.goto("/review/companies/fishery-38")
    page.get_by_label("Saved reply").select_option("Website")
    expect(page.get_by_label("Note to the owner")).to_have_value("Please add a website.")
    expect(page.get_by_label("Saved reply")).to_have_value("")


@pytest.mark.whole(keeps=0)
def test_the_pages_of_the_queue_are_accessible(desk):
    page, faults = desk, {}
    for path in ("/review", "/review?q=nothing", "/review/companies/fishery-38", "/review/replies", "/review/settings"):
        page.goto(path)
        faults[path] = violations(page) + in_the_dark(page)
    page.goto("/review/frameworks/plain-governance/specification")
    for criterion in page.locator("details.criterion").all()[:2]:
        criterion.locator("summary").click()
    page.get_by_role("button", name="Preview report").last.click()
    page.get_by_role("heading", name="Preview: ").wait_for()
    faults["specification"] = violations(page) + in_the_dark(page)
    for path in ("/review/frameworks/large/specification", "/review/frameworks/large/specification?section=0&page=2"):
        page.goto(path)
        faults[path] = look(page, path)
    page.goto("/review")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Decline…").click()
    page.get_by_role("button", name="Decline selected").wait_for()
    faults["several"] = violations(page)
    page.goto("/review")
    page.keyboard.press("?")
    faults["help"] = violations(page)
    assert not any(faults.values()), faults


def test_a_large_specification_is_edited_by_section_and_published_by_keyboard(desk, site):
    page, keys = desk, Keys(desk)
    page.goto("/review/frameworks/large/specification")
    expect(page.get_by_text("60 criteria.")).to_be_visible()
    keys.press(page.get_by_role("link", name="All of them"))
    keys.press(page.get_by_role("link", name="Next"))
    keys.press(page.locator("summary").filter(has_text="Criterion 25 "))
    keys.write(page.locator("[id='s.0.c.0.title']"), "The books are open")
    keys.press(page.get_by_role("button", name="Save and show all sections"))
    expect(page.get_by_text("You have a draft")).to_be_visible()
    keys.press(page.get_by_role("button", name="Publish version"))
    page.wait_for_url("**/review/frameworks/large")
    expect(page.get_by_role("status").first).to_contain_text("published.")
    expect(page.get_by_label("Specification as JSON")).to_have_value(re.compile("The books are open"))


@pytest.mark.parametrize("desk", [{"viewport": {"width": 320, "height": 640}}], indirect=True)
def test_the_queue_fits_on_the_narrowest_screen(desk):
    for path in ("/review", "/review/companies/fishery-38", "/review/replies", "/review/settings"):
        desk.goto(path)
        assert desk.evaluate("document.documentElement.scrollWidth") <= 320, path


@pytest.mark.parametrize("desk", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_20_items_are_decided_in_two_forms(desk, site):
    page = desk
    expect(page.locator(".inbox caption")).to_have_text(f"{QUEUE} items, oldest first")
    for box in page.get_by_role("checkbox", name="Select Fishery").all():
        box.check()
    page.get_by_role("button", name="Approve…").click()
    page.get_by_role("button", name="Approve selected").click()
    page.wait_for_url("**/review/several/done")
    expect(page.get_by_role("status").first).to_have_text(f"Approved: {QUEUE} of {QUEUE}.")
    page.get_by_role("link", name="Back to the queue").click()
    expect(page.get_by_role("heading", name="Nothing to review")).to_be_visible()
    assert site.get("/api/v1/companies/fishery-39").status == 200
